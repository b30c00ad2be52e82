// Two arithmetic primitives in one pass, each rounded as if alone.
#include "kernels/cpu/isa/tile_loop.h"
#include "kernels/cpu/isa/tile_set.h"
#include "kernels/cpu/isa/tile_vector.h"

namespace gradwire::cpu {
namespace GW_ISA {
namespace {

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
