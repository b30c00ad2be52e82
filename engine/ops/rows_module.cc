// Rows 900 to 999: nn modules. A row makes a module's state, initialised as torch does; `forward`
// names the op that the state goes into. The module tree, its mode and its hooks are the client's.
#include <cmath>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

Tensor empty(std::initializer_list<int64_t> sizes, DType dtype) {
  auto numel = checked_numel({sizes.begin(), sizes.size()});
  return numel.ok() ? new_tensor({dtype, Dims(sizes), {}}) : poisoned(numel.status());
}

// kaiming_uniform_(a=sqrt(5)) is uniform in +-1/sqrt(fan_in), as is torch's bias rule.
Tensor uniform(Dims sizes, double bound, DType dtype) {
  static const OpRef op("uniform_");
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return poisoned(numel.status());
  return call_in_place(op, {new_tensor({dtype, std::move(sizes), {}})}, {-bound, bound});
}

Tensor constant(Dims sizes, double value, DType dtype) {
  return full(sizes, value, dtype);
}

absl::Status positive(const Call& call, std::initializer_list<int> slots) {
  for (int slot : slots) {
    if (call.attr(slot).as_int() < 0) {
      return value_error(call.op->signature.params[slot].name, " must not be negative, got ",
                         call.attr(slot).as_int());
    }
  }
  return absl::OkStatus();
}

Tensors make_linear(const Call& call) {
  int64_t in = call.attr(0).as_int(), out = call.attr(1).as_int();
  DType dtype = call.attr(3).as_dtype();
  double bound = in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
  Tensors state{uniform({out, in}, bound, dtype)};
  if (call.attr(2).as_bool()) state.push_back(uniform({out}, bound, dtype));
  return state;
}

Tensors make_conv2d(const Call& call) {
  int64_t in = call.attr(0).as_int(), out = call.attr(1).as_int();
  IntList kernel = call.attr(2).as_ints();
  if (kernel.size() == 1) kernel.push_back(kernel[0]);
  int64_t groups = call.attr(6).as_int();
  DType dtype = call.attr(9).as_dtype();
  if (groups <= 0 || in % groups) {
    return {poisoned(value_error("in_channels must be divisible by groups"))};
  }
  if (out % groups) return {poisoned(value_error("out_channels must be divisible by groups"))};
  if (kernel.size() != 2) {
    return {poisoned(value_error("kernel_size must have 2 entries, got ", kernel.size()))};
  }
  double fan_in = static_cast<double>(in / groups) * static_cast<double>(kernel[0]) *
                  static_cast<double>(kernel[1]);
  double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  Tensors state{uniform({out, in / groups, kernel[0], kernel[1]}, bound, dtype)};
  if (call.attr(7).as_bool()) state.push_back(uniform({out}, bound, dtype));
  return state;
}

Tensors make_batch_norm(const Call& call) {
  int64_t n = call.attr(0).as_int();
  DType dtype = call.attr(5).as_dtype();
  Tensors state;
  bool affine = call.attr(3).as_bool(), track = call.attr(4).as_bool();
  state.push_back(affine ? constant({n}, 1, dtype) : nullptr);
  state.push_back(affine ? constant({n}, 0, dtype) : nullptr);
  state.push_back(track ? constant({n}, 0, dtype) : nullptr);
  state.push_back(track ? constant({n}, 1, dtype) : nullptr);
  state.push_back(track ? constant({}, 0, DType::kInt64) : nullptr);
  return state;
}

Tensors make_embedding(const Call& call) {
  static const OpRef normal("normal_"), select("select"), fill("fill_");
  int64_t rows = call.attr(0).as_int(), width = call.attr(1).as_int();
  Tensor weight = call_in_place(normal, {empty({rows, width}, call.attr(3).as_dtype())});
  if (!call.attr(2).none() && !weight->poison) {
    Tensor row = gradwire::call(select, {weight}, {0, call.attr(2)});
    Tensor filled = call_in_place(fill, {row, nullptr}, {0.0});
    if (filled->poison) return {filled};
  }
  return {weight};
}

Tensors make_layer_norm(const Call& call) {
  const IntList& shape = call.attr(0).as_ints();
  Dims sizes(shape.begin(), shape.end());
  DType dtype = call.attr(4).as_dtype();
  bool affine = call.attr(2).as_bool();
  Tensors state{affine ? constant(sizes, 1, dtype) : nullptr};
  state.push_back(affine && call.attr(3).as_bool() ? constant(sizes, 0, dtype) : nullptr);
  return state;
}

}  // namespace

void add_module_rows(Catalog& c) {
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc,
                 ComposeFn compose, absl::Status (*check)(const Call&),
                 std::vector<std::string> parameters, std::vector<std::string> buffers,
                 std::string forward) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = compose;
    r.check = check;
    r.module = std::make_unique<ModuleDef>();
    r.module->name = r.name.substr(3);
    r.module->parameters = std::move(parameters);
    r.module->buffers = std::move(buffers);
    r.module->forward = std::move(forward);
  };
  // Modules without state: a constructor schema and a forward.
  ComposeFn nothing = [](const Call&) { return Tensors(); };
  row(
      900,
      "nn.Linear(int in_features, int out_features, bool bias=True, *, dtype dtype) "
      "-> Tensor[]",
      "y = x @ weight.T + bias; weight [out_features, in_features], bias [out_features], both "
      "uniform in +-1/sqrt(in_features).",
      make_linear,
      [](const Call& call) {
        return positive(call, {0, 1});
      },
      {"weight", "bias"}, {}, "nn.functional.linear");
  row(
      901,
      "nn.Conv2d(int in_channels, int out_channels, int[] kernel_size, int[] stride=[1], "
      "int[] padding=[0], int[] dilation=[1], int groups=1, bool bias=True, "
      "str padding_mode='zeros', *, dtype dtype) -> Tensor[]",
      "Convolution of [N, C, H, W]; weight [out_channels, in_channels / groups, kH, kW], bias "
      "[out_channels], both uniform in +-1/sqrt(fan_in).",
      make_conv2d,
      [](const Call& call) {
        return positive(call, {0, 1});
      },
      {"weight", "bias"}, {}, "nn.functional.conv2d");
  row(
      902,
      "nn.BatchNorm2d(int num_features, float eps=1e-05, float? momentum=0.1, "
      "bool affine=True, bool track_running_stats=True, *, dtype dtype) -> Tensor[]",
      "Normalises each channel of [N, C, H, W] over the batch; weight ones, bias zeros.",
      make_batch_norm, [](const Call& call) { return positive(call, {0}); }, {"weight", "bias"},
      {"running_mean", "running_var", "num_batches_tracked"}, "nn.functional.batch_norm");
  row(903, "nn.ReLU(bool inplace=False) -> Tensor[]", "max(x, 0).", nothing, nullptr, {}, {},
      "relu");
  row(904,
      "nn.MaxPool2d(int[] kernel_size, int[]? stride=None, int[] padding=[0], "
      "int[] dilation=[1], bool return_indices=False, bool ceil_mode=False) -> Tensor[]",
      "The largest of each window of [N, C, H, W].", nothing, nullptr, {}, {},
      "nn.functional.max_pool2d");
  row(905, "nn.Flatten(int start_dim=1, int end_dim=-1) -> Tensor[]",
      "Dimensions start_dim to end_dim as one.", nothing, nullptr, {}, {}, "flatten");
  row(906, "nn.Dropout(float p=0.5, bool inplace=False) -> Tensor[]",
      "Zeroes elements with probability p in training.", nothing, nullptr, {}, {},
      "nn.functional.dropout");
  row(
      907,
      "nn.Embedding(int num_embeddings, int embedding_dim, int? padding_idx=None, *, "
      "dtype dtype) -> Tensor[]",
      "A row of weight [num_embeddings, embedding_dim] for each index; weight is normal, the "
      "padding_idx row zero.",
      make_embedding,
      [](const Call& call) {
        return positive(call, {0, 1});
      },
      {"weight"}, {}, "nn.functional.embedding");
  row(908,
      "nn.LayerNorm(int[] normalized_shape, float eps=1e-05, bool elementwise_affine=True, "
      "bool bias=True, *, dtype dtype) -> Tensor[]",
      "Normalises over the last dimensions; weight ones, bias zeros.", make_layer_norm, nullptr,
      {"weight", "bias"}, {}, "nn.functional.layer_norm");
}

}  // namespace gradwire
