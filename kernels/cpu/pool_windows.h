// The windows of a pooling over one to three spatial dimensions, axis by axis.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/attribute.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

// Window o of an axis takes begin[o], begin[o] + step, ... below end[o]; `extent[o]` is its length
// with the padding it covers.
struct PoolAxis {
  int64_t in = 1, out = 1, step = 1;
  std::vector<int64_t> begin, end, extent;

  int64_t count(int64_t o) const {
    return end[o] <= begin[o] ? 0 : (end[o] - begin[o] + step - 1) / step;
  }
};

using PoolAxes =
    std::array<PoolAxis, 3>;  // the missing leading ones have one window of one element

// `in` and `out` are tensors [N, C, ...]; lists of one number hold for all axes, an empty stride is
// the kernel. Fails on a stride or dilation below 1 or a kernel below 1.
absl::Status pool_axes(const char* op, const TensorView& in, const TensorView& out,
                       const IntList& kernel, const IntList& stride, const IntList& padding,
                       const IntList& dilation, PoolAxes& axes);
PoolAxes adaptive_pool_axes(const TensorView& in, const TensorView& out);

// A tensor [N, C, ...] with always three spatial dimensions.
struct PoolTensor {
  int64_t image_stride = 0, channel_stride = 0;
  std::array<int64_t, 3> strides{};

  explicit PoolTensor(const TensorView& view);
  int64_t offset(int64_t a, int64_t b, int64_t c) const {
    return a * strides[0] + b * strides[1] + c * strides[2];
  }
};

// How averages divide: by the elements taken, by the window with its padding, or by a number.
struct PoolDivisor {
  bool count_include_pad = false;
  int64_t override_with = 0;  // 0: none
};

absl::Status pool_max(const PoolAxes& axes, const TensorView& x, const TensorView& out,
                      const TensorView& indices, ThreadPool& pool);
// Adds each gradient to the element that its index names within the plane.
absl::Status pool_max_backward(const TensorView& grad, const TensorView& indices,
                               const TensorView& dx, ThreadPool& pool);
absl::Status pool_average(const PoolAxes& axes, const PoolDivisor& divisor, const TensorView& x,
                          const TensorView& out, ThreadPool& pool);
absl::Status pool_average_backward(const PoolAxes& axes, const PoolDivisor& divisor,
                                   const TensorView& grad, const TensorView& dx, ThreadPool& pool);

}  // namespace gradwire::cpu
