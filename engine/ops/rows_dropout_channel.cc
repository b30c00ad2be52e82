// Rows 1280 to 1289: dropout of whole channels, and dropout that keeps mean and variance.
#include <cmath>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

absl::Status check_probability(const Call& call) {
  double p = call.attr(0).as_double();
  if (p >= 0 && p <= 1) return absl::OkStatus();
  return value_error("dropout probability has to be between 0 and 1, but got ", p);
}

// 1 with probability 1 - p, else 0: one number for each element, or for each channel.
Tensor noise_of(const Tensor& x, double p, bool by_channel) {
  static const OpRef bernoulli("bernoulli_");
  Dims sizes = x->sizes;
  for (size_t i = 2; by_channel && i < sizes.size(); ++i) sizes[i] = 1;
  GradMode off(false);
  return call_in_place(bernoulli, {new_tensor({x->dtype, sizes, {}})}, {1 - p});
}

// input * noise, or with `alpha` torch's affine map that keeps SELU's mean and variance:
// a (input where kept, else -alpha) + b.
Tensors drop(const Call& call, bool by_channel, bool alpha) {
  static const OpRef copy("copy_");
  const Tensor& x = call.in(0);
  double p = call.attr(0).as_double();
  if (p == 0 || !call.attr(1).as_bool() || x->numel() == 0) return {x};
  if (!is_floating(x->dtype)) {
    return {poisoned(not_implemented_error("\"dropout\" not implemented for '",
                                           std::string(dtype_name(x->dtype)), "'"))};
  }
  if (by_channel && x->rank() < 2) {
    return {poisoned(runtime_error("Feature dropout requires at least 2 dimensions in the input"))};
  }
  Tensor y;
  if (p == 1) {
    y = mul(x, 0.0);
  } else {
    Tensor noise = noise_of(x, p, by_channel);
    if (alpha) {
      constexpr double kAlpha = 1.7580993408473766;
      double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
      Tensor shift = add(mul(add(noise, -1), kAlpha * a), kAlpha * a * p);
      y = add(mul(x, mul(noise, a)), shift);
    } else {
      y = mul(x, div(noise, 1 - p));
    }
  }
  if (!call.attr(2).as_bool() || y->poison) return {y};
  return {call_in_place(copy, {x, y})};
}

// -log of exponential numbers is Gumbel noise; softmax over it draws from the logits' categories.
Tensors compose_gumbel(const Call& call) {
  static const OpRef exponential("exponential_"), log("log"), softmax("softmax_along"),
      argmax("argmax_dim"), scatter("scatter"), detach("detach");
  const Tensor& x = call.in(0);
  auto dim = dim_of(call, call.attr(2).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  if (!is_floating(x->dtype)) {
    return {poisoned(not_implemented_error("\"gumbel_softmax\" not implemented for '",
                                           std::string(dtype_name(x->dtype)), "'"))};
  }
  Tensor drawn = call_in_place(exponential, {new_tensor({x->dtype, x->sizes, {}})});
  Tensor noisy = div(sub(x, gradwire::call(log, {drawn})), call.attr(0).as_double());
  Tensor soft = gradwire::call(softmax, {noisy}, {*dim});
  if (!call.attr(1).as_bool() || soft->poison) return {soft};
  // Straight through: the value of the hard choice, the gradient of the soft one.
  Tensor index = gradwire::call(argmax, {soft}, {*dim, true});
  Tensor hard = gradwire::call(
      scatter, {zeros(x->sizes, x->dtype), index, full(index->sizes, 1, x->dtype)}, {*dim});
  return {add(sub(hard, gradwire::call(detach, {soft})), soft)};
}

}  // namespace

void add_channel_dropout_rows(Catalog& c) {
  auto row = [&](uint16_t number, const char* name, const char* training, const char* doc,
                 ComposeFn fn) {
    OpDef& r = c.add(number, OpKind::kComposite,
                     std::string("nn.functional.") + name + "(Tensor input, float p=0.5, " +
                         "bool training=" + training + ", bool inplace=False) -> Tensor",
                     doc);
    r.compose = fn;
    r.check = check_probability;
    r.shape_rule = r.type_rule = "same";
  };
  row(1280, "feature_dropout", "True",
      "Zeroes whole channels of [N, C, ...] with probability p in training and scales the others "
      "by 1 / (1 - p).",
      [](const Call& call) { return drop(call, true, false); });
  row(1281, "alpha_dropout", "False",
      "Sets elements to SELU's negative limit with probability p in training, then restores mean 0 "
      "and variance 1.",
      [](const Call& call) { return drop(call, false, true); });
  row(1282, "feature_alpha_dropout", "False", "alpha_dropout of whole channels of [N, C, ...].",
      [](const Call& call) { return drop(call, true, true); });
  auto& gumbel = c.add(1283, OpKind::kComposite,
                       "nn.functional.gumbel_softmax(Tensor logits, float tau=1, bool hard=False, "
                       "int dim=-1) -> Tensor",
                       "softmax((logits + Gumbel noise) / tau) along dim; `hard` gives its largest "
                       "as 1 with the same gradient.");
  gumbel.compose = compose_gumbel;
  gumbel.shape_rule = gumbel.type_rule = "same";
}

}  // namespace gradwire
