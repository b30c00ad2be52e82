#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/cpu/pool_blocks.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

template <class C>
C least() {
  if constexpr (std::is_floating_point_v<C>) return -std::numeric_limits<C>::infinity();
  return std::numeric_limits<C>::lowest();
}

template <class C>
bool is_nan(C v) {
  if constexpr (std::is_floating_point_v<C>) return std::isnan(v);
  return false;
}

template <class T>
void forward(const PoolAxes& axes, const TensorView& x, const TensorView& out,
             const TensorView& indices, ThreadPool& pool) {
  using C = ComputeOf<T>;
  PoolTensor from(x), to(out), at(indices);
  PoolBlocks blocks(x, plane_size(axes));
  blocks.run(pool, [&](int64_t image, int64_t first, int64_t n) {
    const T* plane = x.as<const T>() + image * from.image_stride + first * from.channel_stride;
    T* result = out.as<T>() + image * to.image_stride + first * to.channel_stride;
    int64_t* index = indices.as<int64_t>() + image * at.image_stride + first * at.channel_stride;
    for_outputs(axes, [&](int64_t a, int64_t b, int64_t c) {
      C best[kPoolChannels];
      int64_t where[kPoolChannels];
      auto flat = [&](int64_t i, int64_t j, int64_t k) {
        return (i * axes[1].in + j) * axes[2].in + k;
      };
      std::fill(best, best + n, least<C>());
      std::fill(where, where + n, flat(axes[0].begin[a], axes[1].begin[b], axes[2].begin[c]));
      for_window(axes, a, b, c, [&](int64_t i, int64_t j, int64_t k) {
        const T* p = plane + from.offset(i, j, k);
        int64_t here = flat(i, j, k);
        for (int64_t q = 0; q < n; ++q) {
          C v = static_cast<C>(p[q * from.channel_stride]);
          if (v > best[q] || (is_nan(v) && !is_nan(best[q]))) {
            best[q] = v;
            where[q] = here;
          }
        }
      });
      T* o = result + to.offset(a, b, c);
      int64_t* w = index + at.offset(a, b, c);
      for (int64_t q = 0; q < n; ++q) {
        o[q * to.channel_stride] = static_cast<T>(best[q]);
        w[q * at.channel_stride] = where[q];
      }
    });
  });
}

template <class T>
absl::Status backward(const TensorView& grad, const TensorView& indices, const TensorView& dx,
                      ThreadPool& pool) {
  using C = ComputeOf<T>;
  IndexMap grads = map_dims(grad, 2, grad.rank), places = map_dims(indices, 2, indices.rank);
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
    const T* g = grad.as<const T>() + image * grad.strides[0] + first * grad.strides[1];
    const int64_t* index =
        indices.as<const int64_t>() + image * indices.strides[0] + first * indices.strides[1];
    for (int64_t i = 0; i < grads.count; ++i) {
      const T* from = g + grads.offset(i);
      const int64_t* place = index + places.offset(i);
      for (int64_t q = 0; q < n; ++q) {
        int64_t p = place[q * indices.strides[1]];
        if (p < 0 || p >= plane) continue;
        sums[p * n + q] += static_cast<C>(from[q * grad.strides[1]]);
      }
    }
    T* d = dx.as<T>() + image * dx.strides[0] + first * dx.strides[1];
    for (int64_t p = 0; p < plane; ++p) {
      T* o = d + to.offset(p);
      for (int64_t q = 0; q < n; ++q) o[q * dx.strides[1]] = static_cast<T>(sums[p * n + q]);
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

absl::Status max_pool(const KernelCall& call, Context& context) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  PoolAxes axes;
  GW_RETURN_IF_ERROR(pool_axes("max_pool", x, out, call.attributes[0].as_ints(),
                               call.attributes[1].as_ints(), call.attributes[2].as_ints(),
                               call.attributes[3].as_ints(), axes));
  return pool_max(axes, x, out, call.outputs[1], context.pool);
}
GW_CPU_KERNEL("max_pool", max_pool);

absl::Status adaptive_max_pool(const KernelCall& call, Context& context) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  return pool_max(adaptive_pool_axes(x, out), x, out, call.outputs[1], context.pool);
}
GW_CPU_KERNEL("adaptive_max_pool", adaptive_max_pool);

absl::Status max_pool_backward(const KernelCall& call, Context& context) {
  return pool_max_backward(call.inputs[0], call.inputs[1], call.outputs[0], context.pool);
}
GW_CPU_KERNEL("max_pool_backward", max_pool_backward);

}  // namespace

absl::Status pool_max(const PoolAxes& axes, const TensorView& x, const TensorView& out,
                      const TensorView& indices, ThreadPool& pool) {
  if (out.numel() == 0) return absl::OkStatus();
  auto run = [&](auto tag) { forward<decltype(tag)>(axes, x, out, indices, pool); };
  bool known =
      visit_floating(x.dtype, run) || (x.dtype != DType::kBool && visit_integral(x.dtype, run));
  return known ? absl::OkStatus() : dtype_error("max_pool", x.dtype);
}

absl::Status pool_max_backward(const TensorView& grad, const TensorView& indices,
                               const TensorView& dx, ThreadPool& pool) {
  if (dx.numel() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = visit_floating(
      dx.dtype, [&](auto tag) { status = backward<decltype(tag)>(grad, indices, dx, pool); });
  return known ? status : dtype_error("max_pool_backward", dx.dtype);
}

}  // namespace gradwire::cpu
