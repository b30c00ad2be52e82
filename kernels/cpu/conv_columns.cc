#include "kernels/cpu/conv_columns.h"

#include <algorithm>
#include <atomic>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/gemm.h"

namespace gradwire::cpu {
namespace {

// Output positions per matrix product: the columns should stay in the second-level cache.
int64_t tile_of(const ConvShape& s) {
  int64_t fit = (1 << 17) / std::max<int64_t>(1, s.depth());
  return std::clamp<int64_t>(fit, 64, std::max<int64_t>(64, s.out_plane()));
}

// Calls f(row of the columns, first output position, stretch, input offset or -1, step) for
// stretches of output positions in [begin, end) along the innermost dimension.
template <class F>
void for_taps(const ConvShape& s, int64_t begin, int64_t end, F&& f) {
  int64_t row = 0;
  for (int64_t c = 0; c < s.group_in(); ++c) {
    for (int64_t i = 0; i < s.kernel[0]; ++i) {
      for (int64_t j = 0; j < s.kernel[1]; ++j) {
        for (int64_t k = 0; k < s.kernel[2]; ++k, ++row) {
          for (int64_t at = begin; at < end;) {
            int64_t col = at % s.out[2];
            int64_t line = at / s.out[2];
            int64_t n = std::min(end - at, s.out[2] - col);
            int64_t z = line / s.out[1] * s.stride[0] - s.padding[0] + i * s.dilation[0];
            int64_t y = line % s.out[1] * s.stride[1] - s.padding[1] + j * s.dilation[1];
            int64_t x = col * s.stride[2] - s.padding[2] + k * s.dilation[2];
            bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
            int64_t base = inside ? ((c * s.in[0] + z) * s.in[1] + y) * s.in[2] : -1;
            f(row, at - begin, n, base, x);
            at += n;
          }
        }
      }
    }
  }
}

// Of positions 0 ... n - 1 at x, x + step, ...: those inside [0, width) are [first, last).
void inside_range(int64_t x, int64_t step, int64_t n, int64_t width, int64_t& first,
                  int64_t& last) {
  first = x >= 0 ? 0 : std::min(n, (-x + step - 1) / step);
  last = x >= width ? 0 : std::min(n, (width - x + step - 1) / step);
  last = std::max(first, last);
}

template <class C>
void to_columns(const ConvShape& s, const C* x, int64_t begin, int64_t end, C* columns) {
  int64_t width = end - begin;
  for_taps(s, begin, end, [&](int64_t row, int64_t at, int64_t n, int64_t base, int64_t first_x) {
    C* to = columns + row * width + at;
    if (base < 0) {
      std::fill(to, to + n, C(0));
      return;
    }
    int64_t first, last;
    inside_range(first_x, s.stride[2], n, s.in[2], first, last);
    std::fill(to, to + first, C(0));
    const C* from = x + base + first_x;
    if (s.stride[2] == 1) {
      std::copy(from + first, from + last, to + first);
    } else {
      for (int64_t i = first; i < last; ++i) to[i] = from[i * s.stride[2]];
    }
    std::fill(to + last, to + n, C(0));
  });
}

template <class C>
void add_columns(const ConvShape& s, const C* columns, int64_t begin, int64_t end, C* dx) {
  int64_t width = end - begin;
  for_taps(s, begin, end, [&](int64_t row, int64_t at, int64_t n, int64_t base, int64_t first_x) {
    if (base < 0) return;
    int64_t first, last;
    inside_range(first_x, s.stride[2], n, s.in[2], first, last);
    const C* from = columns + row * width + at;
    C* to = dx + base + first_x;
    for (int64_t i = first; i < last; ++i) to[i * s.stride[2]] += from[i];
  });
}

template <class C>
Matrix<C> dense_matrix(C* data, int64_t rows, int64_t cols, int64_t step) {
  return {data, rows, cols, step, 1};
}

}  // namespace

template <class C>
absl::Status conv_columns(const ConvShape& s, const C* x, const C* w, const C* bias, C* y,
                          ThreadPool& pool) {
  int64_t tile = tile_of(s), plane = s.out_plane();
  int64_t tiles = (plane + tile - 1) / tile;
  std::atomic<bool> failed = false;
  auto one = [&](int64_t unit) {
    int64_t image = unit / (s.groups * tiles), group = unit / tiles % s.groups;
    int64_t begin = unit % tiles * tile, end = std::min(plane, begin + tile);
    Scratch scratch(static_cast<size_t>(s.depth() * (end - begin) + 16) * sizeof(C));
    if (!scratch.data()) {
      failed = true;
      return;
    }
    to_columns(s, x + (image * s.in_channels + group * s.group_in()) * s.in_plane(), begin, end,
               scratch.as<C>());
    int64_t channel = group * s.group_out();
    C* to = y + (image * s.out_channels + channel) * plane + begin;
    for (int64_t o = 0; bias && o < s.group_out(); ++o) {
      std::fill(to + o * plane, to + o * plane + (end - begin), bias[channel + o]);
    }
    gemm(C(1), dense_matrix<const C>(w + channel * s.depth(), s.group_out(), s.depth(), s.depth()),
         dense_matrix<const C>(scratch.as<C>(), s.depth(), end - begin, end - begin),
         bias ? C(1) : C(0), dense_matrix<C>(to, s.group_out(), end - begin, plane));
  };
  int64_t units = s.images * s.groups * tiles;
  int64_t grain =
      std::max<int64_t>(1, static_cast<int64_t>(5e5 * static_cast<double>(units) / (s.work() + 1)));
  pool.parallel_ranges(units, grain, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) one(unit);
  });
  return failed ? scratch_error() : absl::OkStatus();
}

template <class C>
absl::Status conv_columns_backward_input(const ConvShape& s, const C* grad, const C* w, C* dx,
                                         ThreadPool& pool) {
  int64_t tile = tile_of(s), plane = s.out_plane();
  std::atomic<bool> failed = false;
  pool.parallel_for(s.images * s.groups, [&](int64_t unit) {
    int64_t image = unit / s.groups, group = unit % s.groups;
    Scratch scratch(static_cast<size_t>(s.depth() * std::min(tile, plane) + 16) * sizeof(C));
    if (!scratch.data()) {
      failed = true;
      return;
    }
    C* to = dx + (image * s.in_channels + group * s.group_in()) * s.in_plane();
    std::fill(to, to + s.group_in() * s.in_plane(), C(0));
    const C* from = grad + (image * s.out_channels + group * s.group_out()) * plane;
    auto weight = dense_matrix<const C>(w + group * s.group_out() * s.depth(), s.group_out(),
                                        s.depth(), s.depth());
    for (int64_t begin = 0; begin < plane; begin += tile) {
      int64_t n = std::min(tile, plane - begin);
      gemm(C(1), weight.transposed(), dense_matrix<const C>(from + begin, s.group_out(), n, plane),
           C(0), dense_matrix<C>(scratch.as<C>(), s.depth(), n, n));
      add_columns(s, scratch.as<C>(), begin, begin + n, to);
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

template <class C>
absl::Status conv_columns_backward_weight(const ConvShape& s, const C* grad, const C* x, C* dw,
                                          ThreadPool& pool) {
  int64_t tile = tile_of(s), plane = s.out_plane(), size = s.out_channels * s.depth();
  int64_t block = s.image_block(), blocks = (s.images + block - 1) / block;
  Scratch partial(static_cast<size_t>(blocks * size + 16) * sizeof(C));
  if (!partial.data()) return scratch_error();
  std::atomic<bool> failed = false;
  pool.parallel_for(blocks * s.groups, [&](int64_t unit) {
    int64_t b = unit / s.groups, group = unit % s.groups;
    Scratch scratch(static_cast<size_t>(s.depth() * std::min(tile, plane) + 16) * sizeof(C));
    if (!scratch.data()) {
      failed = true;
      return;
    }
    auto to = dense_matrix<C>(partial.as<C>() + b * size + group * s.group_out() * s.depth(),
                              s.group_out(), s.depth(), s.depth());
    std::fill(to.data, to.data + to.rows * to.cols, C(0));
    for (int64_t image = b * block; image < std::min(s.images, (b + 1) * block); ++image) {
      const C* from = x + (image * s.in_channels + group * s.group_in()) * s.in_plane();
      const C* g = grad + (image * s.out_channels + group * s.group_out()) * plane;
      for (int64_t begin = 0; begin < plane; begin += tile) {
        int64_t n = std::min(tile, plane - begin);
        to_columns(s, from, begin, begin + n, scratch.as<C>());
        gemm(C(1), dense_matrix<const C>(g + begin, s.group_out(), n, plane),
             dense_matrix<const C>(scratch.as<C>(), s.depth(), n, n).transposed(), C(1), to);
      }
    }
  });
  if (failed) return scratch_error();
  std::fill(dw, dw + size, C(0));
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t i = 0; i < size; ++i) dw[i] += partial.as<C>()[b * size + i];
  }
  return absl::OkStatus();
}

#define GW_COLUMNS(C)                                                                             \
  template absl::Status conv_columns<C>(const ConvShape&, const C*, const C*, const C*, C*,       \
                                        ThreadPool&);                                             \
  template absl::Status conv_columns_backward_input<C>(const ConvShape&, const C*, const C*, C*,  \
                                                       ThreadPool&);                              \
  template absl::Status conv_columns_backward_weight<C>(const ConvShape&, const C*, const C*, C*, \
                                                        ThreadPool&)
GW_COLUMNS(float);
GW_COLUMNS(double);
#undef GW_COLUMNS

}  // namespace gradwire::cpu
