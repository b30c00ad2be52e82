// The one driver of all reductions. It cuts the work by the shape and strides of the input alone,
// folds blocks of accumulators and merges the parts of long reductions in a fixed binary tree, so
// results are bitwise equal for any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "kernels/cpu/registry.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

// Operations on arrays of accumulators of `acc_size` bytes, at most kMaxAccumulator.
struct Reducer {
  size_t acc_size;
  void (*init)(void* acc, int64_t n);
  // acc[k] takes in[k * kept_stride + r * reduced_stride] for all k < kept and r < reduced.
  // `index` is the linear position of r = 0 in the reduced dimensions.
  void (*fold)(void* acc, const void* in, int64_t kept, int64_t kept_stride, int64_t reduced,
               int64_t reduced_stride, int64_t index);
  // acc[k] takes later[k], whose elements come after acc[k]'s.
  void (*merge)(void* acc, const void* later, int64_t n);
};

inline constexpr size_t kMaxAccumulator = 24;

// Writes `n` finished accumulators at these offsets and strides of up to two outputs.
using StoreAccumulators =
    std::function<void(const void* acc, int64_t n, const std::array<int64_t, 2>& offsets,
                       const std::array<int64_t, 2>& strides)>;

// Bit d is set for every reduced dim d. None or an empty list means all dims.
uint32_t reduced_dims(const Attribute& dims, int rank);
// Elements folded into each output.
int64_t reduced_numel(const TensorView& in, uint32_t dims);

// Reads the input's memory, or context.source where there is one; the same bits either way. Error:
// unimplemented, where the input's order does not suit a source.
// `out1` may be null. Outputs have keepdim form, or any form when all dims are reduced. With
// `ordered` the reduced elements arrive in row-major order.
absl::Status reduce(const TensorView& in, const TensorView& out0, const TensorView* out1,
                    uint32_t dims, bool ordered, const Reducer& reducer,
                    const StoreAccumulators& store, Context& context);

}  // namespace gradwire::cpu
