// Rows 730 to 749, 754 to 779: losses of an input and a target, element by element.
#include <cmath>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

using expr::E;

// A pointwise loss of two tensors times a weight of the input's sizes. `by_weight`: a weighted
// mean divides by the weights' sum.
Tensors weighted_loss(const Tensor& loss, const Tensor& input, const Tensor& weight,
                      const std::string& how, bool by_weight) {
  absl::Status status = check_reduction(how);
  if (!status.ok()) return {poisoned(status)};
  if (!weight || loss->poison) return {loss->poison ? loss : reduce_loss(loss, how)};
  if (weight->sizes != input->sizes) {
    return {poisoned(value_error("Weights and input must have the same size."))};
  }
  Tensor weighted = mul(loss, weight);
  if (how == "mean" && by_weight) {
    return {div(sum(weighted, {}, false), sum(weight, {}, false))};
  }
  return {reduce_loss(weighted, how)};
}

// weight broadcasts to the loss.
Tensors broadcast_weighted(Tensor loss, const Tensor& weight, const std::string& how) {
  if (weight) loss = mul(loss, weight);
  return {loss->poison ? loss : reduce_loss(loss, how)};
}

Tensors compose_mse(const Call& call) {
  static const OpRef op("squared_error");
  const std::string& how = call.attr(0).as_string();
  return weighted_loss(gradwire::call(op, {call.in(0), call.in(1)}), call.in(0), call.in(2), how,
                       true);
}

Tensors compose_l1(const Call& call) {
  static const OpRef op("absolute_error");
  const std::string& how = call.attr(0).as_string();
  return weighted_loss(gradwire::call(op, {call.in(0), call.in(1)}), call.in(0), call.in(2), how,
                       true);
}

Tensors compose_huber(const Call& call) {
  static const OpRef op("huber_error");
  if (!(call.attr(1).as_double() > 0)) {
    return {poisoned(runtime_error("huber_loss does not support non-positive values for delta."))};
  }
  const std::string& how = call.attr(0).as_string();
  Tensor loss = gradwire::call(op, {call.in(0), call.in(1)}, {call.attr(1)});
  return weighted_loss(loss, call.in(0), call.in(2), how, false);
}

Tensors compose_smooth_l1(const Call& call) {
  static const OpRef smooth("smooth_l1_error"), absolute("absolute_error");
  const std::string& how = call.attr(0).as_string();
  double beta = call.attr(1).as_double();
  if (beta < 0) {
    return {poisoned(runtime_error("smooth_l1_loss does not support negative values for beta."))};
  }
  Tensor loss = beta == 0 ? gradwire::call(absolute, {call.in(0), call.in(1)})
                          : gradwire::call(smooth, {call.in(0), call.in(1)}, {beta});
  return weighted_loss(loss, call.in(0), nullptr, how, false);
}

Tensors compose_bce(const Call& call) {
  static const OpRef op("binary_cross_entropy");
  const Tensor &x = call.in(0), &target = call.in(1);
  const std::string& how = call.attr(0).as_string();
  absl::Status status = check_reduction(how);
  if (!status.ok()) return {poisoned(status)};
  if (x->sizes != target->sizes) {
    return {poisoned(value_error("Using a target size (", shape_text(target->sizes),
                                 ") that is different to the input size (", shape_text(x->sizes),
                                 ") is deprecated. Please ensure they have the same size."))};
  }
  Tensor checked = checked_range(x, 0, 1, true, "RuntimeError",
                                 "all elements of input should be between 0 and 1");
  return broadcast_weighted(gradwire::call(op, {checked, target}), call.in(2), how);
}

Tensors compose_bce_with_logits(const Call& call) {
  static const OpRef plain("bce_with_logits"), positive("bce_with_logits_positive");
  const Tensor &x = call.in(0), &target = call.in(1), &pos_weight = call.in(3);
  const std::string& how = call.attr(0).as_string();
  absl::Status status = check_reduction(how);
  if (!status.ok()) return {poisoned(status)};
  if (x->sizes != target->sizes) {
    return {poisoned(value_error("Target size (", shape_text(target->sizes),
                                 ") must be the same as input size (", shape_text(x->sizes), ")"))};
  }
  Tensor loss = pos_weight ? gradwire::call(positive, {x, target, pos_weight})
                           : gradwire::call(plain, {x, target});
  return broadcast_weighted(loss, call.in(2), how);
}

// Step by step, as torch: exp(-target * input) may overflow to inf in the tensor's own dtype, and
// so may its gradient.
Tensor soft_margin_power(const Tensor& x, const Tensor& target) {
  static const OpRef exp("exp");
  return call(exp, {mul(neg(target), x)});
}

void backward_soft_margin(Backward& b) {
  Tensor x = b.input(0), target = b.input(1);
  Tensor z = soft_margin_power(x, target);
  Tensor grad = mul(div(neg(mul(target, z)), add(z, 1)), b.grad());
  b.set(0, sum_to(grad, b.input_spec(0).sizes));
}

Tensors compose_soft_margin(const Call& call) {
  static const OpRef op("soft_margin");
  const Tensor& x = call.in(0);
  if (!is_floating(x->dtype)) {
    return {poisoned(runtime_error("result type Float can't be cast to the desired output type ",
                                   std::string(dtype_name(x->dtype))))};
  }
  return weighted_loss(gradwire::call(op, {x, call.in(1)}), nullptr, nullptr,
                       call.attr(0).as_string(), false);
}

Tensors compose_kl_div(const Call& call) {
  static const OpRef plain("kl_divergence"), logarithmic("kl_divergence_log");
  const Tensor& x = call.in(0);
  std::string how = call.attr(0).as_string();
  bool batch = how == "batchmean";
  if (batch) how = "sum";
  if (!is_floating(x->dtype) || !is_floating(call.in(1)->dtype)) {
    return {poisoned(runtime_error("kl_div: Integral inputs not supported."))};
  }
  Tensor loss = gradwire::call(call.attr(1).as_bool() ? logarithmic : plain, {x, call.in(1)});
  loss = weighted_loss(loss, nullptr, nullptr, how, false)[0];
  if (!batch || x->sizes.empty()) return {loss};
  return {div(loss, static_cast<double>(x->sizes[0]))};
}

// Stirling's term, target log(target) - target + log(2 pi target) / 2 where target > 1, else 0.
Tensor stirling(const Tensor& target) {
  static const OpRef log("log"), le("le");
  Tensor term = sub(mul(target, call(log, {target})), target);
  term = add(term, mul(call(log, {mul(target, 6.28318530717958647693)}), 0.5));
  return masked_fill(term, with_number(le, target, 1), 0);
}

// Step by step, as torch: 16-bit floats are rounded after each.
Tensors compose_poisson(const Call& call) {
  static const OpRef exp("exp"), log("log");
  const Tensor &x = call.in(0), &target = call.in(1);
  Tensor loss;
  if (call.attr(0).as_bool()) {
    loss = sub(gradwire::call(exp, {x}), mul(target, x));
  } else {
    loss = sub(x, mul(target, gradwire::call(log, {add(x, call.attr(2).as_double())})));
  }
  if (call.attr(1).as_bool()) loss = add(loss, stirling(target));
  return weighted_loss(loss, nullptr, nullptr, call.attr(3).as_string(), false);
}

// inputs input, target, var (or a number); attributes var, full, eps, reduction.
Tensors compose_gaussian(const Call& call) {
  static const OpRef op("gaussian_nll");
  const Tensor &x = call.in(0), &target = call.in(1);
  Tensor var = call.in(2);
  const char* negative = "var has negative entry/entries";
  if (!var) {
    if (call.attr(0).as_double() < 0) return {poisoned(value_error(negative))};
    var = full(x->sizes, call.attr(0).as_double(), x->dtype);
  } else {
    var = checked_range(var, 0, HUGE_VAL, false, "ValueError", negative);
    if (var->poison) return {var};
    if (var->sizes != x->sizes) {
      int differ = 0;
      int64_t excess = 0;
      for (int i = 0; var->rank() == x->rank() && i < x->rank(); ++i) {
        if (var->sizes[i] == x->sizes[i]) continue;
        ++differ;
        excess += var->sizes[i];
      }
      Dims lead(x->sizes.begin(), x->sizes.end() - (x->sizes.empty() ? 0 : 1));
      if (!x->sizes.empty() && var->sizes == lead) {
        var = unsqueeze(var, -1);
      } else if (differ == 0 || excess != 1) {
        return {poisoned(value_error("var is of incorrect size"))};
      }
    }
  }
  const std::string& how = call.attr(3).as_string();
  if (!check_reduction(how).ok()) return {poisoned(value_error(how, " is not valid"))};
  Tensor loss = gradwire::call(op, {x, target, clamp_through(var, call.attr(2).as_double())});
  if (call.attr(1).as_bool()) loss = add(loss, 0.91893853320467274178);  // log(2 pi) / 2
  return {loss->poison ? loss : reduce_loss(loss, how)};
}

E sigmoid_minus(E x) {
  return expr::sigmoid(-x);
}

// log(1 + exp(-x)), stable
E softplus_minus(E x) {
  return expr::select(x < 0.0, -x, 0.0) + expr::log1p(expr::exp(-expr::abs(x)));
}

E log_clamped(E x) {
  E l = expr::log(x);
  return expr::select(l < -100.0, -100.0, l);
}

// A graph of n operands, for stated gradients.
template <class Fn>
expr::Graph graph(int n, Fn fn) {
  expr::Builder b;
  std::vector<E> e;
  for (int i = 0; i < n; ++i) e.push_back(b.operand(i));
  expr::Graph g = b.finish(fn(e));
  g.operands = n;
  return g;
}

void add_errors(Catalog& c) {
  using R = TypeRule;
  c.pointwise(730, "squared_error(Tensor input, Tensor target) -> Tensor", "(input - target)**2.",
              R::kFloatOnly, [](E x, E y) { return expr::square(x - y); });
  c.pointwise(731, "absolute_error(Tensor input, Tensor target) -> Tensor", "|input - target|.",
              R::kNoBool, [](E x, E y) { return expr::abs(x - y); });
  auto& bce = c.pointwise(732, "bce_with_logits(Tensor input, Tensor target) -> Tensor",
                          "Binary cross entropy of sigmoid(input), stable.", R::kFloatOnly,
                          [](E x, E y) { return (1.0 - y) * x + softplus_minus(x); });
  bce.pointwise->set_gradient(
      0, graph(4, [](auto& e) { return (expr::sigmoid(e[0]) - e[1]) * e[3]; }));
  auto& positive = c.pointwise(
      733, "bce_with_logits_positive(Tensor input, Tensor target, Tensor pos_weight) -> Tensor",
      "bce_with_logits with the positive term times pos_weight.", R::kFloatOnly,
      [](E x, E y, E w) { return (1.0 - y) * x + ((w - 1.0) * y + 1.0) * softplus_minus(x); });
  positive.pointwise->set_gradient(0, graph(5, [](auto& e) {
                                     E scale = (e[2] - 1.0) * e[1] + 1.0;
                                     return ((1.0 - e[1]) - scale * sigmoid_minus(e[0])) * e[4];
                                   }));
  auto& entropy =
      c.pointwise(734, "binary_cross_entropy(Tensor input, Tensor target) -> Tensor",
                  "-(target log(input) + (1 - target) log(1 - input)), logarithms at least -100.",
                  R::kFloatOnly,
                  [](E x, E y) { return (y - 1.0) * log_clamped(1.0 - x) - y * log_clamped(x); });
  entropy.pointwise->set_gradient(0, graph(4, [](auto& e) {
                                    E d = (1.0 - e[0]) * e[0];
                                    return e[3] * (e[0] - e[1]) / expr::select(d < 1e-12, 1e-12, d);
                                  }));
  entropy.pointwise->set_gradient(
      1, graph(4, [](auto& e) { return e[3] * (expr::log(1.0 - e[0]) - expr::log(e[0])); }));
  c.pointwise(735, "smooth_l1_error(Tensor input, Tensor target, Scalar beta) -> Tensor",
              "d = |input - target|: d**2 / (2 beta) where d < beta, else d - beta / 2.",
              R::kFloatOnly, [](E x, E y, E beta) {
                E d = expr::abs(x - y);
                return expr::select(d < beta, d * 0.5 * d / beta, d - beta * 0.5);
              });
  c.pointwise(736, "huber_error(Tensor input, Tensor target, Scalar delta) -> Tensor",
              "d = |input - target|: d**2 / 2 where d <= delta, else delta * (d - delta / 2).",
              R::kFloatOnly, [](E x, E y, E delta) {
                E d = expr::abs(x - y);
                return expr::select(d <= delta, d * 0.5 * d, delta * (d - delta * 0.5));
              });
  auto& soft = c.add(737, OpKind::kComposite, "soft_margin(Tensor input, Tensor target) -> Tensor",
                     "log(1 + exp(-target * input)).");
  soft.compose = [](const Call& call) -> Tensors {
    static const OpRef log1p("log1p");
    return {gradwire::call(log1p, {soft_margin_power(call.in(0), call.in(1))})};
  };
  soft.backward = backward_soft_margin;
  soft.saves_inputs = save(0) | save(1);
  soft.no_grad_inputs = {1};
  c.pointwise(738, "kl_divergence(Tensor input, Tensor target) -> Tensor",
              "target * (log(target) - input), 0 where target is 0.", R::kFloatOnly, [](E x, E y) {
                return expr::select(expr::equal(y, 0.0), 0.0, y * expr::log(y)) - y * x;
              });
  c.pointwise(739, "kl_divergence_log(Tensor input, Tensor target) -> Tensor",
              "exp(target) * (target - input).", R::kFloatOnly,
              [](E x, E y) { return expr::exp(y) * (y - x); });
  c.pointwise(757, "gaussian_nll(Tensor input, Tensor target, Tensor var) -> Tensor",
              "(log(var) + (input - target)**2 / var) / 2.", R::kPromoteFloat,
              [](E x, E y, E v) { return 0.5 * (expr::log(v) + expr::square(x - y) / v); });
  auto& through =
      c.pointwise(758, "clamp_through(Tensor input, Scalar min) -> Tensor",
                  "input, but at least min; the gradient passes everywhere.", R::kPromote,
                  [](E x, E low) { return expr::select(x < low, low, x); });
  through.pointwise->set_gradient(0, graph(4, [](auto& e) { return e[3]; }));
  auto& range = c.add(759, OpKind::kKernel,
                      "checked_range(Tensor input, float low, float high, bool nan_fails, "
                      "str kind, str message) -> Tensor",
                      "input, after a check that its elements lie in [low, high].");
  range.infer = infer_like_first;
  range.checks = true;
  range.backward = [](Backward& b) { b.set(0, b.grad()); };
}

}  // namespace

void add_pair_loss_rows(Catalog& c) {
  add_errors(c);
  auto composite = [&](uint16_t number, const std::string& name, const std::string& parameters,
                       std::string_view doc, ComposeFn fn) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite,
                     "nn.functional." + name + "(" + parameters + ") -> Tensor", doc);
    r.compose = fn;
    r.shape_rule = "pair_loss";
    return r;
  };
  composite(740, "mse_loss",
            "Tensor input, Tensor target, str reduction='mean', Tensor? weight=None",
            "The mean (or sum) of squared differences; a weighted mean divides by the weights' "
            "sum.",
            compose_mse)
      .type_rule = "promote";
  composite(741, "l1_loss",
            "Tensor input, Tensor target, str reduction='mean', Tensor? weight=None",
            "The mean (or sum) of absolute differences; a weighted mean divides by the weights' "
            "sum.",
            compose_l1)
      .type_rule = "promote";
  composite(742, "binary_cross_entropy_with_logits",
            "Tensor input, Tensor target, Tensor? weight=None, str reduction='mean', "
            "Tensor? pos_weight=None",
            "Binary cross entropy of sigmoid(input); weight and pos_weight broadcast.",
            compose_bce_with_logits);
  composite(745, "binary_cross_entropy",
            "Tensor input, Tensor target, Tensor? weight=None, str reduction='mean'",
            "-(target log(input) + (1 - target) log(1 - input)), with logarithms at least -100; "
            "input must lie in [0, 1].",
            compose_bce);
  composite(746, "huber_loss",
            "Tensor input, Tensor target, str reduction='mean', float delta=1.0, "
            "Tensor? weight=None",
            "Squared differences up to delta, absolute ones beyond: d = |input - target|, d**2 / 2 "
            "or delta * (d - delta / 2).",
            compose_huber);
  composite(747, "smooth_l1_loss",
            "Tensor input, Tensor target, str reduction='mean', float beta=1.0",
            "huber_loss over beta: d**2 / (2 beta) or d - beta / 2.", compose_smooth_l1);
  composite(748, "soft_margin_loss", "Tensor input, Tensor target, str reduction='mean'",
            "log(1 + exp(-target * input)), target 1 or -1.", compose_soft_margin);
  composite(749, "kl_div",
            "Tensor input, Tensor target, str reduction='mean', bool log_target=False",
            "target * (log(target) - input) of log-probabilities input; 'batchmean' divides by the "
            "batch, 'mean' by the number of elements.",
            compose_kl_div);
  composite(760, "poisson_nll_loss",
            "Tensor input, Tensor target, bool log_input=True, bool full=False, float eps=1e-08, "
            "str reduction='mean'",
            "exp(input) - target * input, or input - target * log(input + eps); `full` adds "
            "Stirling's term.",
            compose_poisson);
  composite(761, "gaussian_nll_loss",
            "Tensor input, Tensor target, Operand var, bool full=False, float eps=1e-06, "
            "str reduction='mean'",
            "(log(var) + (input - target)**2 / var) / 2 with var at least eps; `full` adds "
            "log(2 pi) / 2.",
            compose_gaussian);
  c.keep_internal({"checked_range", "clamp_through"});
}

}  // namespace gradwire
