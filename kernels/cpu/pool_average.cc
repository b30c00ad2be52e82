#include <atomic>

#include "kernels/cpu/pool_blocks.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

double divisor_of(const PoolAxes& axes, const PoolDivisor& divisor, int64_t a, int64_t b,
                  int64_t c) {
  if (divisor.override_with != 0) return static_cast<double>(divisor.override_with);
  if (divisor.count_include_pad) {
    return static_cast<double>(axes[0].extent[a] * axes[1].extent[b] * axes[2].extent[c]);
  }
  return static_cast<double>(axes[0].count(a) * axes[1].count(b) * axes[2].count(c));
}

bool empty_window(const PoolAxes& axes, int64_t a, int64_t b, int64_t c) {
  return axes[0].count(a) * axes[1].count(b) * axes[2].count(c) == 0;
}

// Integers wrap where the quotient has no place.
template <class C>
C quotient(C sum, C by) {
  if constexpr (std::is_integral_v<C>) {
    if (by == C(-1)) return static_cast<C>(0 - static_cast<std::make_unsigned_t<C>>(sum));
  }
  return sum / by;
}

template <class T>
void forward(const PoolAxes& axes, const PoolDivisor& divisor, const TensorView& x,
             const TensorView& out, ThreadPool& pool) {
  using C = ComputeOf<T>;
  PoolTensor from(x), to(out);
  PoolBlocks blocks(x, plane_size(axes));
  blocks.run(pool, [&](int64_t image, int64_t first, int64_t n) {
    const T* plane = x.as<const T>() + image * from.image_stride + first * from.channel_stride;
    T* result = out.as<T>() + image * to.image_stride + first * to.channel_stride;
    for_outputs(axes, [&](int64_t a, int64_t b, int64_t c) {
      C sums[kPoolChannels] = {};
      for_window(axes, a, b, c, [&](int64_t i, int64_t j, int64_t k) {
        const T* p = plane + from.offset(i, j, k);
        for (int64_t q = 0; q < n; ++q) sums[q] += static_cast<C>(p[q * from.channel_stride]);
      });
      C by =
          empty_window(axes, a, b, c) ? C(1) : static_cast<C>(divisor_of(axes, divisor, a, b, c));
      T* o = result + to.offset(a, b, c);
      for (int64_t q = 0; q < n; ++q)
        o[q * to.channel_stride] = static_cast<T>(quotient(sums[q], by));
    });
  });
}

template <class T>
absl::Status backward(const PoolAxes& axes, const PoolDivisor& divisor, const TensorView& grad,
                      const TensorView& dx, ThreadPool& pool) {
  using C = ComputeOf<T>;
  PoolTensor from(grad);
  IndexMap to = map_dims(dx, 2, dx.rank);
  int64_t plane = to.count;
  PoolBlocks blocks(dx, plane);
  std::atomic<bool> failed = false;
  blocks.run(pool, [&](int64_t image, int64_t first, int64_t n) {
    Scratch scratch(static_cast<size_t>(plane * n + 16) * sizeof(C));
    C* sums = scratch.as<C>();
    if (!sums) {
      failed = true;
      return;
    }
    std::fill(sums, sums + plane * n, C(0));
    const T* g = grad.as<const T>() + image * from.image_stride + first * from.channel_stride;
    for_outputs(axes, [&](int64_t a, int64_t b, int64_t c) {
      if (empty_window(axes, a, b, c)) return;
      auto by = static_cast<C>(divisor_of(axes, divisor, a, b, c));
      C share[kPoolChannels];
      const T* p = g + from.offset(a, b, c);
      for (int64_t q = 0; q < n; ++q) share[q] = static_cast<C>(p[q * from.channel_stride]) / by;
      for_window(axes, a, b, c, [&](int64_t i, int64_t j, int64_t k) {
        C* at = sums + ((i * axes[1].in + j) * axes[2].in + k) * n;
        for (int64_t q = 0; q < n; ++q) at[q] += share[q];
      });
    });
    T* d = dx.as<T>() + image * dx.strides[0] + first * dx.strides[1];
    for (int64_t p = 0; p < plane; ++p) {
      T* o = d + to.offset(p);
      for (int64_t q = 0; q < n; ++q) o[q * dx.strides[1]] = static_cast<T>(sums[p * n + q]);
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

// Attributes: kernel, stride, padding, count_include_pad, divisor_override.
absl::Status axes_of(const char* op, const KernelCall& call, const TensorView& in,
                     const TensorView& out, PoolAxes& axes, PoolDivisor& divisor) {
  divisor.count_include_pad = call.attributes[3].as_bool();
  if (!call.attributes[4].none()) {
    divisor.override_with = call.attributes[4].as_int();
    if (divisor.override_with == 0) return runtime_error("[", op, "] divisor must be not zero");
  }
  return pool_axes(op, in, out, call.attributes[0].as_ints(), call.attributes[1].as_ints(),
                   call.attributes[2].as_ints(), {}, axes);
}

absl::Status avg_pool(const KernelCall& call, Context& context) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  PoolAxes axes;
  PoolDivisor divisor;
  GW_RETURN_IF_ERROR(axes_of("avg_pool", call, x, out, axes, divisor));
  return pool_average(axes, divisor, x, out, context.pool);
}
GW_CPU_KERNEL("avg_pool", avg_pool);

absl::Status avg_pool_backward(const KernelCall& call, Context& context) {
  const TensorView &grad = call.inputs[0], &dx = call.outputs[0];
  PoolAxes axes;
  PoolDivisor divisor;
  GW_RETURN_IF_ERROR(axes_of("avg_pool_backward", call, dx, grad, axes, divisor));
  return pool_average_backward(axes, divisor, grad, dx, context.pool);
}
GW_CPU_KERNEL("avg_pool_backward", avg_pool_backward);

absl::Status adaptive_avg_pool(const KernelCall& call, Context& context) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  return pool_average(adaptive_pool_axes(x, out), {}, x, out, context.pool);
}
GW_CPU_KERNEL("adaptive_avg_pool", adaptive_avg_pool);

absl::Status adaptive_avg_pool_backward(const KernelCall& call, Context& context) {
  const TensorView &grad = call.inputs[0], &dx = call.outputs[0];
  return pool_average_backward(adaptive_pool_axes(dx, grad), {}, grad, dx, context.pool);
}
GW_CPU_KERNEL("adaptive_avg_pool_backward", adaptive_avg_pool_backward);

}  // namespace

absl::Status pool_average(const PoolAxes& axes, const PoolDivisor& divisor, const TensorView& x,
                          const TensorView& out, ThreadPool& pool) {
  if (out.numel() == 0) return absl::OkStatus();
  auto run = [&](auto tag) { forward<decltype(tag)>(axes, divisor, x, out, pool); };
  bool known = visit_floating(x.dtype, run);
  if (x.dtype == DType::kInt64) {
    run(int64_t{});
    known = true;
  }
  return known ? absl::OkStatus() : dtype_error("avg_pool", x.dtype);
}

absl::Status pool_average_backward(const PoolAxes& axes, const PoolDivisor& divisor,
                                   const TensorView& grad, const TensorView& dx, ThreadPool& pool) {
  if (dx.numel() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = visit_floating(
      dx.dtype, [&](auto tag) { status = backward<decltype(tag)>(axes, divisor, grad, dx, pool); });
  return known ? status : dtype_error("avg_pool_backward", dx.dtype);
}

}  // namespace gradwire::cpu
