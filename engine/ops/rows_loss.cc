// Rows 730 to 759: losses.
#include <tuple>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

absl::Status check_reduction(const Call& call, int slot) {
  const std::string& how = call.attr(slot).as_string();
  if (how == "none" || how == "mean" || how == "sum") return absl::OkStatus();
  return value_error(how, " is not a valid value for reduction");
}

Tensor reduce(const Tensor& loss, const std::string& how) {
  static const OpRef mean("mean");
  if (how == "mean") return call(mean, {loss});
  if (how == "sum") return sum(loss, {}, false);
  return loss;
}

// A pointwise loss of two tensors, then its reduction.
Tensors pair_loss(const Call& call, const OpRef& op) {
  absl::Status status = check_reduction(call, 0);
  if (!status.ok()) return {poisoned(status)};
  Tensor loss = gradwire::call(op, {call.in(0), call.in(1)});
  return {reduce(loss, call.attr(0).as_string())};
}

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

void backward_cross_entropy(Backward& b) {
  static const OpRef fused("cross_entropy_backward"), softmax("log_softmax_along");
  if (Slot::current().grad_enabled) {
    // To be differentiated again: the composed form of the same gradient.
    static const OpRef exp("exp");
    Tensor log_p = call(softmax, {b.input(0)}, {1});
    if (b.attr(2).as_double() == 0) {
      static const OpRef nll_back("nll_loss_backward");
      Tensor down = call(nll_back, {b.grad(0), log_p, b.input(1), b.input(2), b.output(2)},
                         {b.attr(0), b.attr(1)});
      b.set(0, sub(down, mul(call(exp, {log_p}), sum(down, {1}, true))));
      return;
    }
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
  absl::Status status = check_reduction(call, 1);
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
      target = gradwire::call(add_op, {mul(target, 1 - smoothing), nullptr},
                              {{}, smoothing / classes, 1});
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
    return {reduce(loss, how)};
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

Tensors compose_nll(const Call& call) {
  static const OpRef rows("nll_loss_rows");
  absl::Status status = check_reduction(call, 1);
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
  using E = expr::E;
  c.pointwise(730, "squared_error(Tensor input, Tensor target) -> Tensor", "(input - target)**2.",
              TypeRule::kPromote, [](E x, E y) { return expr::square(x - y); });
  c.pointwise(731, "absolute_error(Tensor input, Tensor target) -> Tensor", "|input - target|.",
              TypeRule::kPromote, [](E x, E y) { return expr::abs(x - y); });
  c.pointwise(732, "bce_with_logits(Tensor input, Tensor target) -> Tensor",
              "Binary cross entropy of sigmoid(input), stable.", TypeRule::kFloatOnly,
              [](E x, E y) {
                return (1.0 - y) * x - expr::select(x < 0.0, x, 0.0) +
                       expr::log1p(expr::exp(-expr::abs(x)));
              });
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) {
    c.add(number, OpKind::kComposite, signature, doc).compose = fn;
  };
  composite(740,
            "nn.functional.mse_loss(Tensor input, Tensor target, str reduction='mean') "
            "-> Tensor",
            "The mean (or sum) of squared differences.", [](const Call& call) {
              static const OpRef op("squared_error");
              return pair_loss(call, op);
            });
  composite(741,
            "nn.functional.l1_loss(Tensor input, Tensor target, str reduction='mean') "
            "-> Tensor",
            "The mean (or sum) of absolute differences.", [](const Call& call) {
              static const OpRef op("absolute_error");
              return pair_loss(call, op);
            });
  composite(742,
            "nn.functional.binary_cross_entropy_with_logits(Tensor input, Tensor target, "
            "str reduction='mean') -> Tensor",
            "Binary cross entropy of sigmoid(input).", [](const Call& call) {
              static const OpRef op("bce_with_logits");
              if (call.in(0)->sizes != call.in(1)->sizes) {
                return Tensors{poisoned(value_error("Target size (", shape_text(call.in(1)->sizes),
                                                    ") must be the same as input size (",
                                                    shape_text(call.in(0)->sizes), ")"))};
              }
              return pair_loss(call, op);
            });
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
