// amax, amin: NaN wins.
#include "kernels/cpu/reduce_minmax.h"

#include <limits>

#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduce_fold.h"

namespace gradwire::cpu {
namespace {

template <class T, bool kMax>
struct Extreme {
  using In = T;
  using Acc = Wide<T>;
  static constexpr Acc identity() {
    using Limits = std::numeric_limits<Acc>;
    if constexpr (Limits::has_infinity) return kMax ? -Limits::infinity() : Limits::infinity();
    return kMax ? Limits::lowest() : Limits::max();
  }
  static void step(Acc& a, Acc x) { a = (kMax ? x > a : x < a) || x != x ? x : a; }
  static void step(V8<Acc>& a, V8<Acc> x) { a = ((kMax ? x > a : x < a) | (x != x)) ? x : a; }
  static void merge(Acc& a, Acc b) { step(a, b); }
};

template <bool kMax>
absl::Status extreme(const KernelCall& call, Context& context, const char* name) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const Attribute& attr = attribute(call, 0);
  const uint32_t dims = reduced_dims(attr, in.rank);
  GW_RETURN_IF_ERROR(check_not_empty(name, in, dims, attr.as_ints().empty()));
  return dispatch_dtype(in.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return reduce(
        in, out, nullptr, dims, false, LaneReducer<Extreme<T, kMax>>::table(),
        [&](const void* acc, int64_t n, const auto& offsets, const auto& strides) {
          T* to = static_cast<T*>(address(out, offsets[0]));
          for (int64_t i = 0; i < n; ++i) {
            to[i * strides[0]] = convert<T>(static_cast<const Wide<T>*>(acc)[i]);
          }
        },
        context);
  });
}

absl::Status amax(const KernelCall& call, Context& context) {
  return extreme<true>(call, context, "amax");
}

absl::Status amin(const KernelCall& call, Context& context) {
  return extreme<false>(call, context, "amin");
}

GW_CPU_KERNEL("amax", amax);
GW_CPU_KERNEL("amin", amin);

}  // namespace
}  // namespace gradwire::cpu
