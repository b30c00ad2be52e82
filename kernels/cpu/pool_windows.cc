#include "kernels/cpu/pool_windows.h"

#include <algorithm>

#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

int64_t entry(const IntList& list, int axis, int64_t otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : list[std::min<size_t>(axis, list.size() - 1)];
}

PoolAxis whole() {
  PoolAxis axis;
  axis.begin = {0};
  axis.end = {1};
  axis.extent = {1};
  return axis;
}

}  // namespace

absl::Status pool_axes(const char* op, const TensorView& in, const TensorView& out,
                       const IntList& kernel, const IntList& stride, const IntList& padding,
                       const IntList& dilation, PoolAxes& axes) {
  int spatial = in.rank - 2;
  axes = {whole(), whole(), whole()};
  for (int d = 0; d < spatial; ++d) {
    PoolAxis& axis = axes[3 - spatial + d];
    int64_t k = entry(kernel, d, 1), s = entry(stride, d, k), p = entry(padding, d, 0);
    axis = PoolAxis{in.sizes[d + 2], out.sizes[d + 2], entry(dilation, d, 1), {}, {}, {}};
    if (k < 1 || s < 1 || axis.step < 1) {
      return runtime_error("[", op, "] kernel size, stride and dilation must be above 0, got ", k,
                           ", ", s, " and ", axis.step);
    }
    if (out.numel() == 0) axis.out = 0;  // the other sizes may be anything: no tables for them
    for (int64_t o = 0; o < axis.out; ++o) {
      int64_t begin = o * s - p;
      int64_t end = begin + (k - 1) * axis.step + 1;
      int64_t padded_end = std::min(end, axis.in + p);
      axis.extent.push_back(std::max<int64_t>(0, padded_end - begin));
      if (begin < 0) begin += (-begin + axis.step - 1) / axis.step * axis.step;
      axis.begin.push_back(begin);
      axis.end.push_back(std::min(end, axis.in));
    }
  }
  return absl::OkStatus();
}

PoolAxes adaptive_pool_axes(const TensorView& in, const TensorView& out) {
  int spatial = in.rank - 2;
  PoolAxes axes = {whole(), whole(), whole()};
  for (int d = 0; d < spatial; ++d) {
    PoolAxis& axis = axes[3 - spatial + d];
    axis = PoolAxis{in.sizes[d + 2], out.sizes[d + 2], 1, {}, {}, {}};
    if (out.numel() == 0) axis.out = 0;
    for (int64_t o = 0; o < axis.out; ++o) {
      __int128 wide =
          axis.in;  // an expanded input's size times an index may need more than 64 bits
      axis.begin.push_back(static_cast<int64_t>(o * wide / axis.out));
      axis.end.push_back(static_cast<int64_t>(((o + 1) * wide + axis.out - 1) / axis.out));
      axis.extent.push_back(axis.end.back() - axis.begin.back());
    }
  }
  return axes;
}

PoolTensor::PoolTensor(const TensorView& view)
    : image_stride(view.strides[0]), channel_stride(view.strides[1]) {
  int spatial = view.rank - 2;
  for (int d = 0; d < spatial; ++d) strides[3 - spatial + d] = view.strides[d + 2];
}

}  // namespace gradwire::cpu
