// Rows 1260 to 1279: nn modules of this family with state: normalisation, attention, bags, Bilinear
// and PReLU. See rows_module.cc.
#include <cmath>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

// Uniform in +-bound.
Tensor uniform(Dims sizes, double bound, DType dtype) {
  static const OpRef op("uniform_");
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return poisoned(numel.status());
  return call_in_place(op, {new_tensor({dtype, std::move(sizes), {}})}, {-bound, bound});
}

Tensor normal(Dims sizes, double deviation, DType dtype) {
  static const OpRef op("normal_");
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return poisoned(numel.status());
  return call_in_place(op, {new_tensor({dtype, std::move(sizes), {}})}, {0.0, deviation});
}

// The first `count` attributes, which are sizes.
template <int count>
absl::Status positive(const Call& call) {
  for (int i = 0; i < count; ++i) {
    if (call.attr(i).as_int() >= 0) continue;
    return value_error(call.op->signature.params[i].name, " must not be negative, got ",
                       call.attr(i).as_int());
  }
  return absl::OkStatus();
}

// Attributes num_features, eps, momentum, affine, track_running_stats, bias, dtype.
Tensors make_channel_norm(const Call& call) {
  Dims n{call.attr(0).as_int()};
  bool affine = call.attr(3).as_bool(), track = call.attr(4).as_bool();
  bool bias = affine && call.attr(5).as_bool();
  DType dtype = call.attr(6).as_dtype();
  return {affine ? full(n, 1, dtype) : nullptr, bias ? full(n, 0, dtype) : nullptr,
          track ? full(n, 0, dtype) : nullptr, track ? full(n, 1, dtype) : nullptr,
          track ? full({}, 0, DType::kInt64) : nullptr};
}

// Attributes num_groups, num_channels, eps, affine, bias, dtype.
Tensors make_group_norm(const Call& call) {
  int64_t groups = call.attr(0).as_int(), channels = call.attr(1).as_int();
  if (groups <= 0 || channels % groups) {
    return {poisoned(value_error("num_channels (", channels, ") must be divisible by num_groups (",
                                 groups, ")"))};
  }
  bool affine = call.attr(3).as_bool(), bias = affine && call.attr(4).as_bool();
  DType dtype = call.attr(5).as_dtype();
  return {affine ? full(Dims{channels}, 1, dtype) : nullptr,
          bias ? full(Dims{channels}, 0, dtype) : nullptr};
}

Tensors make_rms_norm(const Call& call) {
  const IntList& shape = call.attr(0).as_ints();
  return {call.attr(2).as_bool() ? full(shape, 1, call.attr(3).as_dtype()) : nullptr};
}

// Attributes in1_features, in2_features, out_features, bias, dtype.
Tensors make_bilinear(const Call& call) {
  int64_t in1 = call.attr(0).as_int(), in2 = call.attr(1).as_int(), out = call.attr(2).as_int();
  if (in1 == 0) {
    return {poisoned(value_error("in1_features must be > 0, but got 0"))};
  }
  DType dtype = call.attr(4).as_dtype();
  double bound = 1 / std::sqrt(static_cast<double>(in1));
  return {uniform({out, in1, in2}, bound, dtype),
          call.attr(3).as_bool() ? uniform({out}, bound, dtype) : nullptr};
}

// Attributes num_embeddings, embedding_dim, padding_idx, dtype.
Tensors make_embedding_bag(const Call& call) {
  static const OpRef select("select"), fill("fill_");
  Tensor weight =
      normal({call.attr(0).as_int(), call.attr(1).as_int()}, 1, call.attr(3).as_dtype());
  if (!call.attr(2).none() && !weight->poison) {
    Tensor row = gradwire::call(select, {weight}, {0, call.attr(2)});
    Tensor filled = call_in_place(fill, {row, nullptr}, {0.0});
    if (filled->poison) return {filled};
  }
  return {weight};
}

Tensors make_prelu(const Call& call) {
  return {full(Dims{call.attr(0).as_int()}, call.attr(1).as_double(), call.attr(2).as_dtype())};
}

// Attributes embed_dim, kdim, vdim, bias, add_bias_kv, dtype. One packed weight where all three
// have embed_dim features, else three.
Tensors make_multihead(const Call& call) {
  int64_t embed = call.attr(0).as_int(), k = call.attr(1).as_int(), v = call.attr(2).as_int();
  bool bias = call.attr(3).as_bool(), extra = call.attr(4).as_bool();
  DType dtype = call.attr(5).as_dtype();
  if (embed > int64_t{1} << 30) return {poisoned(value_error("embed_dim is too large: ", embed))};
  auto xavier = [&](int64_t out, int64_t in) {
    double fans = static_cast<double>(out) + static_cast<double>(in);
    return uniform({out, in}, fans > 0 ? std::sqrt(6 / fans) : 0, dtype);
  };
  Tensors state(7);
  if (k == embed && v == embed) {
    state[0] = xavier(3 * embed, embed);
  } else {
    state[1] = xavier(embed, embed);
    state[2] = xavier(embed, k);
    state[3] = xavier(embed, v);
  }
  if (bias) state[4] = full(Dims{3 * embed}, 0, dtype);
  if (extra) {
    // xavier_normal_ of [1, 1, embed]: fans are embed and embed.
    double deviation = embed > 0 ? std::sqrt(1 / static_cast<double>(embed)) : 0;
    state[5] = normal({1, 1, embed}, deviation, dtype);
    state[6] = normal({1, 1, embed}, deviation, dtype);
  }
  return state;
}

}  // namespace

void add_module_norm_rows(Catalog& c) {
  auto row = [&](uint16_t number, const std::string& signature, std::string_view doc,
                 ComposeFn compose, absl::Status (*check)(const Call&),
                 std::vector<std::string> parameters, std::vector<std::string> buffers,
                 std::string forward) {
    OpDef& r = c.add(number, OpKind::kComposite, signature + ", *, dtype dtype) -> Tensor[]", doc);
    r.compose = compose;
    r.check = check;
    r.module = std::make_unique<ModuleDef>();
    r.module->name = r.name.substr(3);
    r.module->parameters = std::move(parameters);
    r.module->buffers = std::move(buffers);
    r.module->forward = std::move(forward);
  };
  std::vector<std::string> affine{"weight", "bias"};
  std::vector<std::string> running{"running_mean", "running_var", "num_batches_tracked"};
  uint16_t number = 1260;
  for (const char* dims : {"1", "3"}) {
    row(number++,
        std::string("nn.BatchNorm") + dims +
            "d(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=True, "
            "bool track_running_stats=True, bool bias=True",
        "Normalises each channel over the batch; weight ones, bias zeros.", make_channel_norm,
        positive<1>, affine, running, "nn.functional.batch_norm");
  }
  for (const char* dims : {"1", "2", "3"}) {
    row(number++,
        std::string("nn.InstanceNorm") + dims +
            "d(int num_features, float eps=1e-05, float momentum=0.1, bool affine=False, "
            "bool track_running_stats=False, bool bias=True",
        "Normalises each channel of each image; weight ones, bias zeros.", make_channel_norm,
        positive<1>, affine, running, "nn.functional.instance_norm");
  }
  row(1265,
      "nn.GroupNorm(int num_groups, int num_channels, float eps=1e-05, bool affine=True, "
      "bool bias=True",
      "Normalises groups of channels of each image; weight ones, bias zeros.", make_group_norm,
      positive<2>, affine, {}, "nn.functional.group_norm");
  row(1266, "nn.RMSNorm(int[] normalized_shape, float? eps=None, bool elementwise_affine=True",
      "Divides by the root mean square over the last dimensions; weight ones.", make_rms_norm,
      nullptr, {"weight"}, {}, "nn.functional.rms_norm");
  row(1267, "nn.Bilinear(int in1_features, int in2_features, int out_features, bool bias=True",
      "x1 weight x2 + bias; weight [out, in1, in2] and bias [out] uniform in +-1/sqrt(in1).",
      make_bilinear, positive<3>, affine, {}, "nn.functional.bilinear");
  row(1268, "nn.EmbeddingBag(int num_embeddings, int embedding_dim, int? padding_idx=None",
      "Sums, means or maxima of rows of weight [num_embeddings, embedding_dim], which is normal.",
      make_embedding_bag, positive<2>, {"weight"}, {}, "nn.functional.embedding_bag");
  row(1269, "nn.PReLU(int num_parameters=1, float init=0.25",
      "x where positive, else weight * x; weight [num_parameters].", make_prelu, positive<1>,
      {"weight"}, {}, "nn.functional.prelu");
  row(1270,
      "nn.MultiheadAttention(int embed_dim, int kdim, int vdim, bool bias=True, "
      "bool add_bias_kv=False",
      "The projections into the heads: in_proj_weight [3 embed_dim, embed_dim] or one weight each, "
      "Xavier uniform; in_proj_bias zeros; bias_k and bias_v Xavier normal.",
      make_multihead, positive<3>,
      {"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias",
       "bias_k", "bias_v"},
      {}, "nn.functional.multi_head_attention_forward");
}

}  // namespace gradwire
