#include "kernels/cpu/norm_channels.h"

#include <algorithm>
#include <atomic>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/norm_rows.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrainElements = 1 << 14;

int64_t padded(int64_t n) {
  return (n + 15) / 16 * 16;
}

// A tensor seen as rows of channels (channels last, or no further dimensions) or as planes.
struct Layout {
  bool channels_inner = false;
  int64_t channels = 0;
  int64_t rows = 0;    // N times the spatial size
  int64_t images = 0;  // N
  int64_t plane = 0;   // the spatial size

  explicit Layout(const TensorView& x) {
    channels = x.sizes[1];
    images = x.sizes[0];
    plane = 1;
    for (int d = 2; d < x.rank; ++d) plane *= x.sizes[d];
    rows = images * plane;
    channels_inner = plane == 1 || (x.strides[1] == 1 && channels > 1);
  }
  int64_t row_block() const { return std::clamp<int64_t>(kGrainElements / channels, 64, 512); }
  int64_t channel_grain() const { return std::max<int64_t>(1, kGrainElements / (rows + 1)); }
};

struct Maps {
  IndexMap rows, channel, plane;
  int64_t image_stride = 0, channel_stride = 0;

  explicit Maps(const TensorView& v) {
    if (!v.present()) return;
    rows = map_without(v, 1);
    channel = map_dims(v, 1, 2);
    plane = map_dims(v, 2, v.rank);
    image_stride = v.strides[0];
    channel_stride = v.strides[1];
  }
  int64_t plane_offset(int64_t n, int64_t c) const { return n * image_stride + c * channel_stride; }
};

template <class C>
void add_row(ChannelSum what, const C* g, const C* x, const C* center, C* sums, C* dots,
             int64_t n) {
  using S = Simd<C>;
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    auto v = load_lanes<C>(x + i, lanes, C(0));
    if (center) v = v - load_lanes<C>(center + i, lanes, C(0));
    auto sum = load_lanes<C>(sums + i, lanes, C(0));
    if (what == ChannelSum::kValue) {
      sum = sum + v;
    } else if (what == ChannelSum::kDeviation) {
      sum = S::fma(v, v, sum);
    } else {
      auto gv = load_lanes<C>(g + i, lanes, C(0));
      sum = sum + gv;
      store_lanes<C>(dots + i, lanes, S::fma(gv, v, load_lanes<C>(dots + i, lanes, C(0))));
    }
    store_lanes<C>(sums + i, lanes, sum);
  });
}

template <class T>
absl::Status sums_by_rows(ChannelSum what, const TensorView& g, const TensorView& x,
                          const double* center, double* sums, double* dots, const Layout& layout,
                          ThreadPool& pool) {
  using C = ComputeOf<T>;
  int64_t n = layout.channels, block = layout.row_block();
  int64_t blocks = (layout.rows + block - 1) / block;
  Maps mg(g), mx(x);
  Scratch partial(static_cast<size_t>((2 * blocks + 1) * padded(n)) * sizeof(C));
  if (!partial.data()) return scratch_error();
  C* centers = partial.as<C>() + 2 * blocks * padded(n);
  if (center) std::copy(center, center + n, centers);
  std::atomic<bool> failed = false;
  pool.parallel_for(blocks, [&](int64_t b) {
    Scratch scratch(static_cast<size_t>(2 * padded(n)) * sizeof(C));
    C* buffer = scratch.as<C>();
    if (!buffer) {
      failed = true;
      return;
    }
    C* at = partial.as<C>() + 2 * b * padded(n);
    std::fill(at, at + 2 * padded(n), C(0));
    for (int64_t r = b * block; r < std::min(layout.rows, (b + 1) * block); ++r) {
      const C* row = read_row(x.as<const T>() + mx.rows.offset(r), mx.channel, n, buffer);
      const C* grad = row;
      if (g.present()) {
        grad = read_row(g.as<const T>() + mg.rows.offset(r), mg.channel, n, buffer + padded(n));
      }
      add_row(what, grad, row, center ? centers : nullptr, at, at + padded(n), n);
    }
  });
  if (failed) return scratch_error();
  for (int64_t b = 0; b < blocks; ++b) {
    const C* at = partial.as<C>() + 2 * b * padded(n);
    for (int64_t c = 0; c < n; ++c) sums[c] += static_cast<double>(at[c]);
    if (!dots) continue;
    for (int64_t c = 0; c < n; ++c) dots[c] += static_cast<double>(at[padded(n) + c]);
  }
  return absl::OkStatus();
}

// Calls f(channel, image, grad plane, plane, buffer for a result) with the planes as rows of C.
template <class T, class F>
absl::Status over_planes(const TensorView& g, const TensorView& x, const Layout& layout,
                         ThreadPool& pool, F&& f) {
  using C = ComputeOf<T>;
  Maps mg(g), mx(x);
  int64_t n = layout.plane;
  std::atomic<bool> failed = false;
  pool.parallel_ranges(layout.channels, layout.channel_grain(), [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(3 * padded(n)) * sizeof(C));
    C* buffer = scratch.as<C>();
    if (!buffer) {
      failed = true;
      return;
    }
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t i = 0; i < layout.images; ++i) {
        const C* plane = read_row(x.as<const T>() + mx.plane_offset(i, c), mx.plane, n, buffer);
        const C* grad = plane;
        if (g.present()) {
          grad = read_row(g.as<const T>() + mg.plane_offset(i, c), mg.plane, n, buffer + padded(n));
        }
        f(c, i, grad, plane, buffer + 2 * padded(n));
      }
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

// Calls f(grad row, row, out row) for blocks of rows of channels.
template <class T, class F>
absl::Status map_rows(const TensorView& g, const TensorView& x, const TensorView& out,
                      const Layout& layout, ThreadPool& pool, F&& f) {
  using C = ComputeOf<T>;
  Maps mg(g), mx(x), mo(out);
  int64_t n = layout.channels;
  std::atomic<bool> failed = false;
  pool.parallel_ranges(layout.rows, layout.row_block(), [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(3 * padded(n)) * sizeof(C));
    C* buffer = scratch.as<C>();
    if (!buffer) {
      failed = true;
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      const C* row = read_row(x.as<const T>() + mx.rows.offset(r), mx.channel, n, buffer);
      const C* grad = row;
      if (g.present()) {
        grad = read_row(g.as<const T>() + mg.rows.offset(r), mg.channel, n, buffer + padded(n));
      }
      T* at = out.as<T>() + mo.rows.offset(r);
      C* to = row_target(at, mo.channel, n, buffer + 2 * padded(n));
      f(grad, row, to);
      write_row(to, buffer + 2 * padded(n), n, at, mo.channel);
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

// The four coefficients in C, each padded(channels) long.
template <class C>
void copy_coefficients(int64_t n, std::initializer_list<const double*> from, C* to) {
  for (const double* p : from) {
    std::copy(p, p + n, to);
    to += padded(n);
  }
}

}  // namespace

template <class T>
absl::Status channel_sums(ChannelSum what, const TensorView& g, const TensorView& x,
                          const double* center, double* sums, double* dots, ThreadPool& pool) {
  using C = ComputeOf<T>;
  Layout layout(x);
  std::fill(sums, sums + layout.channels, 0.0);
  if (dots) std::fill(dots, dots + layout.channels, 0.0);
  if (layout.rows == 0 || layout.channels == 0) return absl::OkStatus();
  if (layout.channels_inner) {
    return sums_by_rows<T>(what, g, x, center, sums, dots, layout, pool);
  }
  int64_t n = layout.plane;
  return over_planes<T>(g, x, layout, pool, [&](int64_t c, int64_t, auto* grad, auto* row, C*) {
    switch (what) {
      case ChannelSum::kValue:
        sums[c] += static_cast<double>(row_sum(row, n));
        break;
      case ChannelSum::kDeviation:
        sums[c] += static_cast<double>(row_deviation(row, n, static_cast<C>(center[c])));
        break;
      case ChannelSum::kGradient:
        sums[c] += static_cast<double>(row_sum(grad, n));
        dots[c] += static_cast<double>(row_centered_dot(grad, row, n, static_cast<C>(center[c])));
        break;
    }
  });
}

template <class T>
absl::Status channel_affine(const TensorView& x, const double* mean, const double* a,
                            const double* c0, const TensorView& out, ThreadPool& pool) {
  using C = ComputeOf<T>;
  using S = Simd<C>;
  Layout layout(x);
  if (out.numel() == 0) return absl::OkStatus();
  TensorView none;
  if (layout.channels_inner) {
    int64_t n = layout.channels, step = padded(n);
    Scratch scratch(static_cast<size_t>(3 * step) * sizeof(C));
    C* k = scratch.as<C>();
    if (!k) return scratch_error();
    copy_coefficients(n, {mean, a, c0}, k);
    return map_rows<T>(none, x, out, layout, pool, [&](const C*, const C* row, C* to) {
      for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
        auto v = load_lanes<C>(row + i, lanes, C(0)) - S::load(k + i);
        store_lanes<C>(to + i, lanes, S::fma(v, S::load(k + step + i), S::load(k + 2 * step + i)));
      });
    });
  }
  Maps mo(out);
  int64_t n = layout.plane;
  auto one = [&](int64_t c, int64_t i, const C*, const C* row, C* buffer) {
    T* at = out.as<T>() + mo.plane_offset(i, c);
    C* to = row_target(at, mo.plane, n, buffer);
    row_affine(row, to, n, C(mean[c]), C(a[c]), C(c0[c]));
    write_row(to, buffer, n, at, mo.plane);
  };
  return over_planes<T>(none, x, layout, pool, one);
}

template <class T>
absl::Status channel_gradient(const TensorView& g, const TensorView& x, const double* mean,
                              const double* a, const double* b, const double* c0,
                              const TensorView& out, ThreadPool& pool) {
  using C = ComputeOf<T>;
  using S = Simd<C>;
  Layout layout(x);
  if (out.numel() == 0) return absl::OkStatus();
  if (layout.channels_inner) {
    int64_t n = layout.channels, step = padded(n);
    Scratch scratch(static_cast<size_t>(4 * step) * sizeof(C));
    C* k = scratch.as<C>();
    if (!k) return scratch_error();
    copy_coefficients(n, {mean, a, b, c0}, k);
    return map_rows<T>(g, x, out, layout, pool, [&](const C* grad, const C* row, C* to) {
      for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
        auto d = (load_lanes<C>(row + i, lanes, C(0)) - S::load(k + i)) * S::load(k + 2 * step + i);
        auto v = load_lanes<C>(grad + i, lanes, C(0)) * S::load(k + step + i);
        store_lanes<C>(to + i, lanes, (v - d) - S::load(k + 3 * step + i));
      });
    });
  }
  Maps mo(out);
  int64_t n = layout.plane;
  auto one = [&](int64_t c, int64_t i, const C* grad, const C* row, C* buffer) {
    T* at = out.as<T>() + mo.plane_offset(i, c);
    C* to = row_target(at, mo.plane, n, buffer);
    row_gradient(grad, row, to, n, C(mean[c]), C(a[c]), C(b[c]), C(c0[c]));
    write_row(to, buffer, n, at, mo.plane);
  };
  return over_planes<T>(g, x, layout, pool, one);
}

#define GW_CHANNELS(T)                                                                           \
  template absl::Status channel_sums<T>(ChannelSum, const TensorView&, const TensorView&,        \
                                        const double*, double*, double*, ThreadPool&);           \
  template absl::Status channel_affine<T>(const TensorView&, const double*, const double*,       \
                                          const double*, const TensorView&, ThreadPool&);        \
  template absl::Status channel_gradient<T>(const TensorView&, const TensorView&, const double*, \
                                            const double*, const double*, const double*,         \
                                            const TensorView&, ThreadPool&)
GW_CHANNELS(float);
GW_CHANNELS(double);
GW_CHANNELS(Half);
GW_CHANNELS(BFloat16);
#undef GW_CHANNELS

}  // namespace gradwire::cpu
