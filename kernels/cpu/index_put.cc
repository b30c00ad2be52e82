// index_put: in place; the last of duplicates wins, or all are added in row-major order.
#include "kernels/cpu/index_plan.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/scatter_typed.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

// Two entries may name one element, so entries are walked in order and the work is cut across the
// remaining dims only.
template <class T, class S, class Combine>
void put(const IndexPlan& plan, T* x, const S* value, Context& context, Combine&& combine) {
  const Space<2>& rest = plan.rest();
  const int64_t entries = plan.entries().numel;
  if (entries == 0 || rest.numel == 0) return;
  const int64_t width = rest.inner_size();
  const int64_t block = entries * width <= 32768 ? width : std::min<int64_t>(width, 64);
  const int64_t blocks = (width + block - 1) / block;
  const int64_t units = rest.numel / width * blocks;
  const auto [value_stride, x_stride] = rest.last_strides;
  const int64_t entry_stride = plan.entries().inner_stride(0);
  const int64_t grain = std::max<int64_t>(1, 32768 / (entries * block));
  context.pool.parallel_ranges(units, grain, [&](int64_t first, int64_t last) {
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t begin = unit % blocks * block;
      const int64_t n = std::min(block, width - begin);
      const auto at = rest.offsets_of(unit / blocks * width + begin);
      for_runs(plan.entries(), 0, entries, [&](const auto& run, int64_t count, int64_t linear) {
        for (int64_t e = 0; e < count; ++e) {
          T* to = x + at[1] + plan.offsets()[linear + e];
          const S* from = value + at[0] + run[0] + e * entry_stride;
          for (int64_t i = 0; i < n; ++i) combine(to[i * x_stride], from[i * value_stride]);
        }
      });
    }
  });
}

absl::Status index_put(const KernelCall& call, Context& context) {
  const TensorView& self = call.outputs[0];
  const TensorView& value = call.inputs[1];
  const absl::Span<const TensorView> indices = absl::MakeConstSpan(call.inputs).subspan(2);
  const IntList& dims = attribute(call, 0).as_ints();
  const int64_t position = attribute(call, 1).as_int();
  const bool accumulate = attribute(call, 2).as_bool();
  const int64_t count = indices.empty() ? 0 : indices[0].numel();
  GW_RETURN_IF_ERROR(check_same_dtype("index_put_", self, value));
  auto init = [&](IndexPlan& plan, const TensorView& x) {
    return plan.init("index_put_", x, value, indices, dims, position, IndexPlan::Bounds::kWrap,
                     context);
  };
  if (!accumulate) {
    IndexPlan plan(count);
    GW_RETURN_IF_ERROR(init(plan, self));
    dispatch_size(self.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      put(plan, self.as<T>(), value.as<T>(), context, [](T& to, T from) { to = from; });
    });
    return absl::OkStatus();
  }
  return with_target(self, context, [&](const TensorView& target) -> absl::Status {
    IndexPlan plan(count);
    GW_RETURN_IF_ERROR(init(plan, target));
    dispatch_dtype(value.dtype, [&](auto type) {
      using S = typename decltype(type)::type;
      using T = Target<S>;
      put(plan, target.as<T>(), value.as<S>(), context,
          [](T& to, S from) { to = add(to, convert<T>(from)); });
    });
    return absl::OkStatus();
  });
}

GW_CPU_KERNEL("index_put", index_put);

}  // namespace
}  // namespace gradwire::cpu
