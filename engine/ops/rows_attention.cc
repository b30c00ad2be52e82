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
    seen = with_number(gt, mask, -HUGE_VAL);
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

// --- the fused form: no mask but the causal one, no dropout -------------------------------------

// inputs query [B, L, E], key [B, S, E], value [B, S, F]; attributes is_causal, scale.
absl::Status infer_fused(const Call& call, TensorSpecs* out) {
  const Tensor &q = call.in(0), &v = call.in(2);
  DType statistics = q->dtype == DType::kFloat64 ? q->dtype : DType::kFloat32;
  out->push_back({q->dtype, {q->sizes[0], q->sizes[1], v->sizes[2]}, {}});
  out->push_back({statistics, {q->sizes[0], q->sizes[1]}, {}});
  return absl::OkStatus();
}

// With w the weights: dv = w^T g, ds = w (g v^T - sum(g v^T w)), dq = scale ds k, dk = scale ds^T
// q.
void backward_fused_again(Backward& b) {
  static const OpRef softmax("softmax_along");
  Tensor g = b.grad(0), q = b.input(0), k = b.input(1), v = b.input(2);
  double scale = b.attr(1).as_double();
  Tensor scores = matmul(mul(q, scale), transpose(k, -2, -1));
  if (b.attr(0).as_bool() && !scores->poison) {
    scores = masked_fill(scores, logical_not(causal_mask(scores->sizes[1], scores->sizes[2])),
                         -HUGE_VAL);
  }
  Tensor w = call(softmax, {scores}, {-1});
  Tensor dw = matmul(g, transpose(v, -2, -1));
  Tensor ds = mul(mul(w, sub(dw, sum(mul(dw, w), {-1}, true))), scale);
  b.set(0, matmul(ds, k));
  b.set(1, matmul(transpose(ds, -2, -1), q));
  b.set(2, matmul(transpose(w, -2, -1), g));
}

void backward_fused(Backward& b) {
  static const OpRef op("attention_backward");
  if (Slot::current().grad_enabled) return backward_fused_again(b);
  Tensors grads = call_many(op, {b.grad(0), b.input(0), b.input(1), b.input(2), b.output(1)},
                            {b.attr(0), b.attr(1)});
  for (int i = 0; i < 3; ++i) {
    if (b.needs(i)) b.set(i, grads[i < static_cast<int>(grads.size()) ? i : 0]);
  }
}

absl::Status infer_fused_backward(const Call& call, TensorSpecs* out) {
  for (int i : {1, 2, 3}) out->push_back({call.in(i)->dtype, call.in(i)->sizes, {}});
  return absl::OkStatus();
}

// Same batches, nothing empty, no grouped heads, neither a mask nor dropout.
bool can_fuse(const Call& call) {
  const Tensor &q = call.in(0), &k = call.in(1), &v = call.in(2);
  if (call.in(3) || call.attr(0).as_double() != 0 || call.attr(3).as_bool()) return false;
  int rank = q->rank();
  if (rank < 3 || k->rank() != rank || v->rank() != rank) return false;
  for (int i = 0; i + 2 < rank; ++i) {
    if (q->sizes[i] != k->sizes[i] || q->sizes[i] != v->sizes[i]) return false;
  }
  return q->sizes[rank - 1] == k->sizes[rank - 1] && k->sizes[rank - 2] == v->sizes[rank - 2] &&
         q->numel() && k->numel() && v->numel();
}

Tensors fused(const Call& call) {
  static const OpRef rows("attention_rows");
  const Tensor &q = call.in(0), &v = call.in(2);
  auto flat = [](const Tensor& t) {
    Dims sizes(t->sizes.end() - 2, t->sizes.end());
    sizes.insert(sizes.begin(), t->numel() / (sizes[0] * sizes[1]));
    return reshape(t, sizes);
  };
  double scale = call.attr(2).none() ? 1 / std::sqrt(static_cast<double>(q->sizes.back()))
                                     : call.attr(2).as_double();
  Dims sizes(q->sizes.begin(), q->sizes.end() - 1);
  sizes.push_back(v->sizes.back());
  Tensor y = call_many(rows, {flat(q), flat(call.in(1)), flat(v)}, {call.attr(1), scale})[0];
  return {reshape(y, sizes)};
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
    if (can_fuse(call)) return fused(call);
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
  auto& rows = c.add(1241, OpKind::kKernel,
                     "attention_rows(Tensor query, Tensor key, Tensor value, bool is_causal, "
                     "float scale) -> (Tensor output, Tensor lse)",
                     "scaled_dot_product_attention of [B, L, E], [B, S, E], [B, S, F] without the "
                     "scores in memory; lse [B, L] is the log of each query's sum.");
  rows.kernel = "attention";
  rows.infer = infer_fused;
  rows.backward = backward_fused;
  rows.saves_inputs = save(0) | save(1) | save(2);
  rows.saves_outputs = save(1);
  rows.compose = [](const Call& call) {
    Call whole = call;
    whole.inputs.push_back(nullptr);
    whole.attributes = {0.0, call.attr(0), call.attr(1), false};
    Tensors results = attend(whole);
    return Tensors{results[0], nullptr};
  };
  auto& back = c.add(1242, OpKind::kKernel,
                     "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, "
                     "Tensor lse, bool is_causal, float scale) -> "
                     "(Tensor dquery, Tensor dkey, Tensor dvalue)",
                     "The gradients of attention_rows.");
  back.infer = infer_fused_backward;
  c.keep_internal({"attention_rows", "attention_backward"});
}

}  // namespace gradwire
