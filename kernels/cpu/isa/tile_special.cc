// Special functions, one element at a time in double.
#include "kernels/cpu/tile_special.h"

#include "kernels/cpu/isa/tile_loop.h"
#include "kernels/cpu/isa/tile_set.h"

namespace gradwire::cpu {
namespace GW_ISA {
namespace {

using expr::Prim;

template <double (*kFunction)(double), class T>
void special1(void* dst, const void* a, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) d[i] = static_cast<T>(kFunction(static_cast<double>(x[i])));
}

template <class T>
void polygamma_tile(void* dst, const void* a, const void* b, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* order = static_cast<const T*>(a);
  const T* x = static_cast<const T*>(b);
  for (int64_t i = 0; i < n; ++i) {
    d[i] = static_cast<T>(
        special::polygamma(static_cast<double>(order[i]), static_cast<double>(x[i])));
  }
}

template <double (*kFunction)(double)>
void fill(TileOps& ops, Prim prim) {
  entry(ops, prim, DType::kFloat32) = special1<kFunction, float>;
  entry(ops, prim, DType::kFloat64) = special1<kFunction, double>;
}

}  // namespace

void fill_special(TileOps& ops) {
  fill<special::erfinv>(ops, Prim::kErfinv);
  fill<special::lgamma>(ops, Prim::kLgamma);
  fill<special::digamma>(ops, Prim::kDigamma);
  entry(ops, Prim::kPolygamma, DType::kFloat32) = polygamma_tile<float>;
  entry(ops, Prim::kPolygamma, DType::kFloat64) = polygamma_tile<double>;
}

}  // namespace GW_ISA
}  // namespace gradwire::cpu
