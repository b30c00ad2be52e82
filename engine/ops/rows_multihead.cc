// Rows 1250 to 1259: multi-head attention from projections to projection.
#include <cmath>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

Tensor narrow(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  static const OpRef op("narrow");
  return call(op, {t}, {dim, start, length});
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  static const OpRef op("nn.functional.linear");
  return call(op, {x, weight, bias});
}

Tensor cat(Tensors parts, int64_t dim) {
  static const OpRef op("cat");
  return call_list(op, std::move(parts), {dim})[0];
}

// One more column of zeros at the end.
Tensor padded(const Tensor& mask) {
  if (!mask || mask->poison) return mask;
  Dims sizes = mask->sizes;
  sizes.back() = 1;
  return cat({mask, zeros(sizes, mask->dtype)}, mask->rank() - 1);
}

// A bool mask (True blocks) as numbers to add.
absl::StatusOr<Tensor> added_mask(const Tensor& mask, DType dtype, const char* name) {
  if (!mask || is_floating(mask->dtype)) return mask;
  if (mask->dtype != DType::kBool) {
    return runtime_error("only bool and floating types of ", name, " are supported");
  }
  return masked_fill(zeros(mask->sizes, dtype), mask, -HUGE_VAL);
}

struct Arguments {
  const Tensor &query, &key, &value, &in_weight, &in_bias, &bias_k, &bias_v, &out_weight, &out_bias,
      &padding_mask, &mask, &q_weight, &k_weight, &v_weight, &static_k, &static_v;
  int64_t embed, heads;
  bool add_zero, training, need_weights, separate, average, causal;
  double dropout;

  explicit Arguments(const Call& c)
      : query(c.in(0)),
        key(c.in(1)),
        value(c.in(2)),
        in_weight(c.in(3)),
        in_bias(c.in(4)),
        bias_k(c.in(5)),
        bias_v(c.in(6)),
        out_weight(c.in(7)),
        out_bias(c.in(8)),
        padding_mask(c.in(9)),
        mask(c.in(10)),
        q_weight(c.in(11)),
        k_weight(c.in(12)),
        v_weight(c.in(13)),
        static_k(c.in(14)),
        static_v(c.in(15)),
        embed(c.attr(0).as_int()),
        heads(c.attr(1).as_int()),
        add_zero(c.attr(2).as_bool()),
        training(c.attr(4).as_bool()),
        need_weights(c.attr(5).as_bool()),
        separate(c.attr(6).as_bool()),
        average(c.attr(7).as_bool()),
        causal(c.attr(8).as_bool()),
        dropout(c.attr(3).as_double()) {}
};

absl::Status check_shapes(const Arguments& a) {
  int rank = a.query->rank();
  if (rank != 2 && rank != 3) {
    return runtime_error("query should be unbatched 2D or batched 3D tensor but received ", rank,
                         "-D query tensor");
  }
  if (a.key->rank() != rank || a.value->rank() != rank) {
    return runtime_error("For ", rank == 3 ? "batched (3-D)" : "unbatched (2-D)",
                         " `query`, expected `key` and `value` to be ", rank, "-D but found ",
                         a.key->rank(), "-D and ", a.value->rank(), "-D tensors respectively");
  }
  if (a.padding_mask && a.padding_mask->rank() != rank - 1) {
    return runtime_error("expected `key_padding_mask` to be `None` or ", rank - 1, "-D but found ",
                         a.padding_mask->rank(), "-D tensor instead");
  }
  if (a.mask && a.mask->rank() != 2 && a.mask->rank() != 3) {
    return runtime_error("expected `attn_mask` to be `None`, 2-D or 3-D but found ", a.mask->rank(),
                         "-D tensor instead");
  }
  if (a.causal && !a.mask) {
    return runtime_error("Need attn_mask if specifying the is_causal hint. You may use the ",
                         "Transformer module method `generate_square_subsequent_mask` to create ",
                         "this mask.");
  }
  int64_t embed = a.query->sizes.back();
  if (embed != a.embed) {
    return runtime_error("was expecting embedding dimension of ", a.embed, ", but got ", embed);
  }
  if (a.heads <= 0 || embed % a.heads) {
    return runtime_error("embed_dim ", embed, " not divisible by num_heads ", a.heads);
  }
  Dims key(a.key->sizes.begin(), a.key->sizes.end() - (a.separate ? 1 : 0));
  Dims value(a.value->sizes.begin(), a.value->sizes.end() - (a.separate ? 1 : 0));
  if (key != value || (rank == 3 && a.key->sizes[1] != a.query->sizes[1])) {
    return runtime_error("key shape ", shape_text(a.key->sizes), " does not match value shape ",
                         shape_text(a.value->sizes), " or the query's batch ",
                         shape_text(a.query->sizes));
  }
  if (a.separate ? !a.q_weight || !a.k_weight || !a.v_weight : !a.in_weight) {
    return runtime_error("use_separate_proj_weight is ", a.separate ? "True" : "False",
                         " but the weights it asks for are None");
  }
  Dims packed{3 * embed, embed};
  if (!a.separate && a.in_weight->sizes != packed) {
    return runtime_error("expecting in_proj_weight of shape ", shape_text(packed), ", but got ",
                         shape_text(a.in_weight->sizes));
  }
  if (a.in_bias && (a.in_bias->rank() != 1 || a.in_bias->sizes[0] != 3 * embed)) {
    return runtime_error("expecting in_proj_bias of shape [", 3 * embed, "], but got ",
                         shape_text(a.in_bias->sizes));
  }
  for (const Tensor& weight : {a.q_weight, a.k_weight, a.v_weight}) {
    if (!a.separate || (weight->rank() == 2 && weight->sizes[0] == embed)) continue;
    return runtime_error("expecting projection weights of ", embed, " rows, but got ",
                         shape_text(weight->sizes));
  }
  if (!a.bias_k != !a.bias_v) {
    return runtime_error("bias_k and bias_v must be given together");
  }
  for (const Tensor& bias : {a.bias_k, a.bias_v}) {
    if (!bias || bias->numel() == embed) continue;
    return runtime_error("expecting bias_k and bias_v of ", embed, " elements, but got ",
                         shape_text(bias->sizes));
  }
  return absl::OkStatus();
}

// Query, key and value [length, batch, embed] projected to embed.
Tensors project(const Arguments& a, const Tensor& q, const Tensor& k, const Tensor& v) {
  int64_t e = a.embed;
  auto bias = [&](int i) { return a.in_bias ? narrow(a.in_bias, 0, i * e, e) : nullptr; };
  if (a.separate) {
    return {linear(q, a.q_weight, bias(0)), linear(k, a.k_weight, bias(1)),
            linear(v, a.v_weight, bias(2))};
  }
  if (a.query.get() == a.key.get() && a.key.get() == a.value.get()) {
    Tensor all = linear(q, a.in_weight, a.in_bias);
    return {narrow(all, -1, 0, e), narrow(all, -1, e, e), narrow(all, -1, 2 * e, e)};
  }
  auto weight = [&](int i) { return narrow(a.in_weight, 0, i * e, e); };
  return {linear(q, weight(0), bias(0)), linear(k, weight(1), bias(1)),
          linear(v, weight(2), bias(2))};
}

// [length, batch, embed] as [batch * heads, length, embed / heads].
Tensor split_heads(const Tensor& t, int64_t batch, const Arguments& a) {
  return transpose(reshape(t, Dims{t->sizes[0], batch * a.heads, a.embed / a.heads}), 0, 1);
}

Tensors compose_multihead(const Call& call) {
  static const OpRef softmax("softmax_along"), dropout("dropout_mask"), mean("mean"),
      attention("nn.functional.scaled_dot_product_attention");
  Arguments a(call);
  auto fails = [](const absl::Status& status) { return Tensors(2, poisoned(status)); };
  absl::Status status = check_shapes(a);
  if (!status.ok()) return fails(status);
  bool single = a.query->rank() == 2;
  auto batched = [&](const Tensor& t) { return single ? unsqueeze(t, 1) : t; };
  Tensor query = batched(a.query), key = batched(a.key), value = batched(a.value);
  int64_t targets = query->sizes[0], batch = query->sizes[1], head = a.embed / a.heads;
  int64_t sources = key->sizes[0];
  bool hint = a.causal && !a.padding_mask && !a.need_weights;
  auto mask = added_mask(hint ? nullptr : a.mask, query->dtype, "attn_mask");
  if (!mask.ok()) return fails(mask.status());
  auto padding = added_mask(a.padding_mask, query->dtype, "key_padding_mask");
  if (!padding.ok()) return fails(padding.status());
  if (*padding) {
    if (single) *padding = unsqueeze(*padding, 0);
    if ((*padding)->sizes != Dims{batch, sources}) {
      return fails(runtime_error("expecting key_padding_mask shape of ",
                                 shape_text(Dims{batch, sources}), ", but got ",
                                 shape_text((*padding)->sizes)));
    }
  }
  if (*mask) {
    Dims flat{targets, sources}, full{batch * a.heads, targets, sources};
    if ((*mask)->sizes != ((*mask)->rank() == 2 ? flat : full)) {
      return fails(runtime_error("The shape of the ", (*mask)->rank(), "D attn_mask is ",
                                 shape_text((*mask)->sizes), ", but should be ",
                                 shape_text((*mask)->rank() == 2 ? flat : full), "."));
    }
    if ((*mask)->rank() == 2) *mask = unsqueeze(*mask, 0);
  }
  Tensors projected = project(a, query, key, value);
  Tensor q = projected[0], k = projected[1], v = projected[2];
  for (const Tensor& t : projected) {
    if (t->poison) return Tensors(2, t);
  }
  if (a.bias_k) {
    Dims row{1, batch, a.embed};
    k = cat({k, expand(reshape(a.bias_k, Dims{1, 1, a.embed}), row)}, 0);
    v = cat({v, expand(reshape(a.bias_v, Dims{1, 1, a.embed}), row)}, 0);
    *mask = padded(*mask);
    *padding = padded(*padding);
    if (k->poison || v->poison) return Tensors(2, k->poison ? k : v);
  }
  q = split_heads(q, batch, a);
  k = a.static_k ? a.static_k : split_heads(k, batch, a);
  v = a.static_v ? a.static_v : split_heads(v, batch, a);
  for (const Tensor& t : {k, v}) {
    if (t->rank() == 3 && t->sizes[0] == batch * a.heads && t->sizes[2] == head) continue;
    return fails(runtime_error("expecting static_k and static_v of sizes [", batch * a.heads,
                               ", *, ", head, "], but got ", shape_text(t->sizes)));
  }
  if (a.add_zero) {
    Tensor zero = zeros(Dims{batch * a.heads, 1, head}, k->dtype);
    k = cat({k, zero}, 1);
    v = cat({v, zero}, 1);
    *mask = padded(*mask);
    *padding = padded(*padding);
    if (k->poison || v->poison) return Tensors(2, k->poison ? k : v);
  }
  sources = k->sizes[1];
  if (*padding) {
    Dims by_head{batch, a.heads, 1, sources};
    Tensor wide = expand(reshape(*padding, Dims{batch, 1, 1, sources}), by_head);
    wide = reshape(wide, Dims{batch * a.heads, 1, sources});
    *mask = *mask ? add(*mask, wide) : wide;
  }
  double p = a.training ? a.dropout : 0;
  Tensor y, weights;
  if (a.need_weights) {
    Tensor scores = matmul(mul(q, std::sqrt(1 / static_cast<double>(head))), transpose(k, -2, -1));
    if (*mask) scores = add(scores, *mask);
    weights = gradwire::call(softmax, {scores}, {-1});
    if (p > 0 && !weights->poison) weights = call_many(dropout, {weights}, {p})[0];
    y = transpose(matmul(weights, v), 0, 1);
  } else {
    Dims by_head{batch, a.heads, targets, head}, keys{batch, a.heads, sources, head};
    Tensor m = *mask;
    if (m && !m->poison) {
      bool shared = m->sizes[0] == 1 && batch * a.heads != 1;
      m = shared ? unsqueeze(m, 0) : reshape(m, Dims{batch, a.heads, m->sizes[1], sources});
    }
    y = gradwire::call(attention, {reshape(q, by_head), reshape(k, keys), reshape(v, keys), m},
                       {p, hint});
    y = permute(y, {2, 0, 1, 3});
    weights = zeros(Dims{0}, query->dtype);
  }
  y = linear(reshape(y, Dims{targets * batch, a.embed}), a.out_weight, a.out_bias);
  if (y->poison) return Tensors(2, y);
  y = reshape(y, Dims{targets, batch, y->sizes[1]});
  if (a.need_weights) {
    weights = reshape(weights, Dims{batch, a.heads, targets, sources});
    if (a.average) weights = gradwire::call(mean, {weights}, {IntList{1}, false});
    if (single) weights = squeeze(weights, 0);
  }
  return {single ? squeeze(y, 1) : y, weights};
}

}  // namespace

void add_multihead_rows(Catalog& c) {
  auto& row = c.add(
      1250, OpKind::kComposite,
      "nn.functional.multi_head_attention_forward(Tensor query, Tensor key, Tensor value, "
      "int embed_dim_to_check, int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, "
      "Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p, "
      "Tensor out_proj_weight, Tensor? out_proj_bias, bool training=True, "
      "Tensor? key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None, "
      "bool use_separate_proj_weight=False, Tensor? q_proj_weight=None, "
      "Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, "
      "Tensor? static_v=None, bool average_attn_weights=True, bool is_causal=False) -> "
      "(Tensor attn_output, Tensor attn_output_weights)",
      "Attention of num_heads heads: query [L, N, E] and key, value [S, N, E] projected, attended, "
      "and projected again; masks block where True or are added. Weights [N, L, S] (or [N, heads, "
      "L, S]) are empty without need_weights.");
  row.compose = compose_multihead;
}

}  // namespace gradwire
