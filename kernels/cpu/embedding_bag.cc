// Sums, means and maxima of rows of a table, bag by bag, without the rows in between.
#include <atomic>
#include <limits>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrainElements = 1 << 14;

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

absl::Status check_bags(const int64_t* indices, int64_t n, int64_t rows, const int64_t* offsets,
                        int64_t count) {
  for (int64_t i = 0; i < n; ++i) {
    if (indices[i] >= 0 && indices[i] < rows) continue;
    return runtime_error("Index ", i, " of input takes value ", indices[i],
                         " which is not in the valid range [0, ", rows, ")");
  }
  if (count && offsets[0] != 0) {
    return runtime_error("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has ",
                         "to start from position 0. However, got ", offsets[0]);
  }
  for (int64_t b = 0; b < count; ++b) {
    int64_t after = b + 1 < count ? offsets[b + 1] : n;
    if (offsets[b] <= after && after <= n) continue;
    return runtime_error("offsets[-1] can not be greater than input's length(", n,
                         ") and offsets must not decrease; got ", after, " after ", offsets[b]);
  }
  return absl::OkStatus();
}

// inputs weight [V, D], indices [n], offsets [B (+ 1)], per_sample_weights? [n]; attributes mode,
// padding_idx (-1: none), include_last_offset. Outputs: values [B, D], sizes [B] without padding,
// and in mode max the row taken, [B, D], -1 in an empty bag.
template <class T>
absl::Status bags(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView &table = call.inputs[0], &values = call.outputs[0], &sizes = call.outputs[1];
  const TensorView& taken = call.outputs[2];
  int64_t mode = call.attributes[0].as_int(), padding = call.attributes[1].as_int();
  DenseInput<int64_t> indices(call.inputs[1], pool), offsets(call.inputs[2], pool);
  DenseInput<C> scales(call.inputs[3], pool);
  if (!indices.ok() || !offsets.ok() || !scales.ok()) return scratch_error();
  int64_t n = call.inputs[1].numel(), width = table.sizes[1];
  int64_t starts = call.inputs[2].numel(), count = values.sizes[0];
  GW_RETURN_IF_ERROR(check_bags(indices.data(), n, table.sizes[0], offsets.data(), starts));
  std::atomic<bool> failed = false;
  int64_t each = n / std::max<int64_t>(count, 1) * width;
  int64_t grain = std::max<int64_t>(1, kGrainElements / (each + width + 1));
  pool.parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(width + 16) * sizeof(C));
    C* total = scratch.as<C>();
    if (!total) {
      failed = true;
      return;
    }
    for (int64_t b = begin; b < end; ++b) {
      int64_t first = offsets.data()[b], last = b + 1 < starts ? offsets.data()[b + 1] : n;
      std::fill(total, total + width, C(0));
      int64_t size = 0;
      for (int64_t i = first; i < last; ++i) {
        int64_t row = indices.data()[i];
        if (row == padding) continue;
        const T* from = table.as<const T>() + row * table.strides[0];
        if (mode == kMax) {
          int64_t* to = taken.as<int64_t>() + b * taken.strides[0];
          for (int64_t d = 0; d < width; ++d) {
            C v = static_cast<C>(from[d * table.strides[1]]);
            if (size && !(v > total[d]) && v == v) continue;
            total[d] = v;
            to[d * taken.strides[1]] = row;
          }
        } else {
          C scale = scales.data() ? scales.data()[i] : C(1);
          for (int64_t d = 0; d < width; ++d) {
            total[d] += scale * static_cast<C>(from[d * table.strides[1]]);
          }
        }
        ++size;
      }
      if (mode == kMax && size == 0) {
        for (int64_t d = 0; d < width; ++d) {
          taken.as<int64_t>()[b * taken.strides[0] + d * taken.strides[1]] = -1;
        }
      }
      C divisor = mode == kMean && size ? static_cast<C>(size) : C(1);
      T* out = values.as<T>() + b * values.strides[0];
      for (int64_t d = 0; d < width; ++d) {
        out[d * values.strides[1]] = static_cast<T>(total[d] / divisor);
      }
      sizes.as<int64_t>()[b * sizes.strides[0]] = size;
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

absl::Status embedding_bag(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[0].dtype,
                              [&](auto tag) { status = bags<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("embedding_bag", call.inputs[0].dtype);
}
GW_CPU_KERNEL("embedding_bag", embedding_bag);

}  // namespace
}  // namespace gradwire::cpu
