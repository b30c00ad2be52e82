// searchsorted: the first place whose element is not below the value, or, with `right`, above it.
#include <string>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sort_keys.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

// The sequence is 1-D, or has the dims of `values` up to its last.
absl::Status searchsorted(const KernelCall& call, Context& context) {
  const TensorView& sequence = call.inputs[0];
  const TensorView& values = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const bool right = attribute(call, 0).as_bool();
  if (sequence.dtype != values.dtype) {
    return runtime_error(
        "[searchsorted] boundaries and input value tensors should have same dtype,",
        " but got boundaries ", std::string(dtype_name(sequence.dtype)), " and input ",
        std::string(dtype_name(values.dtype)));
  }
  if (sequence.rank == 0) {
    return runtime_error("[searchsorted] boundaries tensor should have positive dimension");
  }
  const int64_t length = sequence.sizes[sequence.rank - 1];
  const int64_t step = sequence.strides[sequence.rank - 1];
  TensorView lines = values;  // where each value's sequence begins
  lines.strides.fill(0);
  for (int d = 0; d < sequence.rank - 1; ++d) lines.strides[d] = sequence.strides[d];
  const Space<3> space = space_of<3>({&values, &lines, &out});
  const auto [value_stride, line_stride, out_stride] = space.last_strides;
  dispatch_dtype(values.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_ranges(space.numel, 2048, [&](int64_t begin, int64_t end) {
      for_runs(space, begin, end, [&](const auto& at, int64_t count, int64_t) {
        for (int64_t i = 0; i < count; ++i) {
          const Key<T> key = key_of(values.as<T>()[at[0] + i * value_stride]);
          const T* line = sequence.as<T>() + at[1] + i * line_stride;
          int64_t low = 0, high = length;
          while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            const Key<T> other = key_of(line[middle * step]);
            if (right ? other <= key : other < key) {
              low = middle + 1;
            } else {
              high = middle;
            }
          }
          const int64_t place = at[2] + i * out_stride;
          if (out.dtype == DType::kInt32) {
            out.as<int32_t>()[place] = static_cast<int32_t>(low);
          } else {
            out.as<int64_t>()[place] = low;
          }
        }
      });
    });
  });
  return absl::OkStatus();
}

GW_CPU_KERNEL("searchsorted", searchsorted);

}  // namespace
}  // namespace gradwire::cpu
