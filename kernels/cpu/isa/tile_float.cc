// Arithmetic of float32 and float64.
#include "kernels/cpu/isa/tile_loop.h"
#include "kernels/cpu/isa/tile_set.h"
#include "kernels/cpu/isa/tile_vector.h"

namespace gradwire::cpu {
namespace GW_ISA {
namespace {

using expr::Prim;

template <class T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr float kExactQuotient = 0x1p22f;
  static float fmod(float a, float b) { return __builtin_fmodf(a, b); }
  static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static float trunc(float a) { return __builtin_truncf(a); }
  static float floor(float a) { return __builtin_floorf(a); }
  static float ceil(float a) { return __builtin_ceilf(a); }
  static float rint(float a) { return __builtin_rintf(a); }
  static float sqrt(float a) { return __builtin_sqrtf(a); }
  static float abs(float a) { return __builtin_fabsf(a); }
  static float copysign(float a, float b) { return __builtin_copysignf(a, b); }
};
template <>
struct Limits<double> {
  static constexpr double kExactQuotient = 0x1p51;
  static double fmod(double a, double b) { return __builtin_fmod(a, b); }
  static double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
  static double trunc(double a) { return __builtin_trunc(a); }
  static double floor(double a) { return __builtin_floor(a); }
  static double ceil(double a) { return __builtin_ceil(a); }
  static double rint(double a) { return __builtin_rint(a); }
  static double sqrt(double a) { return __builtin_sqrt(a); }
  static double abs(double a) { return __builtin_fabs(a); }
  static double copysign(double a, double b) { return __builtin_copysign(a, b); }
};

// clang-format off
template <class T> struct Minimum {
  T operator()(T a, T b) const { return a < b || a != a ? a : b; }
};
template <class T> struct Maximum {
  T operator()(T a, T b) const { return a > b || a != a ? a : b; }
};
template <class T> struct Fmin { T operator()(T a, T b) const { return a < b || b != b ? a : b; } };
template <class T> struct Fmax { T operator()(T a, T b) const { return a > b || b != b ? a : b; } };
template <class T> struct Neg { T operator()(T a) const { return -a; } };
template <class T> struct Abs { T operator()(T a) const { return Limits<T>::abs(a); } };
template <class T> struct Sign { T operator()(T a) const { return T(a > 0) - T(a < 0); } };
template <class T> struct Square { T operator()(T a) const { return a * a; } };
template <class T> struct Cube { T operator()(T a) const { return a * a * a; } };
template <class T> struct Reciprocal { T operator()(T a) const { return T(1) / a; } };
template <class T> struct Sqrt { T operator()(T a) const { return Limits<T>::sqrt(a); } };
template <class T> struct Rsqrt { T operator()(T a) const { return T(1) / Limits<T>::sqrt(a); } };
template <class T> struct Fma {
  T operator()(T a, T b, T c) const { return Limits<T>::fma(a, b, c); }
};
template <class T> struct Floor { T operator()(T a) const { return Limits<T>::floor(a); } };
template <class T> struct Ceil { T operator()(T a) const { return Limits<T>::ceil(a); } };
template <class T> struct Trunc { T operator()(T a) const { return Limits<T>::trunc(a); } };
template <class T> struct Round { T operator()(T a) const { return Limits<T>::rint(a); } };
// clang-format on

template <class F, class T>
void loop_ordered(void* dst, const void* a, const void* b, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  constexpr int64_t kLanes = kVector / sizeof(T);
  for (int64_t i = 0; i < n; i += kLanes) {
    *(Vec<T>*)(d + i) = F()(*(const Vec<T>*)(x + i), *(const Vec<T>*)(y + i));
  }
}

// fmod of a block. While the quotient is small the remainder is exact in one fma, up to one step
// when the quotient rounded up to a whole number; the library does the others.
template <class T>
void fmod_block(T* d, const T* a, const T* b) {
  using L = Limits<T>;
  int slow = 0;
#pragma GCC ivdep
  for (int i = 0; i < kTileBlock; ++i) {
    T q = L::trunc(a[i] / b[i]);
    T r = L::fma(-q, b[i], a[i]);
    T step = L::copysign(b[i], a[i]);
    r = (r < 0) != (a[i] < 0) && r != 0 ? r + step : r;
    d[i] = L::copysign(r, a[i]);
    // Tiny operands could lose bits of the product to underflow.
    bool fast = L::abs(q) < L::kExactQuotient && L::abs(b[i]) > T(1e-30) && L::abs(b[i]) < T(1e30);
    slow += !fast;
  }
  if (slow == 0) return;
  for (int i = 0; i < kTileBlock; ++i) {
    T q = L::trunc(a[i] / b[i]);
    bool fast = L::abs(q) < L::kExactQuotient && L::abs(b[i]) > T(1e-30) && L::abs(b[i]) < T(1e30);
    if (!fast) d[i] = L::fmod(a[i], b[i]);
  }
}

template <class T>
struct ModOnly {
  T operator()(T, T, T mod) const { return mod; }
};
template <class T>
struct ModPython {
  T operator()(T, T b, T mod) const { return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod; }
};
// torch's floor_divide, itself Python's.
template <class T>
struct ModFloor {
  T operator()(T a, T b, T mod) const {
    using L = Limits<T>;
    T div = (a - mod) / b;
    div = mod != 0 && (b < 0) != (mod < 0) ? div - T(1) : div;
    T whole = L::floor(div);
    whole = div - whole > T(0.5) ? whole + T(1) : whole;
    whole = div != 0 ? whole : L::copysign(T(0), a / b);
    return b == 0 ? a / b : whole;
  }
};

template <class F, class T>
void loop_mod(void* dst, const void* a, const void* b, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T mod[kTileBlock];
  for (int64_t i = 0; i < blocks(n); i += kTileBlock) {
    fmod_block(mod, x + i, y + i);
#pragma GCC ivdep
    for (int j = 0; j < kTileBlock; ++j) d[i + j] = F()(x[i + j], y[i + j], mod[j]);
  }
}

template <DType D>
void fill(TileOps& ops) {
  using T = RegisterT<D>;
  entry(ops, Prim::kAdd, D) = loop_ordered<Add, T>;
  entry(ops, Prim::kSub, D) = loop_ordered<Sub, T>;
  entry(ops, Prim::kMul, D) = loop_ordered<Mul, T>;
  entry(ops, Prim::kDiv, D) = loop_ordered<Div, T>;
  entry(ops, Prim::kFmod, D) = loop_mod<ModOnly<T>, T>;
  entry(ops, Prim::kRemainder, D) = loop_mod<ModPython<T>, T>;
  entry(ops, Prim::kFloorDiv, D) = loop_mod<ModFloor<T>, T>;
  entry(ops, Prim::kMinimum, D) = loop2<Minimum<T>, T, T>;
  entry(ops, Prim::kMaximum, D) = loop2<Maximum<T>, T, T>;
  entry(ops, Prim::kFmin, D) = loop2<Fmin<T>, T, T>;
  entry(ops, Prim::kFmax, D) = loop2<Fmax<T>, T, T>;
  entry(ops, Prim::kNeg, D) = loop1<Neg<T>, T, T>;
  entry(ops, Prim::kAbs, D) = loop1<Abs<T>, T, T>;
  entry(ops, Prim::kSign, D) = loop1<Sign<T>, T, T>;
  entry(ops, Prim::kSquare, D) = loop1<Square<T>, T, T>;
  entry(ops, Prim::kReciprocal, D) = loop1<Reciprocal<T>, T, T>;
  entry(ops, Prim::kSqrt, D) = loop1<Sqrt<T>, T, T>;
  entry(ops, Prim::kRsqrt, D) = loop1<Rsqrt<T>, T, T>;
  entry(ops, Prim::kFma, D) = loop3<Fma<T>, T, T, T, T>;
  entry(ops, Prim::kFloor, D) = loop1<Floor<T>, T, T>;
  entry(ops, Prim::kCeil, D) = loop1<Ceil<T>, T, T>;
  entry(ops, Prim::kTrunc, D) = loop1<Trunc<T>, T, T>;
  entry(ops, Prim::kRound, D) = loop1<Round<T>, T, T>;
  ops.cube[static_cast<int>(D)] = loop1<Cube<T>, T, T>;
}

}  // namespace

void fill_float(TileOps& ops) {
  fill<DType::kFloat32>(ops);
  fill<DType::kFloat64>(ops);
}

}  // namespace GW_ISA
}  // namespace gradwire::cpu
