// embedding_backward: rows of the gradient added up per word, in order of appearance.
#include <cstring>

#include "kernels/cpu/index_bounds.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/scatter_typed.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kParts = 16;  // words are dealt to this many units by number

template <class T, class S>
void add_rows(const TensorView& grad, const TensorView& index, const int64_t* counts,
              int64_t padding, const TensorView& dweight, Context& context) {
  // The index dims with (index, grad), the row's dims with (grad, dweight).
  Space<2> entries, row;
  for (int d = 0; d < index.rank; ++d) {
    entries.push(index.sizes[d], {index.strides[d], grad.strides[d]});
  }
  for (int d = 1; d < dweight.rank; ++d) {
    row.push(dweight.sizes[d], {grad.strides[index.rank + d - 1], dweight.strides[d]});
  }
  const int64_t parts = grad.numel() < 65536 ? 1 : kParts;
  const auto [entry_stride, grad_stride] = entries.last_strides;
  const auto [from_stride, to_stride] = row.last_strides;
  const int64_t word_stride = dweight.strides[0];
  context.pool.parallel_for(parts, [&](int64_t part) {
    for_runs(entries, 0, entries.numel, [&](const auto& at, int64_t count, int64_t) {
      for (int64_t e = 0; e < count; ++e) {
        const int64_t word = index.as<int64_t>()[at[0] + e * entry_stride];
        if (word % parts != part || word == padding) continue;
        const T scale = counts ? T(1) / static_cast<T>(counts[word]) : T(1);
        const S* from = grad.as<S>() + at[1] + e * grad_stride;
        T* to = dweight.as<T>() + word * word_stride;
        for_runs(row, 0, row.numel, [&](const auto& place, int64_t n, int64_t) {
          const S* f = from + place[0];
          T* t = to + place[1];
          if (!counts && from_stride == 1 && to_stride == 1) {
            for (int64_t i = 0; i < n; ++i) t[i] += convert<T>(f[i]);
          } else {
            for (int64_t i = 0; i < n; ++i) {
              t[i * to_stride] += convert<T>(f[i * from_stride]) * scale;
            }
          }
        });
      }
    });
  });
}

absl::Status embedding_backward(const KernelCall& call, Context& context) {
  const TensorView& grad = call.inputs[0];
  const TensorView& dweight = call.outputs[0];
  const int64_t padding = attribute(call, 0).none() ? -1 : attribute(call, 0).as_int();
  const bool by_frequency = attribute(call, 1).as_bool();
  const int64_t words = dweight.sizes[0];
  GW_RETURN_IF_ERROR(check_same_dtype("embedding_backward", dweight, grad));
  if (auto bad = first_outside(call.inputs[1], 0, words, context)) {
    return index_error("[embedding_backward] index out of range in self: index ", *bad,
                       " with size ", words);
  }
  Int64Index index(call.inputs[1], context);
  Scratch counted(by_frequency ? 8 * static_cast<size_t>(words) + 1 : 1);
  if (!index.ok() || counted.data() == nullptr) {
    return make_error(ErrorKind::kOutOfMemory, "[embedding_backward] out of memory");
  }
  int64_t* counts = by_frequency ? counted.as<int64_t>() : nullptr;
  if (counts) {
    std::fill(counts, counts + words, 0);
    const Space<1> space = space_of<1>({&index.view()});
    for_runs(space, 0, space.numel, [&](const auto& at, int64_t count, int64_t) {
      for (int64_t i = 0; i < count; ++i) {
        ++counts[index.view().as<int64_t>()[at[0] + i * space.inner_stride(0)]];
      }
    });
  }
  const Space<1> all = space_of<1>({&dweight});
  dispatch_size(dweight.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_ranges(all.numel, 65536, [&](int64_t begin, int64_t end) {
      for_runs(all, begin, end, [&](const auto& at, int64_t count, int64_t) {
        T* to = dweight.as<T>() + at[0];
        for (int64_t i = 0; i < count; ++i) to[i * all.inner_stride(0)] = 0;
      });
    });
  });
  return with_target(dweight, context, [&](const TensorView& target) {
    dispatch_dtype(grad.dtype, [&](auto type) {
      using S = typename decltype(type)::type;
      if constexpr (is_half_v<S> || std::is_floating_point_v<S>) {
        add_rows<Target<S>, S>(grad, index.view(), counts, padding, target, context);
      }
    });
    return absl::OkStatus();
  });
}

GW_CPU_KERNEL("embedding_backward", embedding_backward);

}  // namespace
}  // namespace gradwire::cpu
