// index, index_select, embedding, gather.
#include <cstring>

#include "kernels/cpu/index_bounds.h"
#include "kernels/cpu/index_plan.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrain = 16384;

absl::Status take(std::string_view op, const TensorView& x, absl::Span<const TensorView> indices,
                  const IntList& dims, int64_t position, IndexPlan::Bounds bounds,
                  const TensorView& out, Context& context) {
  IndexPlan plan(indices.empty() ? 0 : indices[0].numel());
  GW_RETURN_IF_ERROR(plan.init(op, x, out, indices, dims, position, bounds, context));
  const Space<3>& space = plan.space();
  const auto [out_stride, x_stride, entry_stride] = space.last_strides;
  dispatch_size(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.as<T>();
    context.pool.parallel_ranges(space.numel, kGrain, [&](int64_t begin, int64_t end) {
      for_runs(space, begin, end, [&](const auto& at, int64_t count, int64_t) {
        T* to = out.as<T>() + at[0];
        const int64_t* entry = plan.offsets() + at[2];
        if (entry_stride != 0) {
          for (int64_t i = 0; i < count; ++i) {
            to[i * out_stride] = from[at[1] + i * x_stride + entry[i * entry_stride]];
          }
          return;
        }
        const T* row = from + at[1] + *entry;
        if (out_stride == 1 && x_stride == 1) {
          std::memcpy(to, row, static_cast<size_t>(count) * sizeof(T));
        } else {
          for (int64_t i = 0; i < count; ++i) to[i * out_stride] = row[i * x_stride];
        }
      });
    });
  });
  return absl::OkStatus();
}

absl::Status index(const KernelCall& call, Context& context) {
  const absl::Span<const TensorView> inputs = call.inputs;
  return take("index", inputs[0], inputs.subspan(1), attribute(call, 0).as_ints(),
              attribute(call, 1).as_int(), IndexPlan::Bounds::kWrap, call.outputs[0], context);
}

absl::Status index_select(const KernelCall& call, Context& context) {
  const absl::Span<const TensorView> inputs = call.inputs;
  const int64_t dim = attribute(call, 0).as_int();
  TensorView entries = inputs[1];
  if (inputs[0].rank > 0 && entries.rank == 0) {  // a 0-dim index counts as one entry
    entries.rank = 1;
    entries.sizes[0] = 1;
    entries.strides[0] = 1;
  }
  if (inputs[0].rank == 0) {  // the result is 0-dim too
    entries.rank = 0;
  }
  return take("index_select", inputs[0], {&entries, 1}, {dim}, dim, IndexPlan::Bounds::kInSelf,
              call.outputs[0], context);
}

absl::Status embedding(const KernelCall& call, Context& context) {
  const absl::Span<const TensorView> inputs = call.inputs;
  return take("embedding", inputs[0], inputs.subspan(1, 1), {0}, 0, IndexPlan::Bounds::kInSelf,
              call.outputs[0], context);
}

absl::Status gather(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  const int64_t dim = attribute(call, 0).as_int();
  const int64_t size = call.inputs[0].rank == 0 ? 1 : call.inputs[0].sizes[dim];
  if (auto bad = first_outside(call.inputs[1], 0, size, context)) {
    return runtime_error("[gather] index ", *bad, " is out of bounds for dimension ", dim,
                         " with size ", size);
  }
  Int64Index entries(call.inputs[1], context);
  if (!entries.ok()) return make_error(ErrorKind::kOutOfMemory, "[gather] out of memory");
  TensorView x = call.inputs[0];
  const int64_t step = x.rank == 0 ? 0 : x.strides[dim];
  if (x.rank > 0) x.strides[dim] = 0;
  const Space<3> space = space_of<3>({&entries.view(), &x, &out});
  const auto [entry_stride, x_stride, out_stride] = space.last_strides;
  dispatch_size(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_ranges(space.numel, kGrain, [&](int64_t begin, int64_t end) {
      for_runs(space, begin, end, [&](const auto& at, int64_t count, int64_t) {
        const int64_t* entry = entries.view().template as<int64_t>() + at[0];
        for (int64_t i = 0; i < count; ++i) {
          out.as<T>()[at[2] + i * out_stride] =
              x.as<T>()[at[1] + i * x_stride + entry[i * entry_stride] * step];
        }
      });
    });
  });
  return absl::OkStatus();
}

GW_CPU_KERNEL("index", index);
GW_CPU_KERNEL("index_select", index_select);
GW_CPU_KERNEL("embedding", embedding);
GW_CPU_KERNEL("gather", gather);

}  // namespace
}  // namespace gradwire::cpu
