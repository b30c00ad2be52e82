// Arithmetic of whole vectors whose operands stay in order.
#pragma once

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

// Of two NaNs the first operand's is the result. A compiler exchanges the operands of a sum as it
// likes, so that a primitive could give other bits alone than in a pair.
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

}  // namespace
}  // namespace GW_ISA
}  // namespace gradwire::cpu
