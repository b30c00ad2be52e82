// unfold and fold of images: windows as columns, and columns added back to images.
#include <algorithm>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Image [N, C, H, W] and columns [N, C * kH * kW, oH * oW].
struct Columns {
  int64_t images, channels, height, width;
  int64_t kernel[2], dilation[2], padding[2], stride[2], out[2];
};

// Attributes: kernel, dilation, padding, stride, number of windows, two each.
Columns columns_of(const KernelCall& call, const TensorView& image) {
  Columns c{image.sizes[0], image.sizes[1], image.sizes[2], image.sizes[3], {}, {}, {}, {}, {}};
  for (int i = 0; i < 2; ++i) {
    c.kernel[i] = call.attributes[0].as_ints()[i];
    c.dilation[i] = call.attributes[1].as_ints()[i];
    c.padding[i] = call.attributes[2].as_ints()[i];
    c.stride[i] = call.attributes[3].as_ints()[i];
    c.out[i] = call.attributes[4].as_ints()[i];
  }
  return c;
}

// Calls f(column row, column position, image y, image x) for the windows of one channel.
template <class F>
void for_taps(const Columns& c, F&& f) {
  for (int64_t i = 0; i < c.kernel[0]; ++i) {
    for (int64_t j = 0; j < c.kernel[1]; ++j) {
      for (int64_t a = 0; a < c.out[0]; ++a) {
        int64_t y = a * c.stride[0] - c.padding[0] + i * c.dilation[0];
        for (int64_t b = 0; b < c.out[1]; ++b) {
          int64_t x = b * c.stride[1] - c.padding[1] + j * c.dilation[1];
          bool inside = y >= 0 && y < c.height && x >= 0 && x < c.width;
          f(i * c.kernel[1] + j, a * c.out[1] + b, inside ? y : -1, x);
        }
      }
    }
  }
}

int64_t grain_of(const Columns& c) {
  int64_t work = c.kernel[0] * c.kernel[1] * c.out[0] * c.out[1];
  return std::max<int64_t>(1, (1 << 14) / (work + 1));
}

template <class T>
void to_columns(const Columns& c, const TensorView& image, const TensorView& columns,
                ThreadPool& pool) {
  pool.parallel_ranges(c.images * c.channels, grain_of(c), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t n = p / c.channels, channel = p % c.channels;
      const T* from = image.as<const T>() + n * image.strides[0] + channel * image.strides[1];
      T* to = columns.as<T>() + n * columns.strides[0] +
              channel * c.kernel[0] * c.kernel[1] * columns.strides[1];
      for_taps(c, [&](int64_t row, int64_t at, int64_t y, int64_t x) {
        to[row * columns.strides[1] + at * columns.strides[2]] =
            y < 0 ? T{} : from[y * image.strides[2] + x * image.strides[3]];
      });
    }
  });
}

absl::Status im2col(const KernelCall& call, Context& context) {
  const TensorView &image = call.inputs[0], &columns = call.outputs[0];
  if (columns.numel() == 0) return absl::OkStatus();
  Columns c = columns_of(call, image);
  switch (dtype_size(image.dtype)) {
    case 1:
      to_columns<uint8_t>(c, image, columns, context.pool);
      break;
    case 2:
      to_columns<uint16_t>(c, image, columns, context.pool);
      break;
    case 4:
      to_columns<uint32_t>(c, image, columns, context.pool);
      break;
    default:
      to_columns<uint64_t>(c, image, columns, context.pool);
  }
  return absl::OkStatus();
}
GW_CPU_KERNEL("im2col", im2col);

template <class T>
absl::Status from_columns(const Columns& c, const TensorView& columns, const TensorView& image,
                          ThreadPool& pool) {
  using C = ComputeOf<T>;
  DenseOutput<C> sums(image, pool);
  if (!sums.ok()) return scratch_error();
  int64_t plane = c.height * c.width;
  pool.parallel_ranges(c.images * c.channels, grain_of(c), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t n = p / c.channels, channel = p % c.channels;
      C* to = sums.data() + p * plane;
      std::fill(to, to + plane, C(0));
      const T* from = columns.as<const T>() + n * columns.strides[0] +
                      channel * c.kernel[0] * c.kernel[1] * columns.strides[1];
      for_taps(c, [&](int64_t row, int64_t at, int64_t y, int64_t x) {
        if (y < 0) return;
        to[y * c.width + x] +=
            static_cast<C>(from[row * columns.strides[1] + at * columns.strides[2]]);
      });
    }
  });
  sums.store();
  return absl::OkStatus();
}

absl::Status col2im(const KernelCall& call, Context& context) {
  const TensorView &columns = call.inputs[0], &image = call.outputs[0];
  if (image.numel() == 0) return absl::OkStatus();
  Columns c = columns_of(call, image);
  absl::Status status;
  bool known = visit_floating(image.dtype, [&](auto tag) {
    status = from_columns<decltype(tag)>(c, columns, image, context.pool);
  });
  return known ? status : dtype_error("col2im", image.dtype);
}
GW_CPU_KERNEL("col2im", col2im);

}  // namespace
}  // namespace gradwire::cpu
