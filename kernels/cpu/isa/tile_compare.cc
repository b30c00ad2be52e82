// Comparisons and selection.
#include "kernels/cpu/isa/tile_loop.h"
#include "kernels/cpu/isa/tile_set.h"

namespace gradwire::cpu {
namespace GW_ISA {
namespace {

using expr::Prim;

// clang-format off
template <class T> struct Eq { uint8_t operator()(T a, T b) const { return a == b; } };
template <class T> struct Ne { uint8_t operator()(T a, T b) const { return a != b; } };
template <class T> struct Lt { uint8_t operator()(T a, T b) const { return a < b; } };
template <class T> struct Le { uint8_t operator()(T a, T b) const { return a <= b; } };
template <class T> struct IsNan { uint8_t operator()(T a) const { return a != a; } };
template <class T> struct Select {
  T operator()(uint8_t a, T b, T c) const { return a != 0 ? b : c; }
};
// clang-format on

// Any nonzero byte of a bool is true.
template <template <class> class F>
struct OfBool {
  uint8_t operator()(uint8_t a, uint8_t b) const { return F<uint8_t>()(a != 0, b != 0); }
};

template <template <class> class F, class T>
void swapped(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  loop2<F<T>, uint8_t, T>(dst, b, a, c, n);
}
template <template <class> class F>
void swapped_bool(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  loop2<OfBool<F>, uint8_t, uint8_t>(dst, b, a, c, n);
}

template <DType D>
void fill(TileOps& ops) {
  using T = RegisterT<D>;
  entry(ops, Prim::kEq, D) = loop2<Eq<T>, uint8_t, T>;
  entry(ops, Prim::kNe, D) = loop2<Ne<T>, uint8_t, T>;
  entry(ops, Prim::kLt, D) = loop2<Lt<T>, uint8_t, T>;
  entry(ops, Prim::kLe, D) = loop2<Le<T>, uint8_t, T>;
  entry(ops, Prim::kGt, D) = swapped<Lt, T>;
  entry(ops, Prim::kGe, D) = swapped<Le, T>;
  entry(ops, Prim::kIsNan, D) = loop1<IsNan<T>, uint8_t, T>;
  entry(ops, Prim::kSelect, D) = loop3<Select<T>, T, uint8_t, T, T>;
}

}  // namespace

void fill_compare(TileOps& ops) {
  fill<DType::kFloat32>(ops);
  fill<DType::kFloat64>(ops);
  fill<DType::kInt64>(ops);
  fill<DType::kInt32>(ops);
  fill<DType::kInt16>(ops);
  fill<DType::kInt8>(ops);
  fill<DType::kUInt8>(ops);
  constexpr DType B = DType::kBool;
  entry(ops, Prim::kEq, B) = loop2<OfBool<Eq>, uint8_t, uint8_t>;
  entry(ops, Prim::kNe, B) = loop2<OfBool<Ne>, uint8_t, uint8_t>;
  entry(ops, Prim::kLt, B) = loop2<OfBool<Lt>, uint8_t, uint8_t>;
  entry(ops, Prim::kLe, B) = loop2<OfBool<Le>, uint8_t, uint8_t>;
  entry(ops, Prim::kGt, B) = swapped_bool<Lt>;
  entry(ops, Prim::kGe, B) = swapped_bool<Le>;
  entry(ops, Prim::kSelect, B) = loop3<Select<uint8_t>, uint8_t, uint8_t, uint8_t, uint8_t>;
}

}  // namespace GW_ISA
}  // namespace gradwire::cpu
