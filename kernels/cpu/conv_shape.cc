#include "kernels/cpu/conv_shape.h"

#include <algorithm>

#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

int64_t entry(const IntList& list, int axis, int64_t otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : list[std::min<size_t>(axis, list.size() - 1)];
}

}  // namespace

int64_t ConvShape::image_block() const {
  if (images == 0) return 1;
  int64_t blocks = std::clamp<int64_t>(static_cast<int64_t>(work() / 4e6), 1, 8);
  return (images + blocks - 1) / blocks;
}

absl::Status conv_shape(const char* op, const TensorView& x, const TensorView& w,
                        const TensorView& y, const AttributeList& attributes, ConvShape& shape) {
  if (x.rank < 3 || x.rank > 5 || w.rank != x.rank || y.rank != x.rank) {
    return runtime_error("[", op, "] expected tensors of rank 3 to 5, got ", x.rank, ", ", w.rank,
                         " and ", y.rank);
  }
  shape.spatial = x.rank - 2;
  shape.images = x.sizes[0];
  shape.in_channels = x.sizes[1];
  shape.out_channels = w.sizes[0];
  shape.groups = attributes[3].as_int();
  if (shape.groups < 1 || shape.in_channels % shape.groups != 0 ||
      shape.out_channels % shape.groups != 0 || w.sizes[1] != shape.in_channels / shape.groups ||
      y.sizes[0] != shape.images || y.sizes[1] != shape.out_channels) {
    return runtime_error("[", op, "] ", shape.groups, " groups of weight [", w.sizes[0], ", ",
                         w.sizes[1], ", ...] do not fit ", shape.in_channels, " input and ",
                         y.sizes[1], " output channels");
  }
  for (int d = 0; d < shape.spatial; ++d) {
    int at = 3 - shape.spatial + d;
    shape.in[at] = x.sizes[d + 2];
    shape.out[at] = y.sizes[d + 2];
    shape.kernel[at] = w.sizes[d + 2];
    shape.stride[at] = entry(attributes[0].as_ints(), d, 1);
    shape.padding[at] = entry(attributes[1].as_ints(), d, 0);
    shape.dilation[at] = entry(attributes[2].as_ints(), d, 1);
    if (shape.stride[at] < 1 || shape.dilation[at] < 1) {
      return runtime_error("[", op, "] stride and dilation must be above 0, got ", shape.stride[at],
                           " and ", shape.dilation[at]);
    }
  }
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
