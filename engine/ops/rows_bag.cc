// Rows 1230 to 1239: bags of embeddings, and the bilinear form.
#include "engine/ops/loss.h"

namespace gradwire {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// inputs weight, indices, offsets, per_sample_weights?; attributes mode, padding_idx,
// include_last_offset, scale_grad_by_freq.
absl::Status infer_bags(const Call& call, TensorSpecs* out) {
  const Tensor &weight = call.in(0), &offsets = call.in(2);
  bool last = call.attr(2).as_bool();
  if (last && offsets->numel() == 0) {
    return runtime_error("include_last_offset: number of offsets should be at least 1");
  }
  int64_t bags = offsets->numel() - (last ? 1 : 0), width = weight->sizes[1];
  out->push_back({weight->dtype, {bags, width}, {}});
  out->push_back({DType::kInt64, {bags}, {}});
  bool max = call.attr(0).as_int() == kMax;
  out->push_back({DType::kInt64, {max ? bags : 0, width}, {}});
  return absl::OkStatus();
}

// The bag of each of n indices: how many bags have begun there, less one.
Tensor bag_numbers(const Tensor& offsets, int64_t n, bool include_last) {
  static const OpRef scatter_add("scatter_add"), cumsum("cumsum"), narrow("narrow");
  int64_t bags = offsets->numel() - (include_last ? 1 : 0);
  Tensor starts = call(narrow, {offsets}, {0, 0, bags});
  Tensor begun =
      call(scatter_add,
           {zeros(Dims{n + 1}, DType::kInt64), starts, full(Dims{bags}, 1, DType::kInt64)}, {0});
  begun = call(narrow, {call(cumsum, {begun}, {0})}, {0, 0, n});
  static const OpRef sub_op("sub");
  return with_number(sub_op, begun, 1, 1);
}

void backward_max(Backward& b, const Tensor& g) {
  static const OpRef scatter_add("scatter_add");
  Tensor taken = b.output(2);
  if (taken->poison) return b.set(0, taken);
  static const OpRef lt("lt");
  Tensor empty = with_number(lt, taken, 0);
  const TensorSpec& spec = b.input_spec(0);
  b.set(0, call(scatter_add,
                {zeros(spec.sizes, spec.dtype), masked_fill(taken, empty, 0),
                 masked_fill(g, empty, 0)},
                {0}));
}

void backward_bags(Backward& b) {
  static const OpRef select("index_select"), embedding_back("embedding_gradient");
  int64_t mode = b.attr(0).as_int(), padding = b.attr(1).as_int();
  Tensor g = b.grad(0);
  if (mode == kMax) return backward_max(b, g);
  Tensor indices = b.input(1), offsets = b.input(2), scales = b.input(3);
  if (g->poison || indices->poison || offsets->poison) return b.set(0, g->poison ? g : indices);
  if (mode == kMean) {
    g = div(g, unsqueeze(cast(clamp_min(b.output(1), 1), g->dtype), 1));
  }
  int64_t n = indices->numel();
  Tensor rows = call(select, {g, bag_numbers(offsets, n, b.attr(2).as_bool())}, {0});
  if (b.needs(0)) {
    Tensor scaled = scales ? mul(rows, unsqueeze(scales, 1)) : rows;
    b.set(0,
          call(embedding_back, {scaled, indices}, {b.input_spec(0).sizes[0], padding, b.attr(3)}));
  }
  if (scales && b.needs(3)) {
    Tensor dots = sum(mul(rows, call(select, {b.input(0), indices}, {0})), {1}, false);
    b.set(3, padding < 0 ? dots : masked_fill(dots, equals(indices, padding), 0));
  }
}

absl::StatusOr<int64_t> mode_of(const std::string& name) {
  if (name == "sum") return kSum;
  if (name == "mean") return kMean;
  if (name == "max") return kMax;
  return value_error("mode has to be one of sum, mean or max");
}

absl::Status check_bag(const Call& call) {
  const Tensor &input = call.in(0), &weight = call.in(1), &offsets = call.in(2);
  const Tensor& scales = call.in(3);
  if (scales && scales->sizes != input->sizes) {
    return value_error("embedding_bag: If per_sample_weights (", shape_text(scales->sizes),
                       ") is not None, then it must have the same shape as the input (",
                       shape_text(input->sizes), ")");
  }
  if (weight->rank() != 2) {
    return value_error("weight has to be a 2D Tensor, but got Tensor of dimension ",
                       weight->rank());
  }
  if (input->rank() == 2) {
    if (offsets) {
      return value_error("if input is 2D, then offsets has to be None, as input is treated is a ",
                         "mini-batch of fixed length sequences. However, found offsets of type ",
                         "<class 'torch.Tensor'>");
    }
  } else if (input->rank() == 1) {
    if (!offsets) return value_error("offsets has to be a 1D Tensor but got None");
    if (offsets->rank() != 1) return value_error("offsets has to be a 1D Tensor");
  } else {
    return value_error("input has to be 1D or 2D Tensor, but got Tensor of dimension ",
                       input->rank());
  }
  for (const Tensor& t : {input, offsets}) {
    if (!t || t->dtype == DType::kInt64 || t->dtype == DType::kInt32) continue;
    return runtime_error("embedding_bag: expected indices and offsets of int64 or int32, got ",
                         t->text());
  }
  if (scales && scales->dtype != weight->dtype) {
    return runtime_error("embedding_bag: expected per_sample_weights of ",
                         std::string(dtype_name(weight->dtype)), ", got ", scales->text());
  }
  auto mode = mode_of(call.attr(1).as_string());
  if (!mode.ok()) return mode.status();
  if (*mode == kMax && call.attr(0).as_bool()) {
    return value_error("max mode does not support scaling the gradient by the frequency");
  }
  if (scales && *mode != kSum) {
    return not_implemented_error(
        "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
        "mode='sum' (got mode='",
        call.attr(1).as_string(), "').");
  }
  return absl::OkStatus();
}

Tensors compose_bag(const Call& call) {
  static const OpRef rows("embedding_bag_rows"), arange("arange");
  const Tensor &input = call.in(0), &weight = call.in(1);
  Tensor offsets = call.in(2), indices = cast(input, DType::kInt64), scales = call.in(3);
  bool include_last = call.attr(2).as_bool();
  if (input->rank() == 2) {
    int64_t width = input->sizes[1], n = input->numel();
    offsets = width ? gradwire::call(arange, {}, {0, n, width, DType::kInt64})
                    : zeros(Dims{input->sizes[0]}, DType::kInt64);
    include_last = false;
    indices = reshape(indices, Dims{n});
    if (scales) scales = reshape(scales, Dims{n});
  }
  int64_t padding = -1;
  if (!call.attr(3).none()) {
    padding = call.attr(3).as_int();
    int64_t count = weight->sizes[0];
    if (padding < -count || padding >= count) {
      return {poisoned(runtime_error("padding_idx must be within the number of embeddings, -",
                                     count, " through ", count - 1, ", but got ", padding))};
    }
    if (padding < 0) padding += count;
  }
  int64_t mode = *mode_of(call.attr(1).as_string());
  return {call_many(rows, {weight, indices, cast(offsets, DType::kInt64), scales},
                    {mode, padding, include_last, call.attr(0)})[0]};
}

// Rows of weight that indices name and that are longer than max_norm, shortened to it.
Tensors compose_renorm(const Call& call) {
  static const OpRef select("index_select"), put("index_put_"), gt("gt");
  const Tensor& weight = call.in(0);
  if (weight->rank() != 2) {
    return {poisoned(
        runtime_error("embedding_renorm_: expected a weight of 2 dims, got ", weight->text()))};
  }
  Tensor indices = cast(call.in(1), DType::kInt64);
  indices = reshape(indices, Dims{call.in(1)->numel()});
  double limit = call.attr(0).as_double();
  Tensor rows = gradwire::call(select, {weight, indices}, {0});
  Tensor norms = p_norm(rows, call.attr(1).as_double(), {1}, true);
  if (norms->poison) return {norms};
  Tensor scale = div(full(norms->sizes, limit, norms->dtype), add(norms, 1e-7));
  Tensor shorter = where(with_number(gt, norms, limit), mul(rows, scale), rows);
  return {call_in_place(put, {weight, shorter, indices}, {false})};
}

// y[n, k] = x1[n] . weight[k] . x2[n] + bias[k]: one product with all of weight, one of batches.
Tensors compose_bilinear(const Call& call) {
  const Tensor &x1 = call.in(0), &x2 = call.in(1), &weight = call.in(2), &bias = call.in(3);
  if (x1->rank() != x2->rank()) {
    return {poisoned(runtime_error("bilinear(): input dimensions do not match: got ", x1->rank(),
                                   " and ", x2->rank()))};
  }
  if (x1->rank() == 0 || weight->rank() != 3) {
    return {poisoned(runtime_error("bilinear(): expected inputs of at least 1 dim and a weight of ",
                                   "3 dims, got ", x1->text(), " and ", weight->text()))};
  }
  for (int i = 0; i + 1 < x1->rank(); ++i) {
    if (x1->sizes[i] == x2->sizes[i]) continue;
    return {poisoned(runtime_error("bilinear(): input batch dimensions do not match at dim ", i,
                                   ": got ", x1->sizes[i], " and ", x2->sizes[i]))};
  }
  for (int i : {1, 2}) {
    int64_t size = (i == 1 ? x1 : x2)->sizes.back();
    if (size == weight->sizes[i]) continue;
    return {poisoned(runtime_error("bilinear(): input", i, " size does not match weight size: got ",
                                   size, " but expected ", weight->sizes[i]))};
  }
  int64_t outputs = weight->sizes[0], in1 = weight->sizes[1], in2 = weight->sizes[2];
  if (bias && (bias->rank() != 1 || bias->sizes[0] != outputs)) {
    return {poisoned(runtime_error("bilinear(): bias size does not match weight size: got ",
                                   bias->sizes.empty() ? 0 : bias->sizes[0], " but expected ",
                                   outputs))};
  }
  Dims out_sizes = x1->sizes;
  out_sizes.back() = outputs;
  int64_t n = 1;
  for (int i = 0; i + 1 < x1->rank(); ++i) n *= x1->sizes[i];
  Tensor rows = reshape(x1, Dims{n, in1}), columns = reshape(x2, Dims{n, in2, 1});
  Tensor table = reshape(permute(weight, {1, 0, 2}), Dims{in1, outputs * in2});
  Tensor halfway = reshape(matmul(rows, table), Dims{n, outputs, in2});
  Tensor y = reshape(matmul(halfway, columns), out_sizes);
  return {bias ? add(y, bias) : y};
}

}  // namespace

void add_bag_rows(Catalog& c) {
  auto& rows = c.add(1230, OpKind::kKernel,
                     "embedding_bag_rows(Tensor weight, Tensor indices, Tensor offsets, "
                     "Tensor? per_sample_weights, int mode, int padding_idx, "
                     "bool include_last_offset, bool scale_grad_by_freq) -> "
                     "(Tensor output, Tensor sizes, Tensor taken)",
                     "Sums (0), means (1) or maxima (2) of rows of weight, bag by bag; sizes are "
                     "the bags' without padding, taken the rows of the maxima.");
  rows.kernel = "embedding_bag";
  rows.infer = infer_bags;
  rows.backward = backward_bags;
  rows.saves_inputs = save(0) | save(1) | save(2) | save(3);
  rows.saves_outputs = save(1) | save(2);
  rows.no_grad_inputs = {1, 2};
  rows.checks = true;
  auto& bag = c.add(1231, OpKind::kComposite,
                    "nn.functional.embedding_bag(Tensor input, Tensor weight, "
                    "Tensor? offsets=None, bool scale_grad_by_freq=False, str mode='mean', "
                    "Tensor? per_sample_weights=None, bool include_last_offset=False, "
                    "int? padding_idx=None) -> Tensor",
                    "The sum, mean or max of the rows of weight [V, D] in each bag: a row of input "
                    "[B, N], or input [n] from one of offsets [B] to the next; padding_idx counts "
                    "for nothing.");
  bag.compose = compose_bag;
  bag.check = check_bag;
  auto& renorm = c.add(1233, OpKind::kComposite,
                       "embedding_renorm_(Tensor input, Tensor indices, float max_norm, "
                       "float norm_type) -> Tensor",
                       "Rows of input [V, D] named by indices whose norm_type-norm is above "
                       "max_norm, scaled down to it in place.");
  renorm.compose = compose_renorm;
  renorm.in_place = true;
  auto& bilinear = c.add(1232, OpKind::kComposite,
                         "nn.functional.bilinear(Tensor input1, Tensor input2, Tensor weight, "
                         "Tensor? bias=None) -> Tensor",
                         "input1[..., i] weight[k, i, j] input2[..., j] + bias[k], summed over i "
                         "and j.");
  bilinear.compose = compose_bilinear;
  c.keep_internal({"embedding_bag_rows"});
}

}  // namespace gradwire
