// Resampling of images axis by axis: every output is a weighted sum of a few inputs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

enum class ResampleMode : int64_t { kNearest = 0, kNearestExact = 1, kLinear = 2, kCubic = 3 };

// Output o of an axis is the sum of weight[o * taps + t] * input[place[o * taps + t]].
template <class C>
struct ResampleAxis {
  int64_t in = 1, out = 1, taps = 1;
  std::vector<int64_t> place{0};
  std::vector<C> weight{C(1)};
};
template <class C>
using ResampleAxes = std::array<ResampleAxis<C>, 3>;  // missing leading axes are one wide

// Attributes of the call: mode, align_corners, antialias, scales (empty, or one factor for each
// axis, 0 for "by the sizes"). `in` and `out` are [N, C, ...].
template <class C>
ResampleAxes<C> resample_axes(const KernelCall& call, const TensorView& in, const TensorView& out);

// The whole-number form for uint8: 16-bit weights, each axis rounded by itself, the last first.
absl::Status resample_bytes(const KernelCall& call, const TensorView& x, const TensorView& out,
                            ThreadPool& pool);

}  // namespace gradwire::cpu
