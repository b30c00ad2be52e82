// conv and its two gradients: oneDNN where it is fast, columns elsewhere.
#include "kernels/cpu/conv_columns.h"
#include "kernels/cpu/conv_direct.h"
#include "kernels/cpu/conv_dnnl.h"
#include "kernels/cpu/dense.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Dense with channels innermost; dimensions of size 1 do not matter.
bool channels_last(const TensorView& view) {
  int64_t expected = 1;
  auto fits = [&](int d) {
    bool ok = view.sizes[d] == 1 || view.strides[d] == expected;
    expected *= view.sizes[d];
    return ok;
  };
  if (!fits(1)) return false;
  for (int d = view.rank - 1; d >= 2; --d) {
    if (!fits(d)) return false;
  }
  return fits(0);
}

// Images as oneDNN takes them: as they are when they are dense in S either way, else a copy.
template <class S>
bool dense_channels_last(const TensorView& view) {
  return view.dtype == dtype_of<S>() && !view.contiguous() && channels_last(view);
}

template <class S>
class InputImages {
 public:
  InputImages(const TensorView& view, ThreadPool& pool)
      : last_(dense_channels_last<S>(view)), dense_(view, pool, last_) {}
  bool ok() const { return dense_.ok(); }
  ConvImages images() const { return {const_cast<S*>(dense_.data()), last_}; }

 private:
  bool last_;
  DenseInput<S> dense_;
};

template <class S>
class OutputImages {
 public:
  OutputImages(const TensorView& view, ThreadPool& pool)
      : last_(dense_channels_last<S>(view)), dense_(view, pool, last_) {}
  bool ok() const { return dense_.ok(); }
  ConvImages images() const { return {dense_.data(), last_}; }
  void store() { dense_.store(); }

 private:
  bool last_;
  DenseOutput<S> dense_;
};

// The three tensors of a convolution, two of them inputs of the kernel and one its output.
struct Operands {
  ConvKind kind;
  ConvShape shape;
  const TensorView& a;
  const TensorView& b;
  const TensorView& bias;
  const TensorView& out;
};

template <class S>
absl::Status by_dnnl(const Operands& o, ThreadPool& pool, bool& done) {
  DType dtype = dtype_of<S>();
  InputImages<S> a(o.a, pool);
  if (!a.ok()) return scratch_error();
  if (o.kind == ConvKind::kBackwardWeight) {
    InputImages<S> b(o.b, pool);
    DenseOutput<float> out(o.out, pool);
    if (!b.ok() || !out.ok()) return scratch_error();
    GW_RETURN_IF_ERROR(conv_dnnl(o.kind, dtype, o.shape, a.images(), b.images(), nullptr,
                                 {out.data(), false}, pool, done));
    if (done) out.store();
    return absl::OkStatus();
  }
  DenseInput<S> weight(o.b, pool), bias(o.bias, pool);
  OutputImages<S> out(o.out, pool);
  if (!weight.ok() || !bias.ok() || !out.ok()) return scratch_error();
  ConvImages w{const_cast<S*>(weight.data()), false};
  GW_RETURN_IF_ERROR(
      conv_dnnl(o.kind, dtype, o.shape, a.images(), w, bias.data(), out.images(), pool, done));
  if (done) out.store();
  return absl::OkStatus();
}

template <class C>
absl::Status by_columns(const Operands& o, ThreadPool& pool) {
  DenseInput<C> a(o.a, pool), b(o.b, pool), bias(o.bias, pool);
  DenseOutput<C> out(o.out, pool);
  if (!a.ok() || !b.ok() || !bias.ok() || !out.ok()) return scratch_error();
  absl::Status status;
  switch (o.kind) {
    case ConvKind::kForward:
      status = conv_columns<C>(o.shape, a.data(), b.data(), bias.data(), out.data(), pool);
      break;
    case ConvKind::kBackwardInput:
      status = conv_columns_backward_input<C>(o.shape, a.data(), b.data(), out.data(), pool);
      break;
    case ConvKind::kBackwardWeight:
      status = conv_columns_backward_weight<C>(o.shape, b.data(), a.data(), out.data(), pool);
      break;
  }
  if (status.ok()) out.store();
  return status;
}

absl::Status by_definition(const Operands& o, ThreadPool& pool) {
  DenseInput<int64_t> a(o.a, pool), b(o.b, pool), bias(o.bias, pool);
  DenseOutput<int64_t> out(o.out, pool);
  if (!a.ok() || !b.ok() || !bias.ok() || !out.ok()) return scratch_error();
  if (o.kind == ConvKind::kForward) {
    conv_direct(o.shape, a.data(), b.data(), bias.data(), out.data(), pool);
  } else {
    conv_direct_backward_input(o.shape, a.data(), b.data(), out.data(), pool);
  }
  out.store();
  return absl::OkStatus();
}

absl::Status run(const char* op, const Operands& o, ThreadPool& pool) {
  DType dtype = o.out.dtype;
  if (dtype == DType::kInt64 && o.kind != ConvKind::kBackwardWeight) {
    return o.out.numel() == 0 ? absl::OkStatus() : by_definition(o, pool);
  }
  if (!is_floating(dtype)) return dtype_error(op, dtype);
  if (o.out.numel() == 0) return absl::OkStatus();
  if (dtype == DType::kFloat64) return by_columns<double>(o, pool);
  bool done = false;
  if (dtype == DType::kBFloat16 && dnnl_has_bfloat16()) {
    GW_RETURN_IF_ERROR(by_dnnl<BFloat16>(o, pool, done));
    if (done) return absl::OkStatus();
  }
  GW_RETURN_IF_ERROR(by_dnnl<float>(o, pool, done));
  return done ? absl::OkStatus() : by_columns<float>(o, pool);
}

absl::Status conv(const KernelCall& call, Context& context) {
  TensorView bias = call.inputs.size() > 2 ? call.inputs[2] : TensorView{};
  ConvShape shape;
  GW_RETURN_IF_ERROR(
      conv_shape("conv", call.inputs[0], call.inputs[1], call.outputs[0], call.attributes, shape));
  return run("conv",
             {ConvKind::kForward, shape, call.inputs[0], call.inputs[1], bias, call.outputs[0]},
             context.pool);
}
GW_CPU_KERNEL("conv", conv);

// grad, w -> dx
absl::Status conv_backward_input(const KernelCall& call, Context& context) {
  ConvShape shape;
  GW_RETURN_IF_ERROR(conv_shape("conv_backward_input", call.outputs[0], call.inputs[1],
                                call.inputs[0], call.attributes, shape));
  TensorView none;
  return run(
      "conv_backward_input",
      {ConvKind::kBackwardInput, shape, call.inputs[0], call.inputs[1], none, call.outputs[0]},
      context.pool);
}
GW_CPU_KERNEL("conv_backward_input", conv_backward_input);

// grad, x -> dw
absl::Status conv_backward_weight(const KernelCall& call, Context& context) {
  ConvShape shape;
  GW_RETURN_IF_ERROR(conv_shape("conv_backward_weight", call.inputs[1], call.outputs[0],
                                call.inputs[0], call.attributes, shape));
  TensorView none;
  return run(
      "conv_backward_weight",
      {ConvKind::kBackwardWeight, shape, call.inputs[1], call.inputs[0], none, call.outputs[0]},
      context.pool);
}
GW_CPU_KERNEL("conv_backward_weight", conv_backward_weight);

}  // namespace
}  // namespace gradwire::cpu
