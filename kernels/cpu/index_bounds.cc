#include "kernels/cpu/index_bounds.h"

#include <algorithm>
#include <mutex>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"

namespace gradwire::cpu {

std::optional<int64_t> first_outside(const TensorView& index, int64_t low, int64_t high,
                                     Context& context) {
  std::mutex mutex;
  int64_t first = INT64_MAX, value = 0;
  // Elements repeated by a stride of 0 are looked at once.
  TensorView once = index;
  for (int d = 0; d < once.rank; ++d) {
    if (once.strides[d] == 0 && once.sizes[d] > 1) once.sizes[d] = 1;
  }
  const Space<1> space = space_of<1>({&once});
  const int64_t stride = space.inner_stride(0);
  dispatch_dtype(index.dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    if constexpr (std::is_integral_v<I>) {
      context.pool.parallel_ranges(space.numel, 32768, [&](int64_t begin, int64_t end) {
        for_runs(space, begin, end, [&](const auto& offsets, int64_t count, int64_t linear) {
          const I* p = once.as<I>() + offsets[0];
          bool bad = false;
          for (int64_t i = 0; i < count; ++i) {
            const int64_t v = p[i * stride];
            bad |= v < low || v >= high;
          }
          if (!bad) return;
          int64_t i = 0;
          while (p[i * stride] >= low && p[i * stride] < high) ++i;
          std::lock_guard lock(mutex);
          if (linear + i < first) {
            first = linear + i;
            value = p[i * stride];
          }
        });
      });
    }
  });
  if (first == INT64_MAX) return std::nullopt;
  return value;
}

TensorView dense_like(const TensorView& view, DType dtype, void* data) {
  TensorView dense = view;
  dense.dtype = dtype;
  dense.data = data;
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    dense.strides[d] = stride;
    stride *= view.sizes[d];
  }
  return dense;
}

Int64Index::Int64Index(const TensorView& index, Context& context)
    : scratch_(index.dtype == DType::kInt64 ? 1 : 8 * static_cast<size_t>(index.numel()) + 1),
      view_(index) {
  if (index.dtype == DType::kInt64 || !ok()) return;
  view_ = dense_like(index, DType::kInt64, scratch_.data());
  context.pool.parallel_ranges(index.numel(), 32768, [&](int64_t begin, int64_t end) {
    convert_range(index, begin, end, DType::kInt64, view_.as<int64_t>() + begin);
  });
}

TensorView spread_index(const TensorView& index, const TensorView& like, int64_t dim) {
  TensorView spread = index;
  spread.rank = like.rank;
  for (int d = 0; d < like.rank; ++d) {
    spread.sizes[d] = like.sizes[d];
    spread.strides[d] = 0;
  }
  if (like.rank > 0) {
    spread.sizes[dim] = index.numel();
    spread.strides[dim] = index.rank > 0 ? index.strides[0] : 0;
  }
  return spread;
}

}  // namespace gradwire::cpu
