// The geometry of a convolution y = conv(x, w), the same for its three kernels.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/attribute.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

// x [images, in_channels, in...], w [out_channels, in_channels / groups, kernel...],
// y [images, out_channels, out...]. Three spatial dimensions; missing leading ones are 1 wide.
struct ConvShape {
  int64_t images = 0, in_channels = 0, out_channels = 0, groups = 1;
  int spatial = 2;  // how many of the three the tensors have
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t depth() const { return group_in() * taps(); }
  double work() const {
    return 2.0 * static_cast<double>(images) * static_cast<double>(out_channels * out_plane()) *
           static_cast<double>(depth());
  }
  // Images in one unit of work: at most eight units, each worth handing to a thread.
  int64_t image_block() const;
};

// Attributes: stride, padding, dilation, groups; a list of one number holds for all dimensions.
// Fails on tensors that do not fit together.
absl::Status conv_shape(const char* op, const TensorView& x, const TensorView& w,
                        const TensorView& y, const AttributeList& attributes, ConvShape& shape);

}  // namespace gradwire::cpu
