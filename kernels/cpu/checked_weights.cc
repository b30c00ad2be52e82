// Weights as they are, or an error where their values cannot be weights.
#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Input w; attributes what ("negative" or "zero" is refused), text.
absl::Status checked_weights(const KernelCall& call, Context&) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  bool negative = call.attributes[0].as_string() == "negative";
  IndexMap from = map_dims(in, 0, in.rank), to = map_dims(out, 0, out.rank);
  for (int64_t i = 0; i < in.numel(); ++i) {
    double value = read_element(in, from.offset(i));
    if (negative ? value < 0 : value == 0) {
      return runtime_error(call.attributes[1].as_string());
    }
  }
  bool known = visit_floating(in.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < in.numel(); ++i) out.as<T>()[to.offset(i)] = in.as<T>()[from.offset(i)];
  });
  known = known || visit_integral(in.dtype, [&](auto tag) {
            using T = decltype(tag);
            for (int64_t i = 0; i < in.numel(); ++i)
              out.as<T>()[to.offset(i)] = in.as<T>()[from.offset(i)];
          });
  return known ? absl::OkStatus() : dtype_error("cov", in.dtype);
}
GW_CPU_KERNEL("checked_weights", checked_weights);

}  // namespace
}  // namespace gradwire::cpu
