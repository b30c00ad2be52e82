#include <atomic>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/softmax_rows.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrainElements = 1 << 14;

// Rows along one dimension of tensors of the same sizes.
struct Rows {
  IndexMap outer, inner;

  Rows() = default;
  Rows(const TensorView& view, int dim) : outer(map_without(view, dim)) {
    if (view.rank > 0) {
      inner.add(view.sizes[dim], view.strides[dim]);
    }
  }
};

bool dim_of(const KernelCall& call, int& dim) {
  const TensorView& view = call.outputs[0];
  int64_t d = call.attributes[0].as_int();
  if (d < 0) d += view.rank;
  dim = static_cast<int>(d);
  return view.rank == 0 ? d == 0 || d == -1 : d >= 0 && d < view.rank;
}

absl::Status dim_error(const char* op, const KernelCall& call) {
  return index_error("[", op, "] dim ", call.attributes[0].as_int(), " is out of range for rank ",
                     call.outputs[0].rank);
}

// Calls row(inputs as rows, output row, n) for each row along the dimension.
template <class T, int kInputs, class Row>
absl::Status over_rows(const KernelCall& call, int dim, ThreadPool& pool, Row&& row) {
  using C = ComputeOf<T>;
  const TensorView& out = call.outputs[0];
  if (out.numel() == 0) return absl::OkStatus();
  Rows to(out, dim);
  Rows from[kInputs];
  for (int i = 0; i < kInputs; ++i) from[i] = Rows(call.inputs[i], dim);
  int64_t n = to.inner.count;
  int64_t stride = (n + 15) / 16 * 16;
  int64_t grain = std::max<int64_t>(1, kGrainElements / n);
  std::atomic<bool> failed = false;
  pool.parallel_ranges(to.outer.count, grain, [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(stride * (kInputs + 1)) * sizeof(C));
    C* buffer = scratch.as<C>();
    if (!buffer) {
      failed = true;
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      const C* in[kInputs];
      for (int i = 0; i < kInputs; ++i) {
        const T* at = call.inputs[i].template as<const T>() + from[i].outer.offset(r);
        in[i] = read_row(at, from[i].inner, n, buffer + (i + 1) * stride);
      }
      T* at = out.as<T>() + to.outer.offset(r);
      C* y = row_target(at, to.inner, n, buffer);
      row(in, y, n);
      write_row(y, buffer, n, at, to.inner);
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

template <int kInputs, class Row>
absl::Status run(const char* op, const KernelCall& call, Context& context, Row&& row) {
  int dim = 0;
  if (!dim_of(call, dim)) return dim_error(op, call);
  absl::Status status;
  bool known = visit_floating(call.outputs[0].dtype, [&](auto tag) {
    status = over_rows<decltype(tag), kInputs>(call, dim, context.pool, row);
  });
  return known ? status : dtype_error(op, call.outputs[0].dtype);
}

absl::Status softmax(const KernelCall& call, Context& context) {
  return run<1>("softmax", call, context,
                [](auto* in, auto* y, int64_t n) { softmax_row(in[0], y, n); });
}
GW_CPU_KERNEL("softmax", softmax);

absl::Status log_softmax(const KernelCall& call, Context& context) {
  return run<1>("log_softmax", call, context,
                [](auto* in, auto* y, int64_t n) { log_softmax_row(in[0], y, n); });
}
GW_CPU_KERNEL("log_softmax", log_softmax);

// Attribute order: dim. Inputs: the gradient, then the forward's output.
absl::Status softmax_backward(const KernelCall& call, Context& context) {
  return run<2>("softmax_backward", call, context,
                [](auto* in, auto* dx, int64_t n) { softmax_backward_row(in[0], in[1], dx, n); });
}
GW_CPU_KERNEL("softmax_backward", softmax_backward);

absl::Status log_softmax_backward(const KernelCall& call, Context& context) {
  return run<2>("log_softmax_backward", call, context, [](auto* in, auto* dx, int64_t n) {
    log_softmax_backward_row(in[0], in[1], dx, n);
  });
}
GW_CPU_KERNEL("log_softmax_backward", log_softmax_backward);

}  // namespace
}  // namespace gradwire::cpu
