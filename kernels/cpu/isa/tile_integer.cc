// Arithmetic and bits of integers and bool. Everything wraps: sums and products are formed in an
// unsigned type at least as wide as int.
#include "kernels/cpu/isa/tile_loop.h"
#include "kernels/cpu/isa/tile_set.h"

namespace gradwire::cpu {
namespace GW_ISA {
namespace {

using expr::Prim;

// U: unsigned and at least as wide as int. Q: a type whose division of two T is exact once
// truncated; int64 divides itself.
template <class T>
struct Traits {
  using U = uint32_t;
  using Q = double;
};
template <>
struct Traits<int64_t> {
  using U = uint64_t;
  using Q = int64_t;
};
template <class T>
using U = typename Traits<T>::U;

template <class T>
constexpr bool kSigned = T(-1) < T(0);
template <class T>
constexpr int kBits = 8 * sizeof(T);

// Truncating division; 0 for a zero divisor, which a launch has ruled out by then.
template <class T>
T quotient(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<T>(U<T>(0) - static_cast<U<T>>(a));
    return a / b;
  } else {
    double q = static_cast<double>(a) / (b == 0 ? 1.0 : static_cast<double>(b));
    return b == 0 ? T(0) : static_cast<T>(static_cast<int64_t>(q));
  }
}

template <class T>
T power(T base, T exponent) {
  U<T> b = static_cast<U<T>>(base);
  if (kSigned<T> && exponent < 0) {
    if (base == 1) return 1;
    if (kSigned<T> && base == T(-1)) return (exponent & 1) != 0 ? T(-1) : T(1);
    return 0;
  }
  U<T> result = 1;
  for (U<T> e = static_cast<U<T>>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= b;
    b *= b;
  }
  return static_cast<T>(result);
}

// clang-format off
template <class T> struct Add { T operator()(T a, T b) const { return T(U<T>(a) + U<T>(b)); } };
template <class T> struct Sub { T operator()(T a, T b) const { return T(U<T>(a) - U<T>(b)); } };
template <class T> struct Mul { T operator()(T a, T b) const { return T(U<T>(a) * U<T>(b)); } };
template <class T> struct Minimum { T operator()(T a, T b) const { return a < b ? a : b; } };
template <class T> struct Maximum { T operator()(T a, T b) const { return a > b ? a : b; } };
template <class T> struct Neg { T operator()(T a) const { return T(U<T>(0) - U<T>(a)); } };
template <class T> struct Abs {
  T operator()(T a) const { return a < 0 ? T(U<T>(0) - U<T>(a)) : a; }
};
template <class T> struct Sign { T operator()(T a) const { return T((a > 0) - (a < 0)); } };
template <class T> struct Square { T operator()(T a) const { return T(U<T>(a) * U<T>(a)); } };
template <class T> struct Cube {
  T operator()(T a) const { return T(U<T>(a) * U<T>(a) * U<T>(a)); }
};
template <class T> struct Pow { T operator()(T a, T b) const { return power<T>(a, b); } };
template <class T> struct And { T operator()(T a, T b) const { return a & b; } };
template <class T> struct Or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct Xor { T operator()(T a, T b) const { return a ^ b; } };
template <class T> struct Not { T operator()(T a) const { return ~a; } };
struct BoolAnd { uint8_t operator()(uint8_t a, uint8_t b) const { return (a != 0) & (b != 0); } };
struct BoolOr { uint8_t operator()(uint8_t a, uint8_t b) const { return (a | b) != 0; } };
struct BoolXor { uint8_t operator()(uint8_t a, uint8_t b) const { return (a != 0) ^ (b != 0); } };
struct BoolNot { uint8_t operator()(uint8_t a) const { return a == 0; } };
struct BoolSame { uint8_t operator()(uint8_t a) const { return a != 0; } };
// clang-format on

template <class T>
struct Fmod {
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<U<T>>(a) - U<T>(quotient<T>(a, b)) * static_cast<U<T>>(b));
  }
};
template <class T>
struct Remainder {
  T operator()(T a, T b) const {
    T r = Fmod<T>()(a, b);
    return r != 0 && (r < 0) != (b < 0) ? Add<T>()(r, b) : r;
  }
};
template <class T>
struct FloorDiv {
  T operator()(T a, T b) const {
    T q = quotient<T>(a, b);
    T r = static_cast<T>(static_cast<U<T>>(a) - U<T>(q) * static_cast<U<T>>(b));
    return r != 0 && (r < 0) != (b < 0) ? Sub<T>()(q, T(1)) : q;
  }
};
template <class T>
struct ShiftLeft {
  T operator()(T a, T b) const {
    bool outside = b < 0 || b >= kBits<T>;
    return outside ? T(0) : static_cast<T>(static_cast<U<T>>(a) << (b & (kBits<T> - 1)));
  }
};
template <class T>
struct ShiftRight {
  T operator()(T a, T b) const {
    bool outside = b < 0 || b >= kBits<T>;
    T filled = kSigned<T> ? T(a >> (kBits<T> - 1)) : T(0);
    return outside ? filled : static_cast<T>(a >> (b & (kBits<T> - 1)));
  }
};

template <DType D>
void fill(TileOps& ops) {
  using T = RegisterT<D>;
  entry(ops, Prim::kAdd, D) = loop2<Add<T>, T, T>;
  entry(ops, Prim::kSub, D) = loop2<Sub<T>, T, T>;
  entry(ops, Prim::kMul, D) = loop2<Mul<T>, T, T>;
  entry(ops, Prim::kFmod, D) = loop2<Fmod<T>, T, T>;
  entry(ops, Prim::kRemainder, D) = loop2<Remainder<T>, T, T>;
  entry(ops, Prim::kFloorDiv, D) = loop2<FloorDiv<T>, T, T>;
  entry(ops, Prim::kPow, D) = loop2<Pow<T>, T, T>;
  entry(ops, Prim::kMinimum, D) = loop2<Minimum<T>, T, T>;
  entry(ops, Prim::kMaximum, D) = loop2<Maximum<T>, T, T>;
  entry(ops, Prim::kFmin, D) = loop2<Minimum<T>, T, T>;
  entry(ops, Prim::kFmax, D) = loop2<Maximum<T>, T, T>;
  entry(ops, Prim::kNeg, D) = loop1<Neg<T>, T, T>;
  entry(ops, Prim::kAbs, D) = loop1<Abs<T>, T, T>;
  entry(ops, Prim::kSign, D) = loop1<Sign<T>, T, T>;
  entry(ops, Prim::kSquare, D) = loop1<Square<T>, T, T>;
  entry(ops, Prim::kBitAnd, D) = loop2<And<T>, T, T>;
  entry(ops, Prim::kBitOr, D) = loop2<Or<T>, T, T>;
  entry(ops, Prim::kBitXor, D) = loop2<Xor<T>, T, T>;
  entry(ops, Prim::kBitNot, D) = loop1<Not<T>, T, T>;
  entry(ops, Prim::kShiftLeft, D) = loop2<ShiftLeft<T>, T, T>;
  entry(ops, Prim::kShiftRight, D) = loop2<ShiftRight<T>, T, T>;
  ops.cube[static_cast<int>(D)] = loop1<Cube<T>, T, T>;
}

// Arithmetic of bool is logic: a sum is "or", a product is "and".
void fill_bool(TileOps& ops) {
  constexpr DType D = DType::kBool;
  TileFn both = loop2<BoolAnd, uint8_t, uint8_t>;
  TileFn any = loop2<BoolOr, uint8_t, uint8_t>;
  TileFn one = loop2<BoolXor, uint8_t, uint8_t>;
  for (Prim p : {Prim::kMul, Prim::kMinimum, Prim::kFmin, Prim::kLogicalAnd, Prim::kBitAnd}) {
    entry(ops, p, D) = both;
  }
  for (Prim p : {Prim::kAdd, Prim::kMaximum, Prim::kFmax, Prim::kLogicalOr, Prim::kBitOr}) {
    entry(ops, p, D) = any;
  }
  for (Prim p : {Prim::kSub, Prim::kLogicalXor, Prim::kBitXor}) entry(ops, p, D) = one;
  for (Prim p : {Prim::kAbs, Prim::kSign, Prim::kSquare, Prim::kToBool}) {
    entry(ops, p, D) = loop1<BoolSame, uint8_t, uint8_t>;
  }
  entry(ops, Prim::kLogicalNot, D) = loop1<BoolNot, uint8_t, uint8_t>;
  entry(ops, Prim::kBitNot, D) = loop1<BoolNot, uint8_t, uint8_t>;
}

}  // namespace

void fill_integer(TileOps& ops) {
  fill<DType::kInt64>(ops);
  fill<DType::kInt32>(ops);
  fill<DType::kInt16>(ops);
  fill<DType::kInt8>(ops);
  fill<DType::kUInt8>(ops);
  fill_bool(ops);
}

}  // namespace GW_ISA
}  // namespace gradwire::cpu
