// grid_sampler_2d and 3d and their gradients.
#include <algorithm>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/grid_taps.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Input [N, C, ...], grid [N, ..., S] and output [N, C, ...] over S = 2 or 3 dimensions.
struct Sampling {
  int spatial;
  GridRule rule;
  IndexMap points;   // of one image of the grid, without its last dimension
  IndexMap outputs;  // of one plane of the output
};

// Attributes: mode, padding, align_corners.
Sampling sampling_of(const KernelCall& call, const TensorView& grid, const TensorView& out) {
  GridRule rule{static_cast<GridMode>(call.attributes[0].as_int()),
                static_cast<GridPadding>(call.attributes[1].as_int()), call.attributes[2].as_bool(),
                grid.rank == 4};
  return {grid.rank - 2, rule, map_dims(grid, 1, grid.rank - 1), map_dims(out, 2, out.rank)};
}

// The axes of one point: dimension d of the image is coordinate S - 1 - d of the grid.
template <class T, class C>
std::array<GridAxis<C>, 3> axes_of(const Sampling& s, const TensorView& x, const T* point,
                                   int64_t step) {
  std::array<GridAxis<C>, 3> axes;
  for (auto& axis : axes) axis.weight[0] = 1;
  for (int d = 0; d < s.spatial; ++d) {
    auto at = static_cast<C>(point[(s.spatial - 1 - d) * step]);
    axes[static_cast<size_t>(3 - s.spatial + d)] = grid_axis<T, C>(at, x.sizes[d + 2], s.rule);
  }
  return axes;
}

// Calls f(places, tap numbers) for the taps inside.
template <class C, class F>
void for_taps(const std::array<GridAxis<C>, 3>& axes, F&& f) {
  std::array<size_t, 3> t;
  for (t[0] = 0; t[0] < static_cast<size_t>(axes[0].taps); ++t[0]) {
    for (t[1] = 0; t[1] < static_cast<size_t>(axes[1].taps); ++t[1]) {
      for (t[2] = 0; t[2] < static_cast<size_t>(axes[2].taps); ++t[2]) {
        std::array<int64_t, 3> place{axes[0].place[t[0]], axes[1].place[t[1]], axes[2].place[t[2]]};
        if (place[0] >= 0 && place[1] >= 0 && place[2] >= 0) f(place, t);
      }
    }
  }
}

int64_t offset_of(const TensorView& x, const std::array<int64_t, 3>& place) {
  int64_t at = 0;
  for (int d = 2; d < x.rank; ++d) {
    at += place[static_cast<size_t>(5 - x.rank + d - 2)] * x.strides[d];
  }
  return at;
}

template <class T>
void forward(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& out,
             ThreadPool& pool) {
  using C = ComputeOf<T>;
  int64_t points = s.points.count, channels = x.sizes[1];
  int64_t grain = std::max<int64_t>(1, (1 << 12) / (channels + 1));
  pool.parallel_ranges(x.sizes[0] * points, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t n = i / points, p = i % points;
      auto axes = axes_of<T, C>(s, x, grid.as<const T>() + n * grid.strides[0] + s.points.offset(p),
                                grid.strides[grid.rank - 1]);
      T* o = out.as<T>() + n * out.strides[0] + s.outputs.offset(p);
      for (int64_t c = 0; c < channels; ++c) {
        const T* plane = x.as<const T>() + n * x.strides[0] + c * x.strides[1];
        C total = 0;
        for_taps(axes, [&](const std::array<int64_t, 3>& place, const std::array<size_t, 3>& t) {
          C w = axes[0].weight[t[0]] * axes[1].weight[t[1]] * axes[2].weight[t[2]];
          total += w * static_cast<C>(plane[offset_of(x, place)]);
        });
        o[c * out.strides[1]] = static_cast<T>(total);
      }
    }
  });
}

absl::Status grid_sampler(const KernelCall& call, Context& context) {
  const TensorView &x = call.inputs[0], &grid = call.inputs[1], &out = call.outputs[0];
  if (out.numel() == 0) return absl::OkStatus();
  Sampling s = sampling_of(call, grid, out);
  bool known = visit_floating(
      x.dtype, [&](auto tag) { forward<decltype(tag)>(s, x, grid, out, context.pool); });
  return known ? absl::OkStatus() : dtype_error("grid_sampler", x.dtype);
}
GW_CPU_KERNEL("grid_sampler", grid_sampler);

// One image: adds to its part of dx, writes its part of dgrid.
template <class T, class C>
void backward_image(const Sampling& s, int64_t n, const TensorView& g, const TensorView& x,
                    const TensorView& grid, C* dx, C* dgrid) {
  int64_t channels = x.sizes[1], plane_size = 1;
  for (int d = 2; d < x.rank; ++d) plane_size *= x.sizes[d];
  TensorView flat = x;
  for (int64_t d = x.rank - 1, stride = 1; d >= 2; stride *= x.sizes[d--]) flat.strides[d] = stride;
  for (int64_t p = 0; p < s.points.count; ++p) {
    auto axes = axes_of<T, C>(s, x, grid.as<const T>() + n * grid.strides[0] + s.points.offset(p),
                              grid.strides[grid.rank - 1]);
    const T* from = g.as<const T>() + n * g.strides[0] + s.outputs.offset(p);
    std::array<C, 3> slope{};
    for (int64_t c = 0; c < channels; ++c) {
      auto value = static_cast<C>(from[c * g.strides[1]]);
      const T* plane = x.as<const T>() + n * x.strides[0] + c * x.strides[1];
      C* to = dx + (n * channels + c) * plane_size;
      for_taps(axes, [&](const std::array<int64_t, 3>& place, const std::array<size_t, 3>& t) {
        C a = axes[0].weight[t[0]], b = axes[1].weight[t[1]], d = axes[2].weight[t[2]];
        to[offset_of(flat, place)] += a * b * d * value;
        C pull = value * static_cast<C>(plane[offset_of(x, place)]);
        slope[0] += axes[0].slope[t[0]] * b * d * pull;
        slope[1] += a * axes[1].slope[t[1]] * d * pull;
        slope[2] += a * b * axes[2].slope[t[2]] * pull;
      });
    }
    C* o = dgrid + (n * s.points.count + p) * s.spatial;
    for (int d = 0; d < s.spatial; ++d) o[d] = slope[static_cast<size_t>(2 - d)];
  }
}

template <class T>
absl::Status backward(const Sampling& s, const TensorView& g, const TensorView& x,
                      const TensorView& grid, const TensorView& dx, const TensorView& dgrid,
                      ThreadPool& pool) {
  using C = ComputeOf<T>;
  DenseOutput<C> image(dx, pool), points(dgrid, pool);
  if (!image.ok() || !points.ok()) return scratch_error();
  std::fill(image.data(), image.data() + dx.numel(), C(0));
  if (g.numel() == 0) {
    std::fill(points.data(), points.data() + dgrid.numel(), C(0));
  } else {
    pool.parallel_ranges(x.sizes[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        backward_image<T, C>(s, n, g, x, grid, image.data(), points.data());
      }
    });
  }
  image.store();
  points.store();
  return absl::OkStatus();
}

// grad, input, grid -> dx, dgrid
absl::Status grid_sampler_backward(const KernelCall& call, Context& context) {
  const TensorView &g = call.inputs[0], &x = call.inputs[1], &grid = call.inputs[2];
  Sampling s = sampling_of(call, grid, g);
  absl::Status status;
  bool known = visit_floating(x.dtype, [&](auto tag) {
    status = backward<decltype(tag)>(s, g, x, grid, call.outputs[0], call.outputs[1], context.pool);
  });
  return known ? status : dtype_error("grid_sampler_backward", x.dtype);
}
GW_CPU_KERNEL("grid_sampler_backward", grid_sampler_backward);

}  // namespace
}  // namespace gradwire::cpu
