// Two arithmetic primitives in one pass, each rounded as if alone.
#include "kernels/cpu/isa/tile_loop.h"
#include "kernels/cpu/isa/tile_set.h"

namespace gradwire::cpu {
namespace GW_ISA {
namespace {

#ifdef __AVX512F__
constexpr int kVector = 64;
#else
constexpr int kVector = 32;
#endif
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float Vec __attribute__((vector_size(kVector), aligned(4), may_alias));
};
template <>
struct Lanes<double> {
  typedef double Vec __attribute__((vector_size(kVector), aligned(8), may_alias));
};
template <class T>
using Vec = typename Lanes<T>::Vec;

// Of two NaNs the first operand's is the result. A compiler may exchange the operands of a sum, and
// would do so here and not where the primitive stands alone.
#define GW_ORDERED(Name, single, double_)                        \
  struct Name {                                                  \
    Vec<float> operator()(Vec<float> a, Vec<float> b) const {    \
      Vec<float> r;                                              \
      asm(single " %2, %1, %0" : "=v"(r) : "v"(a), "v"(b));      \
      return r;                                                  \
    }                                                            \
    Vec<double> operator()(Vec<double> a, Vec<double> b) const { \
      Vec<double> r;                                             \
      asm(double_ " %2, %1, %0" : "=v"(r) : "v"(a), "v"(b));     \
      return r;                                                  \
    }                                                            \
  };
GW_ORDERED(Add, "vaddps", "vaddpd")
GW_ORDERED(Sub, "vsubps", "vsubpd")
GW_ORDERED(Mul, "vmulps", "vmulpd")
GW_ORDERED(Div, "vdivps", "vdivpd")
#undef GW_ORDERED

template <class F, class G, class T, bool kLeft>
void loop_pair(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const T* z = static_cast<const T*>(c);
  constexpr int64_t kLanes = kVector / sizeof(T);
  for (int64_t i = 0; i < n; i += kLanes) {
    Vec<T> first = F()(*(const Vec<T>*)(x + i), *(const Vec<T>*)(y + i));
    Vec<T> other = *(const Vec<T>*)(z + i);
    *(Vec<T>*)(d + i) = kLeft ? G()(first, other) : G()(other, first);
  }
}

template <class F, class G, class T>
void fill_pair(TileFn (&slot)[2]) {
  slot[0] = loop_pair<F, G, T, true>;
  slot[1] = loop_pair<F, G, T, false>;
}

template <class F, class T>
void fill_first(TileFn (&slots)[kPairPrims][2]) {
  fill_pair<F, Add, T>(slots[0]);
  fill_pair<F, Sub, T>(slots[1]);
  fill_pair<F, Mul, T>(slots[2]);
  fill_pair<F, Div, T>(slots[3]);
}

template <class T>
void fill(TileFn (&slots)[kPairPrims][kPairPrims][2]) {
  fill_first<Add, T>(slots[0]);
  fill_first<Sub, T>(slots[1]);
  fill_first<Mul, T>(slots[2]);
  fill_first<Div, T>(slots[3]);
}

}  // namespace

void fill_pairs(TileOps& ops) {
  fill<float>(ops.pair[static_cast<int>(DType::kFloat32)]);
  fill<double>(ops.pair[static_cast<int>(DType::kFloat64)]);
}

}  // namespace GW_ISA
}  // namespace gradwire::cpu
