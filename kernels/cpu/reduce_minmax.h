// The check that all reductions without an identity share.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/cpu/reduce.h"
#include "kernels/error.h"

namespace gradwire::cpu {

// An error when outputs would have to be made from no elements; torch's kinds: IndexError for a
// named dim, RuntimeError for the whole tensor.
inline absl::Status check_not_empty(std::string_view name, const TensorView& in, uint32_t dims,
                                    bool whole) {
  int64_t kept = 1;
  for (int d = 0; d < in.rank; ++d) {
    if (!(dims >> d & 1)) kept *= in.sizes[d];
  }
  if (kept == 0 || reduced_numel(in, dims) != 0) return absl::OkStatus();
  const absl::string_view op(name.data(), name.size());
  if (whole) {
    return runtime_error("[", op, "] Expected reduction dim to be specified for ",
                         "input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  }
  int d = 0;
  while (!(dims >> d & 1) || in.sizes[d] != 0) ++d;
  return index_error("[", op, "] Expected reduction dim ", d, " to have non-zero size.");
}

}  // namespace gradwire::cpu
