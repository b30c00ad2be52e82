// nonzero, masked_select, masked_scatter: the true elements in row-major order. Chunks are counted
// first, so that each knows where its elements go.
#include <numeric>
#include <vector>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kChunk = 32768;

template <class T>
bool is_true(T v) {
  return widen(v) != 0;
}

// starts[c] is the number of true elements before chunk c; the last entry is the total.
std::vector<int64_t> count_chunks(const TensorView& mask, Context& context) {
  const Space<1> space = space_of<1>({&mask});
  const int64_t chunks = (space.numel + kChunk - 1) / kChunk;
  const int64_t stride = space.inner_stride(0);
  std::vector<int64_t> starts(chunks + 1, 0);
  dispatch_dtype(mask.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_for(chunks, [&](int64_t c) {
      int64_t total = 0;
      for_runs(space, c * kChunk, std::min(space.numel, (c + 1) * kChunk),
               [&](const auto& at, int64_t count, int64_t) {
                 const T* p = mask.as<T>() + at[0];
                 for (int64_t i = 0; i < count; ++i) total += is_true(p[i * stride]);
               });
      starts[c + 1] = total;
    });
  });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  return starts;
}

absl::Status nonzero(const KernelCall& call, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::vector<int64_t> starts = count_chunks(x, context);
  if (starts.back() != out.sizes[0]) {
    return internal_error("[nonzero] has ", starts.back(), " elements, not ", out.sizes[0]);
  }
  if (x.rank == 0 || starts.back() == 0) return absl::OkStatus();
  const Space<1> space = space_of<1>({&x});
  const int64_t stride = space.inner_stride(0);
  dispatch_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_for(static_cast<int64_t>(starts.size()) - 1, [&](int64_t c) {
      int64_t* to = out.as<int64_t>() + starts[c] * out.strides[0];
      for_runs(space, c * kChunk, std::min(space.numel, (c + 1) * kChunk),
               [&](const auto& at, int64_t count, int64_t linear) {
                 const T* p = x.as<T>() + at[0];
                 for (int64_t i = 0; i < count; ++i) {
                   if (!is_true(p[i * stride])) continue;
                   int64_t rest = linear + i;
                   for (int d = x.rank - 1; d > 0; --d) {
                     to[d * out.strides[1]] = rest % x.sizes[d];
                     rest /= x.sizes[d];
                   }
                   to[0] = rest;
                   to += out.strides[0];
                 }
               });
    });
  });
  return absl::OkStatus();
}

absl::Status masked_select(const KernelCall& call, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& mask = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const std::vector<int64_t> starts = count_chunks(mask, context);
  if (starts.back() != out.sizes[0]) {
    return internal_error("[masked_select] has ", starts.back(), " elements, not ", out.sizes[0]);
  }
  const Space<2> space = space_of<2>({&x, &mask});
  const auto [x_stride, mask_stride] = space.last_strides;
  dispatch_size(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_for(static_cast<int64_t>(starts.size()) - 1, [&](int64_t c) {
      T* to = out.as<T>() + starts[c] * out.strides[0];
      for_runs(space, c * kChunk, std::min(space.numel, (c + 1) * kChunk),
               [&](const auto& at, int64_t count, int64_t) {
                 for (int64_t i = 0; i < count; ++i) {
                   if (!mask.as<uint8_t>()[at[1] + i * mask_stride]) continue;
                   *to = x.as<T>()[at[0] + i * x_stride];
                   to += out.strides[0];
                 }
               });
    });
  });
  return absl::OkStatus();
}

absl::Status masked_scatter(const KernelCall& call, Context& context) {
  const TensorView& self = call.outputs[0];
  const TensorView& mask = call.inputs[1];
  const TensorView& source = call.inputs[2];
  const std::vector<int64_t> starts = count_chunks(mask, context);
  if (starts.back() > source.numel()) {
    return runtime_error("[masked_scatter] Number of elements of source < number of ones in mask: ",
                         source.numel(), " < ", starts.back());
  }
  const Space<2> space = space_of<2>({&self, &mask});
  const Space<1> from = space_of<1>({&source});
  const auto [self_stride, mask_stride] = space.last_strides;
  const bool dense = source.contiguous();
  dispatch_size(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_for(static_cast<int64_t>(starts.size()) - 1, [&](int64_t c) {
      int64_t next = starts[c];
      for_runs(space, c * kChunk, std::min(space.numel, (c + 1) * kChunk),
               [&](const auto& at, int64_t count, int64_t) {
                 for (int64_t i = 0; i < count; ++i) {
                   if (!mask.as<uint8_t>()[at[1] + i * mask_stride]) continue;
                   self.as<T>()[at[0] + i * self_stride] =
                       source.as<T>()[dense ? next : from.offsets_of(next)[0]];
                   ++next;
                 }
               });
    });
  });
  return absl::OkStatus();
}

GW_CPU_KERNEL("nonzero", nonzero);
GW_CPU_KERNEL("masked_select", masked_select);
GW_CPU_KERNEL("masked_scatter", masked_scatter);

}  // namespace
}  // namespace gradwire::cpu
