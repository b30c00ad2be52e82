#include "kernels/cpu/index_plan.h"

#include <algorithm>

#include "kernels/cpu/index_bounds.h"
#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/index_types.h"
#include "kernels/error.h"

namespace gradwire::cpu {

absl::Status IndexPlan::init(std::string_view op, const TensorView& x, const TensorView& indexed,
                             absl::Span<const TensorView> indices, const IntList& dims,
                             int64_t position, Bounds bounds, Context& context) {
  const absl::string_view name(op.data(), op.size());
  if (scratch_.data() == nullptr) {
    return make_error(ErrorKind::kOutOfMemory, absl::StrCat("[", name, "] out of memory"));
  }
  if (indices.empty() || indices.size() != dims.size()) {
    return internal_error("[", name, "] has ", indices.size(), " index tensors for ", dims.size(),
                          " dims");
  }
  const bool wraps = bounds == Bounds::kWrap;
  const bool nothing = indexed.numel() == 0;
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t size = x.rank == 0 ? 1 : x.sizes[dims[k]];
    if (wraps && nothing && size > 0) continue;  // as torch: nobody will look there
    const auto bad = first_outside(indices[k], wraps ? -size : 0, size, context);
    if (!bad) continue;
    if (!wraps)
      return index_error("[", name, "] index out of range in self: index ", *bad, " with size ",
                         size);
    return index_error("[", name, "] index ", *bad, " is out of bounds for dimension ", dims[k],
                       " with size ", size);
  }

  int64_t* offsets = scratch_.as<int64_t>();
  context.pool.parallel_ranges(indices[0].numel(), 16384, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 512;
    int64_t values[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      std::fill(offsets + i, offsets + i + n, 0);
      for (size_t k = 0; k < indices.size(); ++k) {
        const int64_t size = x.rank == 0 ? 1 : x.sizes[dims[k]];
        const int64_t stride = x.rank == 0 ? 0 : x.strides[dims[k]];
        convert_range(indices[k], i, i + n, DType::kInt64, values);
        for (int64_t j = 0; j < n; ++j) {
          offsets[i + j] += (values[j] < 0 ? values[j] + size : values[j]) * stride;
        }
      }
    }
  });

  const int index_rank = indices[0].rank;
  int64_t entry_stride = indices[0].numel();
  int source = 0;
  for (int d = 0; d < indexed.rank; ++d) {
    const int64_t size = indexed.sizes[d];
    if (d >= position && d < position + index_rank) {
      entry_stride /= std::max<int64_t>(size, 1);
      space_.push(size, {indexed.strides[d], 0, entry_stride});
      entries_.push(size, {indexed.strides[d]});
      continue;
    }
    while (std::find(dims.begin(), dims.end(), source) != dims.end()) ++source;
    space_.push(size, {indexed.strides[d], x.strides[source], 0});
    rest_.push(size, {indexed.strides[d], x.strides[source]});
    ++source;
  }
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
