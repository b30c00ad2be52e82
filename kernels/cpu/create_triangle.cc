// triangle_indices: attributes rows, columns, offset, lower; output [2, n] of int64 or int32.
#include <algorithm>

#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

absl::Status triangle_indices(const KernelCall& call, Context&) {
  const TensorView& out = call.outputs[0];
  const int64_t rows = attribute(call, 0).as_int(), columns = attribute(call, 1).as_int();
  const __int128 offset = attribute(call, 2).as_int();
  const bool lower = attribute(call, 3).as_bool();
  const int64_t count = out.sizes[1];
  auto write = [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    int64_t at = 0;
    // Rows above the diagonal have no place.
    const auto first = static_cast<int64_t>(std::clamp<__int128>(lower ? -offset : 0, 0, rows));
    for (int64_t i = first; i < rows && at < count; ++i) {
      const __int128 edge = std::clamp<__int128>(i + offset + (lower ? 1 : 0), 0, columns);
      const int64_t begin = lower ? 0 : static_cast<int64_t>(edge);
      const int64_t end = lower ? static_cast<int64_t>(edge) : columns;
      for (int64_t j = begin; j < end && at < count; ++j, ++at) {
        to[at * out.strides[1]] = static_cast<T>(i);
        to[at * out.strides[1] + out.strides[0]] = static_cast<T>(j);
      }
    }
    return at == count ? absl::OkStatus()
                       : internal_error("[triangle_indices] has ", at, " places, not ", count);
  };
  return out.dtype == DType::kInt64 ? write(out.as<int64_t>()) : write(out.as<int32_t>());
}

GW_CPU_KERNEL("triangle_indices", triangle_indices);

}  // namespace
}  // namespace gradwire::cpu
