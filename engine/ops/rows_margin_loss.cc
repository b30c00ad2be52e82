// Rows 762 to 779: losses with a margin, of pairs, triplets and class scores.
#include <algorithm>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

using expr::E;

Tensors reduced(const Tensor& loss, const std::string& how) {
  absl::Status status = check_reduction(how);
  if (!status.ok()) return {poisoned(status)};
  return {loss->poison ? loss : reduce_loss(loss, how)};
}

// max(a, 0), whose gradient is 0 at 0 as torch's here.
Tensor positive_part(const Tensor& a) {
  static const OpRef op("relu");
  return call(op, {a});
}

// The steps are torch's, each rounded to the tensors' dtype: uint8 wraps, 16-bit floats round.

Tensors compose_ranking(const Call& call) {
  const Tensor &x1 = call.in(0), &x2 = call.in(1), &target = call.in(2);
  if (x1->rank() != x2->rank() || x1->rank() != target->rank()) {
    return {
        poisoned(runtime_error("margin_ranking_loss : All input tensors should have same dimension "
                               "but got sizes: input1: ",
                               shape_text(x1->sizes), ", input2: ", shape_text(x2->sizes),
                               ", target: ", shape_text(target->sizes)))};
  }
  Tensor lack = add(mul(neg(target), sub(x1, x2)), call.attr(0).as_double());
  return reduced(positive_part(lack), call.attr(1).as_string());
}

Tensor unequal(const Tensor& a, double b) {
  static const OpRef op("ne");
  return with_number(op, a, b);
}

Tensor or_zero(const Tensor& condition, const Tensor& value) {
  static const OpRef op("where");
  return call(op, {condition, value, nullptr}, {{}, 0});
}

Tensors compose_hinge(const Call& call) {
  const Tensor &x = call.in(0), &target = call.in(1);
  // torch rounds the margin to the tensor's dtype before it subtracts.
  Tensor margin = full({}, call.attr(0).as_double(), x->dtype);
  Tensor lack = positive_part(sub(margin, x));
  Tensor loss = add(or_zero(unequal(target, 1), lack), or_zero(unequal(target, -1), x));
  return reduced(loss, call.attr(1).as_string());
}

Tensors compose_cosine_embedding(const Call& call) {
  static const OpRef rsub("rsub"), root("sqrt");
  const Tensor &x1 = call.in(0), &x2 = call.in(1), &target = call.in(2);
  int dims = target->rank();
  if (dims > 1) {
    return {poisoned(runtime_error("0D or 1D target tensor expected, multi-target not supported"))};
  }
  if (x1->rank() != dims + 1 || x2->rank() != dims + 1) {
    return {poisoned(runtime_error(dims, "D target tensor expects ", dims + 1,
                                   "D input tensors, but found inputs with sizes ",
                                   shape_text(x1->sizes), " and ", shape_text(x2->sizes), "."))};
  }
  auto dot = [&](const Tensor& a, const Tensor& b) { return sum(mul(a, b), {-1}, false); };
  constexpr double kEpsilon = 1e-12;
  Tensor square1 = add(dot(x1, x1), kEpsilon), square2 = add(dot(x2, x2), kEpsilon);
  Tensor cosine = div(dot(x1, x2), gradwire::call(root, {mul(square1, square2)}));
  Tensor apart = with_number(rsub, cosine, 1, 1);
  Tensor close = positive_part(add(cosine, -call.attr(0).as_double()));
  Tensor loss = add(or_zero(equals(target, 1), apart), or_zero(equals(target, -1), close));
  return reduced(loss, call.attr(1).as_string());
}

// The larger distance wins by less than the margin. `how` is checked before shapes, as torch does.
Tensors compose_triplet(const Call& call) {
  static const OpRef minimum("minimum");
  const Tensor &anchor = call.in(0), &positive = call.in(1), &negative = call.in(2);
  double margin = call.attr(0).as_double(), p = call.attr(1).as_double();
  double eps = call.attr(2).as_double();
  const std::string& how = call.attr(4).as_string();
  if (!(margin > 0)) {
    return {poisoned(value_error("margin must be greater than 0, got ", margin))};
  }
  if (anchor->rank() != positive->rank() || anchor->rank() != negative->rank()) {
    return {poisoned(runtime_error(
        "The anchor, positive, and negative tensors are expected to have the same number of "
        "dimensions, but got: anchor ",
        anchor->rank(), "D, positive ", positive->rank(), "D, and negative ", negative->rank(),
        "D inputs"))};
  }
  Tensor near = pair_distance(anchor, positive, p, eps, false);
  Tensor far = pair_distance(anchor, negative, p, eps, false);
  if (call.attr(3).as_bool()) {
    Tensor swapped = pair_distance(positive, negative, p, eps, false);
    far = gradwire::call(minimum, {far, swapped});
  }
  return reduced(positive_part(sub(add(near, margin), far)), how);
}

// [C] or [N, C], with N possibly 0.
absl::Status check_scores(const Tensor& x) {
  bool fits = x->rank() <= 2;
  for (int i = x->rank() == 2 ? 1 : 0; fits && i < x->rank(); ++i) fits = x->sizes[i] != 0;
  if (fits) return absl::OkStatus();
  return runtime_error("Expected non-empty vector or matrix with optional 0-dim batch size, but ",
                       "got: ", shape_text(x->sizes));
}

absl::Status check_long(const Tensor& target) {
  if (target->dtype == DType::kInt64) return absl::OkStatus();
  return runtime_error("expected scalar type Long but found ",
                       std::string(dtype_name(target->dtype)));
}

absl::Status check_multi_margin(const Call& call) {
  const Tensor &x = call.in(0), &target = call.in(1), &weight = call.in(2);
  GW_RETURN_IF_ERROR(check_reduction(call.attr(2).as_string()));
  int64_t p = call.attr(0).as_int();
  if (p != 1 && p != 2) return value_error("only p == 1 and p == 2 supported");
  if (weight && weight->rank() != 1) return value_error("weight must be one-dimensional");
  GW_RETURN_IF_ERROR(check_scores(x));
  int64_t rows = x->rank() == 2 ? x->sizes[0] : 1;
  int64_t classes = x->sizes.empty() ? 1 : x->sizes.back();
  if (target->rank() > 1 || target->numel() != rows) {
    return runtime_error(
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
        "samples (batch size). Expected target size [",
        rows, "], but got ", shape_text(target->sizes), ". Input has shape ", shape_text(x->sizes),
        ".");
  }
  if (weight && weight->sizes[0] != classes) {
    return runtime_error("inconsistent weight size, expected ", classes, " but got ",
                         shape_text(weight->sizes));
  }
  return check_long(target);
}

Tensor class_numbers(int64_t classes) {
  static const OpRef op("arange");
  return call(op, {}, {0, classes, 1, DType::kInt64});
}

Tensors compose_multi_margin(const Call& call) {
  static const OpRef gather("gather"), terms("multi_margin_terms"), eq("eq"),
      select("index_select");
  bool single = call.in(0)->rank() < 2;
  int64_t rows = single ? 1 : call.in(0)->sizes[0];
  Tensor x = single ? reshape(call.in(0), {{1, call.in(0)->numel()}}) : call.in(0);
  int64_t classes = x->sizes[1];
  Tensor target = checked_range(call.in(1), 0, static_cast<double>(classes) - 1, true,
                                "RuntimeError", "target out of range");
  target = reshape(target, {{rows, 1}});
  Tensor own = gradwire::call(gather, {x, target}, {1});
  Tensor is_target = gradwire::call(eq, {class_numbers(classes), target});
  Tensor loss = gradwire::call(terms, {x, own, is_target}, {call.attr(1), call.attr(0)});
  if (const Tensor& weight = call.in(2)) {
    Tensor scale = gradwire::call(select, {weight, reshape(target, {{rows}})}, {0});
    loss = mul(loss, unsqueeze(scale, 1));
  }
  loss = div(sum(loss, {1}, false), static_cast<double>(classes));
  const std::string& how = call.attr(2).as_string();
  return {loss->poison ? loss : reduce_loss(single ? squeeze(loss, 0) : loss, how)};
}

absl::Status check_multilabel(const Call& call) {
  const Tensor &x = call.in(0), &target = call.in(1);
  GW_RETURN_IF_ERROR(check_reduction(call.attr(0).as_string()));
  GW_RETURN_IF_ERROR(check_scores(x));
  bool fits = x->sizes == target->sizes ||
              (x->rank() < 2 && target->rank() < 2 && x->numel() == target->numel());
  if (!fits) {
    return runtime_error("inconsistent target size: ", shape_text(target->sizes),
                         " for input of size: ", shape_text(x->sizes));
  }
  return check_long(target);
}

// Targets are class numbers up to the first -1.
Tensors compose_multilabel(const Call& call) {
  static const OpRef gather("gather"), cumprod("cumprod"), scatter_add("scatter_add"), ge("ge"),
      terms("multilabel_terms"), gt("gt");
  bool single = call.in(0)->rank() < 2;
  int64_t classes = call.in(0)->sizes.empty() ? 1 : call.in(0)->sizes.back();
  int64_t rows = single ? 1 : call.in(0)->sizes[0];
  Dims sizes{rows, classes};
  Tensor x = reshape(call.in(0), sizes);
  Tensor target = checked_range(call.in(1), -1, static_cast<double>(classes) - 1, true,
                                "RuntimeError", "argument #2 'target' is out of range");
  target = reshape(target, sizes);
  Tensor present = with_number(ge, target, 0);
  present = gradwire::call(cumprod, {cast(present, DType::kInt64)}, {1});
  Tensor labels = mul(target, present);
  Tensor own = gradwire::call(gather, {x, labels}, {1});
  Tensor hits = gradwire::call(scatter_add, {zeros(sizes, DType::kInt64), labels, present}, {1});
  Tensor others = with_number(gt, hits, 0);
  // [N, labels, classes]: what each class lacks to lie below each label by 1.
  Tensor loss = gradwire::call(
      terms, {unsqueeze(own, 2), unsqueeze(x, 1), unsqueeze(present, 2), unsqueeze(others, 1)});
  loss = div(sum(loss, {1, 2}, false), static_cast<double>(classes));
  const std::string& how = call.attr(0).as_string();
  return {loss->poison ? loss : reduce_loss(single ? squeeze(loss, 0) : loss, how)};
}

Tensors compose_multilabel_soft(const Call& call) {
  static const OpRef op("bce_with_logits");
  const Tensor& x = call.in(0);
  const std::string& how = call.attr(0).as_string();
  Tensor loss = gradwire::call(op, {x, call.in(1)});
  if (call.in(2)) loss = mul(loss, call.in(2));
  if (x->sizes.empty()) {
    return {
        poisoned(index_error("multilabel_soft_margin_loss: expected scores of at least 1 dim"))};
  }
  loss = div(sum(loss, {x->rank() - 1}, false), static_cast<double>(x->sizes.back()));
  if (!check_reduction(how).ok()) return {poisoned(value_error(how, " is not valid"))};
  return {loss->poison ? loss : reduce_loss(loss, how)};
}

E positive(E z) {
  return expr::select(z > 0.0, z, 0.0);
}

// Graphs of operands some of which are conditions.
template <class Fn>
expr::Graph graph(int n, std::initializer_list<int> conditions, Fn fn) {
  expr::Builder b;
  std::vector<E> e;
  for (int i = 0; i < n; ++i) {
    bool condition = std::find(conditions.begin(), conditions.end(), i) != conditions.end();
    e.push_back(b.operand(i, condition));
  }
  expr::Graph g = b.finish(fn(e));
  g.operands = n;
  return g;
}

void add_terms(Catalog& c) {
  using R = TypeRule;
  c.pointwise(766,
              "multi_margin_terms(Tensor input, Tensor own, Tensor is_target, Scalar margin, "
              "Scalar p) -> Tensor",
              "max(margin - own + input, 0)**p but 0 at the target; p is 1 or 2.", R::kFloatOnly,
              graph(5, {2},
                    [](auto& e) {
                      E z = positive(e[3] - e[1] + e[0]);
                      return expr::select(e[2], 0.0,
                                          expr::select(expr::equal(e[4], 1.0), z, z * z));
                    }))
      .in_place = false;
  c.pointwise(767,
              "multilabel_terms(Tensor own, Tensor input, Tensor present, Tensor is_target) "
              "-> Tensor",
              "max(1 - own + input, 0) where present and not is_target, else 0.", R::kFloatOnly,
              graph(4, {2, 3},
                    [](auto& e) {
                      E wanted = expr::logical_and(e[2], expr::logical_not(e[3]));
                      return expr::select(wanted, positive(1.0 - e[0] + e[1]), 0.0);
                    }))
      .in_place = false;
}

}  // namespace

void add_margin_loss_rows(Catalog& c) {
  add_terms(c);
  auto composite = [&](uint16_t number, const std::string& name, const std::string& parameters,
                       std::string_view doc, ComposeFn fn) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite,
                     "nn.functional." + name + "(" + parameters + ") -> Tensor", doc);
    r.compose = fn;
    r.shape_rule = "loss";
    return r;
  };
  composite(768, "margin_ranking_loss",
            "Tensor input1, Tensor input2, Tensor target, float margin=0, str reduction='mean'",
            "max(margin - target * (input1 - input2), 0): target 1 wants input1 the larger, -1 the "
            "smaller.",
            compose_ranking);
  composite(769, "hinge_embedding_loss",
            "Tensor input, Tensor target, float margin=1.0, str reduction='mean'",
            "Distances input where target is 1, max(margin - input, 0) where it is -1.",
            compose_hinge);
  composite(770, "cosine_embedding_loss",
            "Tensor input1, Tensor input2, Tensor target, float margin=0, str reduction='mean'",
            "1 - cos where target is 1, max(cos - margin, 0) where it is -1; inputs [N, D] or [D].",
            compose_cosine_embedding);
  composite(771, "triplet_margin_loss",
            "Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
            "float eps=1e-06, bool swap=False, str reduction='mean'",
            "max(d(anchor, positive) - d(anchor, negative) + margin, 0), d the p-norm of the "
            "difference plus eps.",
            compose_triplet);
  composite(772, "multi_margin_loss",
            "Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, "
            "str reduction='mean'",
            "The mean over classes of max(margin - input[target] + input, 0)**p, the target's own "
            "left out.",
            compose_multi_margin)
      .check = check_multi_margin;
  composite(773, "multilabel_margin_loss", "Tensor input, Tensor target, str reduction='mean'",
            "The sum over target classes t and others i of max(1 - input[t] + input[i], 0), by the "
            "number of classes; a row's targets end at the first -1.",
            compose_multilabel)
      .check = check_multilabel;
  composite(774, "multilabel_soft_margin_loss",
            "Tensor input, Tensor target, Tensor? weight=None, str reduction='mean'",
            "binary_cross_entropy_with_logits, the mean over the last dim.",
            compose_multilabel_soft);
}

}  // namespace gradwire
