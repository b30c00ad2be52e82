// Rows 743, 744, 750 to 753, 778: losses at class targets.
#include <algorithm>
#include <tuple>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

// --- cross entropy -------------------------------------------------------------------------------

// [N, C, d1, ...] and [N, d1, ...]; a single [C] with a 0-dim target.
absl::Status check_classes(const Call& call) {
  const Tensor& x = call.in(0);
  const Tensor& target = call.in(1);
  const Tensor& weight = call.in(2);
  if (!is_floating(x->dtype)) {
    return not_implemented_error("\"", call.op->name, "\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  if (target->dtype != DType::kInt64) {
    return runtime_error("expected scalar type Long but found ",
                         std::string(dtype_name(target->dtype)), " for the targets [",
                         call.op->name, "]");
  }
  if (x->rank() < 2) return value_error("expected logits of at least 2 dims, got ", x->text());
  Dims expected{x->sizes[0]};
  expected.insert(expected.end(), x->sizes.begin() + 2, x->sizes.end());
  if (target->sizes.empty() || target->sizes[0] != x->sizes[0]) {
    return value_error("Expected input batch_size (", x->sizes[0], ") to match target batch_size (",
                       target->sizes.empty() ? 0 : target->sizes[0], ").");
  }
  if (target->sizes != expected) {
    return runtime_error("Expected target size ", shape_text(expected), ", got ",
                         shape_text(target->sizes));
  }
  if (weight && (weight->rank() != 1 || weight->sizes[0] != x->sizes[1])) {
    return runtime_error(
        "weight tensor should be defined either for all ", x->sizes[1],
        " classes or no classes but got weight tensor of shape: ", shape_text(weight->sizes));
  }
  return absl::OkStatus();
}

DType statistics_dtype(DType t) {
  return t == DType::kFloat64 ? t : DType::kFloat32;
}

absl::Status infer_cross_entropy(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_classes(call));
  const Tensor& x = call.in(0);
  const Tensor& target = call.in(1);
  bool none = call.attr(0).as_string() == "none";
  out->push_back({x->dtype, none ? target->sizes : Dims{}, {}});
  out->push_back({statistics_dtype(x->dtype), target->sizes, {}});
  out->push_back({statistics_dtype(x->dtype), {}, {}});
  return absl::OkStatus();
}

// By the log-probabilities: minus smoothing / C of each row's gradient, times the class weights.
Tensor smoothed_gradient(Backward& b, double smoothing) {
  const Dims& sizes = b.input_spec(0).sizes;
  Tensor g = b.grad(0), target = b.input(1), weight = b.input(2);
  if (target->poison) return target;
  if (b.attr(0).as_string() == "mean") g = div(g, b.output(2));
  static const OpRef eq("eq");
  Tensor ignored = with_number(eq, target, b.attr(1));
  Tensor rows = masked_fill(expand(g, target->sizes), ignored, 0);
  rows = mul(unsqueeze(rows, 1), -smoothing / static_cast<double>(std::max<int64_t>(sizes[1], 1)));
  if (weight) {
    Dims channel(sizes.size(), 1);
    channel[1] = sizes[1];
    rows = mul(rows, reshape(weight, channel));
  }
  return rows->poison ? rows : expand(rows, sizes);
}

void backward_cross_entropy(Backward& b) {
  static const OpRef fused("cross_entropy_backward"), softmax("log_softmax_along");
  if (Slot::current().grad_enabled) {
    // To be differentiated again: the composed form of the same gradient.
    static const OpRef exp("exp");
    Tensor log_p = call(softmax, {b.input(0)}, {1});
    double smoothing = b.attr(2).as_double();
    static const OpRef nll_back("nll_loss_backward");
    Tensor down = call(nll_back, {b.grad(0), log_p, b.input(1), b.input(2), b.output(2)},
                       {b.attr(0), b.attr(1)});
    if (smoothing > 0 && !down->poison) {
      down = add(mul(down, 1 - smoothing), smoothed_gradient(b, smoothing));
    }
    b.set(0, sub(down, mul(call(exp, {log_p}), sum(down, {1}, true))));
    return;
  }
  b.set(0, call(fused, {b.grad(0), b.input(0), b.input(1), b.input(2), b.output(1), b.output(2)},
                {b.attr(0), b.attr(1), b.attr(2)}));
}

absl::Status infer_second(const Call& call, TensorSpecs* out) {
  out->push_back({call.in(1)->dtype, call.in(1)->sizes, {}});
  return absl::OkStatus();
}

Tensors compose_cross_entropy(const Call& call) {
  static const OpRef rows("cross_entropy_rows"), softmax("log_softmax_along");
  absl::Status status = check_reduction(call.attr(1).as_string());
  if (!status.ok()) return {poisoned(status)};
  Tensor x = call.in(0), target = call.in(1), weight = call.in(2);
  double smoothing = call.attr(2).as_double();
  if (smoothing < 0 || smoothing > 1) {
    return {
        poisoned(runtime_error("label_smoothing must be between 0.0 and 1.0. Got: ", smoothing))};
  }
  const std::string& how = call.attr(1).as_string();
  bool single = x->rank() == 1;
  if (x->sizes.empty()) {
    return {
        poisoned(runtime_error("cross_entropy expects logits of at least 1 dim, got ", x->text()))};
  }
  if (is_floating(target->dtype)) {
    // Class probabilities.
    if (target->sizes != x->sizes) {
      return {poisoned(runtime_error("cross_entropy: probability targets ", target->text(),
                                     " must have the shape of the logits ", x->text()))};
    }
    int64_t dim = single ? 0 : 1;
    double classes = static_cast<double>(x->sizes[dim]);
    if (smoothing > 0) {
      static const OpRef add_op("add");
      target = with_number(add_op, mul(target, 1 - smoothing), smoothing / classes, 1);
    }
    Tensor log_p = gradwire::call(softmax, {x}, {dim});
    Tensor term = mul(log_p, target);
    if (weight) {
      Dims sizes(x->rank(), 1);
      sizes[dim] = -1;
      term = mul(term, reshape(weight, sizes));
    }
    Tensor loss = neg(sum(term, {dim}, false));
    if (how == "mean") {
      double samples = static_cast<double>(x->numel()) / classes;
      return {div(sum(loss, {}, false), samples)};
    }
    return {reduce_loss(loss, how)};
  }
  if (single) {
    x = unsqueeze(x, 0);
    target = unsqueeze(target, 0);
  }
  Tensor loss = call_many(rows, {x, target, weight}, {how, call.attr(0), smoothing})[0];
  return {single && how == "none" ? squeeze(loss, 0) : loss};
}

absl::Status infer_nll(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_classes(call));
  const Tensor& x = call.in(0);
  bool none = call.attr(0).as_string() == "none";
  out->push_back({x->dtype, none ? call.in(1)->sizes : Dims{}, {}});
  out->push_back({statistics_dtype(x->dtype), {}, {}});
  return absl::OkStatus();
}

void backward_nll(Backward& b) {
  static const OpRef op("nll_loss_backward");
  b.set(0, call(op, {b.grad(0), b.input(0), b.input(1), b.input(2), b.output(1)},
                {b.attr(0), b.attr(1)}));
}

// Linear in the gradient: minus the gathered and reduced gradient of the gradient.
void backward_nll_backward(Backward& b) {
  static const OpRef rows("nll_loss_rows");
  b.set(0, call_many(rows, {b.grad(), b.input(2), b.input(3)}, {b.attr(0), b.attr(1)})[0]);
}

// inputs input, linear_weight, target, linear_bias?, weight?; attributes reduction, ignore_index,
// label_smoothing. linear_weight [C, d1, ..., D].
Tensors compose_linear(const Call& call) {
  static const OpRef linear("nn.functional.linear"), entropy("nn.functional.cross_entropy");
  const Tensor &x = call.in(0), &target = call.in(2);
  Tensor weight = call.in(1), bias = call.in(3);
  auto fails = [](const absl::Status& status) { return Tensors{poisoned(status)}; };
  if (x->rank() < 1 || x->rank() > 2) {
    return fails(runtime_error("expected input with dimensionality 1 or 2, got ", x->rank()));
  }
  if (weight->rank() < 2) {
    return fails(runtime_error("expected linear_weight with dimensionality at least 2, got ",
                               weight->rank()));
  }
  int64_t features = x->sizes.back();
  if (weight->sizes.back() != features) {
    return fails(
        runtime_error("expected equal input and linear_weight last dimensions "
                      "(in_features), got ",
                      features, " and ", weight->sizes.back(), ", respectively"));
  }
  Dims outputs(weight->sizes.begin(), weight->sizes.end() - 1);
  if (bias && bias->sizes != outputs) {
    return fails(runtime_error("expected linear_bias shape ", shape_text(outputs), ", got ",
                               shape_text(bias->sizes)));
  }
  if (outputs.size() > 1 && x->rank() == 1) {
    return fails(runtime_error("K-dimensional loss defined by linear_weight shape ",
                               shape_text(weight->sizes), " requires batched input, (N, ", features,
                               "), got unbatched input with shape ", shape_text(x->sizes)));
  }
  Dims logits_sizes(x->sizes.begin(), x->sizes.end() - 1);
  logits_sizes.insert(logits_sizes.end(), outputs.begin(), outputs.end());
  if (target->sizes == logits_sizes && !call.attr(1).none()) {
    return fails(
        runtime_error("ignore_index cannot be specified when target contains probabilities"));
  }
  Attribute ignored = call.attr(1).none() ? Attribute(-100) : call.attr(1);
  int64_t rows = numel_of(outputs);
  weight = reshape(weight, Dims{rows, features});
  if (bias) bias = reshape(bias, Dims{rows});
  Tensor logits = reshape(gradwire::call(linear, {x, weight, bias}), logits_sizes);
  return {
      gradwire::call(entropy, {logits, target, call.in(4)}, {ignored, call.attr(0), call.attr(2)})};
}

Tensors compose_nll(const Call& call) {
  static const OpRef rows("nll_loss_rows");
  absl::Status status = check_reduction(call.attr(1).as_string());
  if (!status.ok()) return {poisoned(status)};
  Tensor x = call.in(0), target = call.in(1);
  bool single = x->rank() == 1;
  if (single) {
    x = unsqueeze(x, 0);
    target = unsqueeze(target, 0);
  }
  const std::string& how = call.attr(1).as_string();
  Tensor loss = call_many(rows, {x, target, call.in(2)}, {how, call.attr(0)})[0];
  return {single && how == "none" ? squeeze(loss, 0) : loss};
}

}  // namespace

void add_loss_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view shape = "class_loss") {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.shape_rule = std::string(shape);
    r.type_rule = "same";
  };
  composite(743,
            "nn.functional.cross_entropy(Tensor input, Tensor target, Tensor? weight=None, "
            "int ignore_index=-100, str reduction='mean', float label_smoothing=0.0) "
            "-> Tensor",
            "-log softmax(input) at the target classes, or against class probabilities; a weighted "
            "mean divides by the weights' sum.",
            compose_cross_entropy);
  composite(744,
            "nn.functional.nll_loss(Tensor input, Tensor target, Tensor? weight=None, "
            "int ignore_index=-100, str reduction='mean') -> Tensor",
            "Minus the log-probabilities at the target classes.", compose_nll);
  composite(
      778,
      "nn.functional.linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, "
      "*, Tensor? linear_bias=None, Tensor? weight=None, str reduction='mean', "
      "int? ignore_index=None, float label_smoothing=0.0) -> Tensor",
      "cross_entropy of linear(input, linear_weight, linear_bias); linear_weight [C, d1, ..., "
      "D] gives scores [N, C, d1, ...].",
      compose_linear, "loss");
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    std::string_view name, InferFn infer, BackwardFn backward, uint32_t inputs,
                    uint32_t outputs) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.kernel = std::string(name);
    r.infer = infer;
    r.backward = backward;
    r.saves_inputs = inputs;
    r.saves_outputs = outputs;
    r.checks = true;
    return r;
  };
  kernel(750,
         "cross_entropy_rows(Tensor input, Tensor target, Tensor? weight, str reduction, "
         "int ignore_index, float label_smoothing) -> "
         "(Tensor loss, Tensor lse, Tensor total_weight)",
         "Cross entropy at class targets, in one pass.", "cross_entropy", infer_cross_entropy,
         backward_cross_entropy, save(0) | save(1) | save(2), save(1) | save(2))
      .no_grad_inputs = {2};
  kernel(751,
         "cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, "
         "Tensor lse, Tensor total_weight, str reduction, int ignore_index, "
         "float label_smoothing) -> Tensor",
         "The gradient of cross_entropy_rows.", "cross_entropy_backward", infer_second, nullptr, 0,
         0);
  kernel(752,
         "nll_loss_rows(Tensor input, Tensor target, Tensor? weight, str reduction, "
         "int ignore_index) -> (Tensor loss, Tensor total_weight)",
         "Minus the log-probabilities at class targets.", "nll_loss", infer_nll, backward_nll,
         save(0) | save(1) | save(2), save(1))
      .no_grad_inputs = {2};
  kernel(753,
         "nll_loss_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, "
         "Tensor total_weight, str reduction, int ignore_index) -> Tensor",
         "The gradient of nll_loss_rows.", "nll_loss_backward", infer_second, backward_nll_backward,
         save(2) | save(3), 0)
      .no_grad_inputs = {1, 3, 4};
  c.keep_internal({"cross_entropy_backward", "nll_loss_backward"});
}

}  // namespace gradwire
