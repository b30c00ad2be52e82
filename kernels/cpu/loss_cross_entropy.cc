// Cross entropy from logits: with p = softmax(x), W the weights' sum and s the smoothing,
//   loss = (1 - s) w[t] (lse - x[t]) + s / C sum_c w[c] (lse - x[c])
#include <atomic>

#include "kernels/cpu/loss_targets.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/softmax_rows.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrainElements = 1 << 14;

int64_t padded(int64_t n) {
  return (n + 15) / 16 * 16;
}

struct Options {
  Reduction reduction;
  int64_t ignore_index;
  double smoothing;

  explicit Options(const KernelCall& call)
      : reduction(reduction_of(call.attributes[0])),
        ignore_index(call.attributes[1].as_int()),
        smoothing(call.attributes[2].as_double()) {}
};

template <class T>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView& logits = call.inputs[0];
  const TensorView& lse_out = call.outputs[1];
  Options options(call);
  ClassRows rows(logits);
  Targets targets(call.inputs[1], options.ignore_index);
  int64_t n = rows.classes;
  GW_RETURN_IF_ERROR(targets.check("cross_entropy", n));
  DenseInput<C> weight(call.inputs[2], pool);
  const C* w = weight.data();
  Scratch memory(static_cast<size_t>(2 * rows.rows + 16) * sizeof(C));
  if (!weight.ok() || !memory.data()) return scratch_error();
  C* losses = memory.as<C>();
  C* weights = losses + rows.rows;
  IndexMap lse_map = map_dims(lse_out, 0, lse_out.rank);
  std::atomic<bool> failed = false;
  int64_t grain = std::max<int64_t>(1, kGrainElements / (n + 1));
  pool.parallel_ranges(rows.rows, grain, [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(padded(n) + 16) * sizeof(C));
    if (!scratch.data()) {
      failed = true;
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      const T* at = logits.as<const T>() + rows.outer.offset(r);
      const C* x = read_row(at, rows.inner, n, scratch.as<C>());
      C lse = log_sum_exp(x, n);
      if (lse_out.present()) write_element(lse_out, lse_map.offset(r), lse);
      int64_t t = targets.at(r);
      losses[r] = 0;
      weights[r] = 0;
      if (t < 0) continue;
      weights[r] = w ? w[t] : C(1);
      C loss = weights[r] * (lse - x[t]);
      if (options.smoothing > 0) {
        auto v = Simd<C>::set(lse);
        C smooth = reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
          auto d = v - load_lanes<C>(x + i, lanes, lse);
          return w ? d * load_lanes<C>(w + i, lanes, C(0)) : d;
        });
        auto s = static_cast<C>(options.smoothing);
        loss = (C(1) - s) * loss + s / static_cast<C>(n) * smooth;
      }
      losses[r] = loss;
    }
  });
  if (failed) return scratch_error();
  write_loss(losses, weights, rows.rows, options.reduction, call.outputs[0], call.outputs[2]);
  return absl::OkStatus();
}

template <class C>
void backward_row(const C* x, C* dx, int64_t n, int64_t target, C lse, C grad, const C* w,
                  C weight_sum, C smoothing) {
  using S = Simd<C>;
  C each = smoothing > 0 ? grad * smoothing / static_cast<C>(n) : C(0);
  C hit = grad * (C(1) - smoothing) * (w ? w[target] : C(1));
  auto a = S::set(hit + each * weight_sum), b = S::set(each), l = S::set(lse);
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    auto p = S::exp(load_lanes<C>(x + i, lanes, C(0)) - l) * a;
    if (smoothing > 0) p = p - (w ? b * load_lanes<C>(w + i, lanes, C(0)) : b);
    store_lanes<C>(dx + i, lanes, p);
  });
  dx[target] -= hit;
}

template <class T>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView &logits = call.inputs[1], &lse = call.inputs[4];
  const TensorView& dx = call.outputs[0];
  Options options(call);
  ClassRows rows(logits), to(dx);
  Targets targets(call.inputs[2], options.ignore_index);
  int64_t n = rows.classes;
  GW_RETURN_IF_ERROR(targets.check("cross_entropy_backward", n));
  DenseInput<C> weight(call.inputs[3], pool);
  if (!weight.ok()) return scratch_error();
  if (dx.numel() == 0) return absl::OkStatus();
  const C* w = weight.data();
  C weight_sum = static_cast<C>(w ? ordered_sum(w, n) : static_cast<double>(n));
  RowGradient gradient(call.inputs[0], call.inputs[5], options.reduction);
  IndexMap lse_map = map_dims(lse, 0, lse.rank);
  std::atomic<bool> failed = false;
  int64_t grain = std::max<int64_t>(1, kGrainElements / (n + 1));
  pool.parallel_ranges(rows.rows, grain, [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(2 * padded(n) + 16) * sizeof(C));
    C* buffer = scratch.as<C>();
    if (!buffer) {
      failed = true;
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      T* at = dx.as<T>() + to.outer.offset(r);
      C* out = row_target(at, to.inner, n, buffer + padded(n));
      int64_t t = targets.at(r);
      if (t < 0) {
        std::fill(out, out + n, C(0));
      } else {
        const T* from = logits.as<const T>() + rows.outer.offset(r);
        const C* x = read_row(from, rows.inner, n, buffer);
        backward_row(x, out, n, t, static_cast<C>(read_element(lse, lse_map.offset(r))),
                     static_cast<C>(gradient.at(r)), w, weight_sum,
                     static_cast<C>(options.smoothing));
      }
      write_row(out, buffer + padded(n), n, at, to.inner);
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

absl::Status cross_entropy(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(
      call.inputs[0].dtype, [&](auto tag) { status = forward<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("cross_entropy", call.inputs[0].dtype);
}
GW_CPU_KERNEL("cross_entropy", cross_entropy);

absl::Status cross_entropy_backward(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[1].dtype, [&](auto tag) {
    status = backward<decltype(tag)>(call, context.pool);
  });
  return known ? status : dtype_error("cross_entropy_backward", call.inputs[1].dtype);
}
GW_CPU_KERNEL("cross_entropy_backward", cross_entropy_backward);

}  // namespace
}  // namespace gradwire::cpu
