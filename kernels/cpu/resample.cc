#include "kernels/cpu/resample.h"

#include <algorithm>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/pool_windows.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Calls f(plane number) for every plane of the view.
template <class F>
void for_planes(const TensorView& view, int64_t work, ThreadPool& pool, F&& f) {
  int64_t grain = std::max<int64_t>(1, (1 << 13) / (work + 1));
  pool.parallel_ranges(view.sizes[0] * view.sizes[1], grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) f(p);
  });
}

template <class C>
int64_t work_of(const ResampleAxes<C>& axes) {
  int64_t work = 1;
  for (const auto& axis : axes) work *= axis.out * axis.taps;
  return work;
}

// Calls f(place, weight) for the taps of output o.
template <class C, class F>
void for_taps(const ResampleAxis<C>& axis, int64_t o, F&& f) {
  for (int64_t t = o * axis.taps; t < (o + 1) * axis.taps; ++t) {
    f(axis.place[static_cast<size_t>(t)], axis.weight[static_cast<size_t>(t)]);
  }
}

template <class T, class C>
void forward(const ResampleAxes<C>& axes, const TensorView& x, const TensorView& out,
             ThreadPool& pool) {
  PoolTensor from(x), to(out);
  for_planes(out, work_of(axes), pool, [&](int64_t p) {
    int64_t n = p / out.sizes[1], c = p % out.sizes[1];
    const T* plane = x.as<const T>() + n * from.image_stride + c * from.channel_stride;
    T* result = out.as<T>() + n * to.image_stride + c * to.channel_stride;
    bool copies = axes[0].taps * axes[1].taps * axes[2].taps == 1;
    for (int64_t a = 0; a < axes[0].out; ++a) {
      for (int64_t b = 0; b < axes[1].out; ++b) {
        for (int64_t d = 0; d < axes[2].out; ++d) {
          T& o = result[to.offset(a, b, d)];
          if (copies) {
            o = plane[from.offset(axes[0].place[a], axes[1].place[b], axes[2].place[d])];
            continue;
          }
          C total = 0;
          for_taps(axes[0], a, [&](int64_t i, C wi) {
            C outer = 0;
            for_taps(axes[1], b, [&](int64_t j, C wj) {
              C inner = 0;
              for_taps(axes[2], d, [&](int64_t k, C wk) {
                inner += wk * static_cast<C>(plane[from.offset(i, j, k)]);
              });
              outer += wj * inner;
            });
            total += wi * outer;
          });
          o = static_cast<T>(total);
        }
      }
    }
  });
}

template <class T>
absl::Status backward(const KernelCall& call, const TensorView& grad, const TensorView& dx,
                      ThreadPool& pool) {
  using C = ComputeOf<T>;
  ResampleAxes<C> axes = resample_axes<C>(call, dx, grad);
  DenseOutput<C> sums(dx, pool);
  if (!sums.ok()) return scratch_error();
  PoolTensor from(grad);
  int64_t plane = axes[0].in * axes[1].in * axes[2].in;
  for_planes(dx, work_of(axes), pool, [&](int64_t p) {
    int64_t n = p / dx.sizes[1], c = p % dx.sizes[1];
    const T* g = grad.as<const T>() + n * from.image_stride + c * from.channel_stride;
    C* to = sums.data() + p * plane;
    std::fill(to, to + plane, C(0));
    for (int64_t a = 0; a < axes[0].out; ++a) {
      for (int64_t b = 0; b < axes[1].out; ++b) {
        for (int64_t d = 0; d < axes[2].out; ++d) {
          auto value = static_cast<C>(g[from.offset(a, b, d)]);
          for_taps(axes[0], a, [&](int64_t i, C wi) {
            for_taps(axes[1], b, [&](int64_t j, C wj) {
              C* line = to + (i * axes[1].in + j) * axes[2].in;
              for_taps(axes[2], d, [&](int64_t k, C wk) { line[k] += wi * wj * wk * value; });
            });
          });
        }
      }
    }
  });
  sums.store();
  return absl::OkStatus();
}

absl::Status resample(const KernelCall& call, Context& context) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  if (out.numel() == 0) return absl::OkStatus();
  if (x.dtype == DType::kUInt8) {
    auto mode = static_cast<ResampleMode>(call.attributes[0].as_int());
    if (mode == ResampleMode::kLinear || mode == ResampleMode::kCubic) {
      return resample_bytes(call, x, out, context.pool);
    }
    forward<uint8_t>(resample_axes<float>(call, x, out), x, out, context.pool);
    return absl::OkStatus();
  }
  bool known = visit_floating(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    forward<T>(resample_axes<ComputeOf<T>>(call, x, out), x, out, context.pool);
  });
  return known ? absl::OkStatus() : dtype_error("resample", x.dtype);
}
GW_CPU_KERNEL("resample", resample);

absl::Status resample_backward(const KernelCall& call, Context& context) {
  const TensorView &grad = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = visit_floating(
      dx.dtype, [&](auto tag) { status = backward<decltype(tag)>(call, grad, dx, context.pool); });
  return known ? status : dtype_error("resample_backward", dx.dtype);
}
GW_CPU_KERNEL("resample_backward", resample_backward);

}  // namespace
}  // namespace gradwire::cpu
