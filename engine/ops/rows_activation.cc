// Rows 253 to 261: further activations.
#include "engine/ops/call.h"
#include "engine/ops/pointwise_graph.h"

namespace gradwire {
namespace {

using expr::E;
using R = TypeRule;

absl::Status check_alpha(const Call& call) {
  if (call.attr(0).as_double() != 0) return absl::OkStatus();
  return runtime_error("ZeroDivisionError: alpha cannot be 0 for CELU [nn.functional.celu]");
}

absl::Status check_lambda(const Call& call) {
  if (call.attr(0).as_double() >= 0) return absl::OkStatus();
  return runtime_error("lambda must be greater or equal to 0, but found to be ",
                       call.attr(0).as_double(), ". [nn.functional.softshrink]");
}

Tensors compose_prelu(const Call& call) {
  static const OpRef op("prelu_by");
  const Tensor& x = call.in(0);
  Tensor weight = call.in(1);
  if (x->dtype != weight->dtype) {
    return {poisoned(runtime_error("[prelu] prelu: Type promoting not supported. Got ",
                                   std::string(dtype_name(x->dtype)), " and ",
                                   std::string(dtype_name(weight->dtype))))};
  }
  if (weight->rank() > 1) {
    return {poisoned(runtime_error("[prelu] prelu: Expected `weight` to be a scalar or 1D tensor, ",
                                   "but got: ndim = ", weight->rank()))};
  }
  int64_t n = weight->numel();
  if (n != 1) {
    if (x->rank() == 0) {
      return {poisoned(
          runtime_error("[prelu] Not allow zero-dim input tensor when weight is not a scalar."))};
    }
    int64_t channels = x->rank() > 1 ? x->sizes[1] : 1;
    if (channels != n) {
      return {poisoned(runtime_error("[prelu] Mismatch of parameter numbers and input channel ",
                                     "size. Found parameter numbers = ", n,
                                     " and channel size = ", channels, "."))};
    }
  }
  Dims sizes(x->rank(), 1);
  if (x->rank() > 1) sizes[1] = n;
  return {gradwire::call(op, {x, reshape(weight, sizes)})};
}

Tensors compose_glu(const Call& call) {
  static const OpRef narrow("narrow"), sigmoid("sigmoid");
  const Tensor& x = call.in(0);
  if (x->rank() == 0) {
    return {poisoned(runtime_error("[glu] glu does not support 0-dimensional tensors"))};
  }
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  int64_t size = x->sizes[*dim];
  if (size % 2) {
    return {poisoned(runtime_error("[glu] Halving dimension must be even, but dimension ", *dim,
                                   " is size ", size))};
  }
  if (!is_floating(x->dtype)) {
    return {poisoned(not_implemented_error("\"glu_cpu\" not implemented for '",
                                           std::string(dtype_name(x->dtype)), "'"))};
  }
  Tensor value = gradwire::call(narrow, {x}, {*dim, int64_t{0}, size / 2});
  Tensor gate = gradwire::call(narrow, {x}, {*dim, size / 2, size / 2});
  return {mul(value, gradwire::call(sigmoid, {gate}))};
}

}  // namespace

void add_activation_rows(Catalog& c) {
  c.pointwise(253, "nn.functional.celu(Tensor input, Scalar alpha=1.0) -> Tensor",
              "input where positive, else alpha * (exp(input / alpha) - 1).", R::kFloatOnly,
              [](E x, E alpha) { return expr::select(x > 0.0, x, alpha * expr::expm1(x / alpha)); })
      .check = check_alpha;
  c.pointwise(254, "nn.functional.selu(Tensor input) -> Tensor",
              "s * input where positive, else s * a * (exp(input) - 1), with the constants of "
              "self-normalising networks.",
              R::kFloatOnly, [](E x) {
                constexpr double kScale = 1.0507009873554804934193349852946;
                constexpr double kAlpha = 1.6732632423543772848170429916717;
                return expr::select(x > 0.0, x * kScale, expr::expm1(x) * (kScale * kAlpha));
              });
  c.pointwise(255, "nn.functional.hardshrink(Tensor input, Scalar lambd=0.5) -> Tensor",
              "0 where |input| <= lambd, else input.", R::kFloatOnly,
              [](E x, E l) { return expr::select(expr::logical_and(x >= -l, x <= l), 0.0, x); });
  c.pointwise(256, "nn.functional.softshrink(Tensor input, Scalar lambd=0.5) -> Tensor",
              "input drawn toward 0 by lambd, 0 where |input| <= lambd.", R::kFloatOnly,
              [](E x, E l) {
                E inside = expr::select(expr::is_nan(x), x, 0.0);
                return expr::select(x > l, x - l, expr::select(x < -l, x + l, inside));
              })
      .check = check_lambda;
  c.pointwise(257, "nn.functional.tanhshrink(Tensor input) -> Tensor", "input - tanh(input).",
              R::kPromoteFloat, [](E x) { return x - expr::tanh(x); });
  c.pointwise(258,
              "nn.functional.threshold(Tensor input, Scalar threshold, Scalar value) -> Tensor",
              "input where above threshold, else value.", R::kPromote,
              [](E x, E threshold, E value) { return expr::select(x <= threshold, value, x); });
  auto& prelu =
      c.add(259, OpKind::kComposite, "nn.functional.prelu(Tensor input, Tensor weight) -> Tensor",
            "input where positive, else weight * input; weight has one element or one "
            "for each channel (dim 1).");
  prelu.compose = compose_prelu;
  prelu.shape_rule = prelu.type_rule = "same";
  c.pointwise(260, "prelu_by(Tensor input, Tensor weight) -> Tensor",
              "input where positive, else weight * input.", R::kFloatOnly,
              [](E x, E w) { return expr::select(x > 0.0, x, w * x); });
  auto& glu =
      c.add(261, OpKind::kComposite, "nn.functional.glu(Tensor input, int dim=-1) -> Tensor",
            "The first half of input along dim times sigmoid of the second half.");
  glu.compose = compose_glu;
  glu.type_rule = "same";
  c.keep_internal({"prelu_by"});
}

}  // namespace gradwire
