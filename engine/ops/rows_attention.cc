// Rows 1240 to 1249: scaled dot product attention.
#include <cmath>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

absl::Status check_attention(const Call& call) {
  const Tensor &q = call.in(0), &k = call.in(1), &v = call.in(2), &mask = call.in(3);
  auto name = [](const Tensor& t) { return std::string(dtype_name(t->dtype)); };
  if (q->dtype != k->dtype || q->dtype != v->dtype) {
    return runtime_error("Expected query, key, and value to have the same dtype, but got query.",
                         "dtype: ", name(q), " key.dtype: ", name(k), " and value.dtype: ", name(v),
                         " instead.");
  }
  if (!is_floating(q->dtype)) {
    return not_implemented_error("\"scaled_dot_product_attention\" not implemented for '", name(q),
                                 "'");
  }
  if (q->rank() < 2 || k->rank() < 2 || v->rank() < 2) {
    return runtime_error("Expected query, key, and value to all be  at least 2 dimensional, but ",
                         "got query.dim: ", q->rank(), " key.dim: ", k->rank(),
                         " and value.dim: ", v->rank(), " instead.");
  }
  if (mask && mask->dtype != DType::kBool && mask->dtype != DType::kFloat32 &&
      mask->dtype != q->dtype) {
    return runtime_error("Expected attn_mask dtype to be bool or float or to match query dtype, ",
                         "but got attn_mask.dtype: ", name(mask), " and  query.dtype: ", name(q),
                         " instead.");
  }
  if (mask && call.attr(1).as_bool()) {
    return runtime_error(
        "_scaled_dot_product_attention: Explicit attn_mask should not be set when ",
        "is_causal=True");
  }
  double p = call.attr(0).as_double();
  if (!(p >= 0 && p <= 1)) {
    return value_error("dropout probability has to be between 0 and 1, but got ", p);
  }
  return absl::OkStatus();
}

// Every head of t repeated so that there are `heads`.
absl::StatusOr<Tensor> grouped_heads(const Tensor& t, int64_t heads) {
  if (t->rank() < 3) {
    return runtime_error("enable_gqa: expected key and value of at least 3 dims, got ", t->text());
  }
  int64_t have = t->sizes[t->rank() - 3];
  if (have == heads) return t;
  if (have == 0 || heads % have) {
    return runtime_error("Number of heads in key and value must divide the number of heads in ",
                         "query; got ", have, " and ", heads);
  }
  Dims wide = t->sizes;
  wide.insert(wide.end() - 2, heads / have);
  Dims sizes = t->sizes;
  sizes[t->rank() - 3] = heads;
  return reshape(expand(unsqueeze(t, t->rank() - 2), wide), sizes);
}

// True where a query may see a key: tril of [L, S].
Tensor causal_mask(int64_t queries, int64_t keys) {
  static const OpRef tril("tril");
  return call(tril, {full(Dims{queries, keys}, 1, DType::kBool)}, {0});
}

Tensor logical_not(const Tensor& t) {
  static const OpRef op("logical_not");
  return call(op, {t});
}

// softmax of the scores under a mask: bool, True keeps; float is added. A query that sees no key
// gets zeros, not nan.
Tensor masked_softmax(Tensor scores, const Tensor& mask) {
  static const OpRef softmax("softmax_along"), any("any"), gt("gt");
  if (!mask) return call(softmax, {scores}, {-1});
  Tensor seen;
  if (mask->dtype == DType::kBool) {
    scores = masked_fill(scores, logical_not(mask), -HUGE_VAL);
    seen = mask;
  } else {
    scores = add(scores, cast(mask, scores->dtype));
    seen = call(gt, {mask, nullptr}, {{}, -HUGE_VAL});
  }
  Tensor blind = logical_not(call(any, {seen}, {IntList{-1}, true}));
  Tensor weights = call(softmax, {masked_fill(scores, blind, 0)}, {-1});
  return masked_fill(weights, blind, 0);
}

// inputs query [.., L, E], key [.., S, E], value [.., S, Ev], attn_mask?; attributes dropout_p,
// is_causal, scale, enable_gqa. Outputs: values [.., L, Ev] and the weights [.., L, S].
Tensors attend(const Call& call) {
  static const OpRef dropout("dropout_mask");
  const Tensor& q = call.in(0);
  Tensor k = call.in(1), v = call.in(2), mask = call.in(3);
  if (call.attr(3).as_bool()) {
    if (q->rank() < 3) {
      return {poisoned(
          runtime_error("enable_gqa: expected a query of at least 3 dims, got ", q->text()))};
    }
    int64_t heads = q->sizes[q->rank() - 3];
    for (Tensor* t : {&k, &v}) {
      auto wide = grouped_heads(*t, heads);
      if (!wide.ok()) return {poisoned(wide.status())};
      *t = *wide;
    }
    if (k->poison || v->poison) return {k->poison ? k : v};
  }
  double scale = call.attr(2).none() ? 1 / std::sqrt(static_cast<double>(q->sizes.back()))
                                     : call.attr(2).as_double();
  if (call.attr(1).as_bool()) {
    mask = causal_mask(q->sizes[q->rank() - 2], k->sizes[k->rank() - 2]);
  }
  Tensor scores = matmul(mul(q, scale), transpose(k, -2, -1));
  if (scores->poison) return {scores};
  Tensor weights = masked_softmax(scores, mask);
  double p = call.attr(0).as_double();
  if (p > 0 && !weights->poison) weights = call_many(dropout, {weights}, {p})[0];
  return {matmul(weights, v), weights};
}

}  // namespace

void add_attention_rows(Catalog& c) {
  auto& attention = c.add(
      1240, OpKind::kComposite,
      "nn.functional.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
      "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, float? scale=None, "
      "bool enable_gqa=False) -> Tensor",
      "softmax(query key^T * scale + mask) value, of query [..., L, E], key [..., S, E] and value "
      "[..., S, Ev]; a bool mask keeps where True, scale is 1 / sqrt(E) by default.");
  attention.check = check_attention;
  attention.compose = [](const Call& call) -> Tensors {
    // 16-bit scores would be too coarse: softmax wants them to an absolute precision.
    DType dtype = call.in(0)->dtype;
    if (dtype == DType::kFloat32 || dtype == DType::kFloat64) return {attend(call)[0]};
    Call wide = call;
    for (Tensor& t : wide.inputs) {
      if (t && t->dtype != DType::kBool) t = cast(t, DType::kFloat32);
    }
    return {cast(attend(wide)[0], dtype)};
  };
  attention.type_rule = "same";
}

}  // namespace gradwire
