// loss = -w[t] x[t] from log-probabilities.
#include "kernels/cpu/loss_targets.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kRowGrain = 4096;

template <class T>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView& input = call.inputs[0];
  ClassRows rows(input);
  Targets targets(call.inputs[1], call.attributes[1].as_int());
  GW_RETURN_IF_ERROR(targets.check("nll_loss", rows.classes));
  DenseInput<C> weight(call.inputs[2], pool);
  Scratch memory(static_cast<size_t>(2 * rows.rows + 16) * sizeof(C));
  if (!weight.ok() || !memory.data()) return scratch_error();
  C* losses = memory.as<C>();
  C* weights = losses + rows.rows;
  pool.parallel_ranges(rows.rows, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t t = targets.at(r);
      weights[r] = t < 0 ? C(0) : weight.data() ? weight.data()[t] : C(1);
      losses[r] = 0;
      if (t < 0) continue;
      T x = input.as<const T>()[rows.outer.offset(r) + t * input.strides[input.rank == 1 ? 0 : 1]];
      losses[r] = -weights[r] * static_cast<C>(x);
    }
  });
  write_loss(losses, weights, rows.rows, reduction_of(call.attributes[0]), call.outputs[0],
             call.outputs[1]);
  return absl::OkStatus();
}

template <class T>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView& dx = call.outputs[0];
  ClassRows rows(dx);
  Targets targets(call.inputs[2], call.attributes[1].as_int());
  GW_RETURN_IF_ERROR(targets.check("nll_loss_backward", rows.classes));
  DenseInput<C> weight(call.inputs[3], pool);
  if (!weight.ok()) return scratch_error();
  if (dx.numel() == 0) return absl::OkStatus();
  RowGradient gradient(call.inputs[0], call.inputs[4], reduction_of(call.attributes[0]));
  int64_t step = dx.strides[dx.rank == 1 ? 0 : 1];
  pool.parallel_ranges(rows.rows, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* at = dx.as<T>() + rows.outer.offset(r);
      for (int64_t c = 0; c < rows.classes; ++c) at[c * step] = T(C(0));
      int64_t t = targets.at(r);
      if (t < 0) continue;
      C w = weight.data() ? weight.data()[t] : C(1);
      at[t * step] = T(-w * static_cast<C>(gradient.at(r)));
    }
  });
  return absl::OkStatus();
}

absl::Status nll_loss(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(
      call.inputs[0].dtype, [&](auto tag) { status = forward<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("nll_loss", call.inputs[0].dtype);
}
GW_CPU_KERNEL("nll_loss", nll_loss);

absl::Status nll_loss_backward(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.outputs[0].dtype, [&](auto tag) {
    status = backward<decltype(tag)>(call, context.pool);
  });
  return known ? status : dtype_error("nll_loss_backward", call.outputs[0].dtype);
}
GW_CPU_KERNEL("nll_loss_backward", nll_loss_backward);

}  // namespace
}  // namespace gradwire::cpu
