// checked_range: y = x, after a check that every element lies in [low, high].
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

absl::Status checked_range(const KernelCall& call, Context&) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const double low = call.attributes[0].as_double(), high = call.attributes[1].as_double();
  const bool nan_fails = call.attributes[2].as_bool();
  const Space<2> space = space_of<2>({&x, &y});
  bool outside = false;
  dispatch_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for_runs(space, 0, space.numel, [&](const auto& offsets, int64_t count, int64_t) {
      for (int64_t i = 0; i < count; ++i) {
        const T v = x.as<T>()[offsets[0] + i * space.inner_stride(0)];
        const double number = convert<double>(v);
        outside |= nan_fails ? !(number >= low && number <= high) : number < low || number > high;
        y.as<T>()[offsets[1] + i * space.inner_stride(1)] = v;
      }
    });
  });
  if (!outside) return absl::OkStatus();
  const std::string& message = call.attributes[4].as_string();
  return call.attributes[3].as_string() == "ValueError" ? value_error(message)
                                                        : runtime_error(message);
}

GW_CPU_KERNEL("checked_range", checked_range);

}  // namespace
}  // namespace gradwire::cpu
