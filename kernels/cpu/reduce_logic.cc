// any, all: bool, or uint8 for uint8.
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduce_fold.h"

namespace gradwire::cpu {
namespace {

// The accumulator is a lane mask as wide as the values, all ones for true.
template <class T, bool kAll>
struct Logic {
  using In = T;
  using Acc = std::conditional_t<
      sizeof(Wide<T>) == 8, int64_t,
      std::conditional_t<sizeof(Wide<T>) == 4, int32_t,
                         std::conditional_t<sizeof(Wide<T>) == 2, int16_t, int8_t>>>;
  static constexpr Acc identity() { return kAll ? -1 : 0; }
  static void step(Acc& a, Wide<T> x) { merge(a, static_cast<Acc>(-(x != 0))); }
  static void step(V8<Acc>& a, V8<Wide<T>> x) {
    const V8<Acc> mask = reinterpret_cast<V8<Acc>>(x != 0);
    a = kAll ? a & mask : a | mask;
  }
  static void merge(Acc& a, Acc b) { a = static_cast<Acc>(kAll ? a & b : a | b); }
};

template <bool kAll>
absl::Status logic(const KernelCall& call, Context& context) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const uint32_t dims = reduced_dims(attribute(call, 0), in.rank);
  return dispatch_dtype(in.dtype, [&](auto type) {
    using Op = Logic<typename decltype(type)::type, kAll>;
    return reduce(
        in, out, nullptr, dims, false, LaneReducer<Op>::table(),
        [&](const void* acc, int64_t n, const auto& offsets, const auto& strides) {
          uint8_t* to = static_cast<uint8_t*>(address(out, offsets[0]));
          for (int64_t i = 0; i < n; ++i) {
            to[i * strides[0]] = static_cast<const typename Op::Acc*>(acc)[i] != 0;
          }
        },
        context);
  });
}

absl::Status any(const KernelCall& call, Context& context) {
  return logic<false>(call, context);
}

absl::Status all(const KernelCall& call, Context& context) {
  return logic<true>(call, context);
}

GW_CPU_KERNEL("any", any);
GW_CPU_KERNEL("all", all);

}  // namespace
}  // namespace gradwire::cpu
