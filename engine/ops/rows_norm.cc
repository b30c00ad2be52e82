// Rows 660 to 729: normalisation, softmax.
#include <algorithm>
#include <tuple>

#include "engine/ops/normalisation.h"

namespace gradwire {
namespace {

// inputs x, weight?, bias?, running_mean?, running_var?; attributes momentum, eps.
absl::Status infer_batch_norm(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  if (x->rank() < 2) return value_error("expected at least 2D input (got ", x->rank(), "D input)");
  int64_t channels = x->sizes[1];
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (t && t->numel() != channels) {
      return runtime_error("[batch_norm] ", call.op->signature.params[i].name, " should contain ",
                           channels, " elements not ", t->numel());
    }
  }
  if (channels && x->numel() / channels <= 1) {
    return value_error("Expected more than 1 value per channel when training, got input size ",
                       shape_text(x->sizes));
  }
  out->push_back({x->dtype, x->sizes, like_strides(x->sizes, x->strides)});
  out->push_back({statistics_dtype(x->dtype), {channels}, {}});
  out->push_back({statistics_dtype(x->dtype), {channels}, {}});
  return absl::OkStatus();
}

absl::Status lower_batch_norm(const Call& call, Task* task) {
  // The running statistics are updated in place.
  task->state_outputs = 2;
  for (int i : {3, 4}) {
    const Tensor& running = call.in(i);
    task->outputs.push_back(running ? operand_of(running) : Operand{});
    if (running) ++running->storage->version;
  }
  return absl::OkStatus();
}

// All dims but the channels'.
IntList batch_dims(int rank) {
  IntList dims{0};
  for (int i = 2; i < rank; ++i) dims.push_back(i);
  return dims;
}

void backward_batch_norm(Backward& b) {
  static const OpRef op("batch_norm_backward");
  if (Slot::current().grad_enabled) {
    const TensorSpec& x = b.input_spec(0);
    int rank = static_cast<int>(x.sizes.size());
    IntList dims = batch_dims(rank);
    Tensor weight = b.input(1);
    NormGradients grads =
        norm_gradients(b.grad(0), b.input(0), weight ? per_channel(weight, rank) : nullptr, dims,
                       b.attr(1).as_double());
    if (b.needs(0)) b.set(0, cast(grads.dx, x.dtype));
    if (b.needs(1)) b.set(1, cast(sum(grads.dxhat_weight, dims, false), b.input_spec(1).dtype));
    if (b.needs(2)) b.set(2, cast(sum(grads.g, dims, false), b.input_spec(2).dtype));
    return;
  }
  Tensors grads = call_many(op, {b.grad(0), b.input(0), b.input(1), b.output(1), b.output(2)});
  for (int i = 0; i < 3 && i < static_cast<int>(grads.size()); ++i) {
    if (b.needs(i)) b.set(i, grads[i]);
  }
}

absl::Status infer_batch_norm_backward(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(1);
  DType affine = call.in(2) ? call.in(2)->dtype : x->dtype;
  out->push_back({x->dtype, x->sizes, like_strides(x->sizes, x->strides)});
  out->push_back({affine, {x->sizes[1]}, {}});
  out->push_back({affine, {x->sizes[1]}, {}});
  return absl::OkStatus();
}

// torch's: running statistics in eval, or batch statistics that also update them.
Tensors compose_batch_norm(const Call& call) {
  static const OpRef train_op("batch_norm_train"), rsqrt("rsqrt"), add_op("add");
  const Tensor& x = call.in(0);
  const Tensor& mean = call.in(1);
  const Tensor& var = call.in(2);
  const Tensor& weight = call.in(3);
  const Tensor& bias = call.in(4);
  bool training = call.attr(0).as_bool();
  if (x->numel() == 0) {
    // As torch: nothing to normalise, whatever the shape.
    auto first = [](const Tensor& t) {
      static const OpRef select("select");
      return gradwire::call(select, {t}, {0, 0});
    };
    Tensor y = clone(x);
    if (weight && weight->numel()) y = mul(y, first(weight));
    if (bias && bias->numel()) y = add(y, first(bias));
    return {y};
  }
  if (training) {
    return {call_many(train_op, {x, weight, bias, mean, var}, {call.attr(1), call.attr(2)})[0]};
  }
  if (!mean || !var) {
    return {
        poisoned(runtime_error("Expected running_mean and running_var to be defined when "
                               "training=False"))};
  }
  if (x->rank() < 2 || mean->numel() != x->sizes[1]) {
    return {poisoned(runtime_error("running_mean should contain ", x->rank() < 2 ? 0 : x->sizes[1],
                                   " elements not ", mean->numel()))};
  }
  int rank = x->rank();
  Tensor shifted = with_number(add_op, var, call.attr(2), 1);
  Tensor scale = gradwire::call(rsqrt, {shifted});
  Tensor y = mul(sub(x, per_channel(mean, rank)), per_channel(scale, rank));
  if (weight) y = mul(y, per_channel(weight, rank));
  if (bias) y = add(y, per_channel(bias, rank));
  return {cast(y, x->dtype)};
}

// inputs x, weight?, bias?; attributes number of dims, eps.
absl::Status infer_layer_norm(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  Dims lead(x->sizes.begin(), x->sizes.end() - call.attr(0).as_int());
  out->push_back({x->dtype, x->sizes, {}});
  out->push_back({statistics_dtype(x->dtype), lead, {}});
  out->push_back({statistics_dtype(x->dtype), lead, {}});
  return absl::OkStatus();
}

void backward_layer_norm(Backward& b) {
  static const OpRef op("layer_norm_backward");
  if (Slot::current().grad_enabled) {
    const TensorSpec& x = b.input_spec(0);
    int rank = static_cast<int>(x.sizes.size()), count = static_cast<int>(b.attr(0).as_int());
    IntList dims, lead;
    for (int i = 0; i < rank; ++i) (i < rank - count ? lead : dims).push_back(i);
    NormGradients grads =
        norm_gradients(b.grad(0), b.input(0), b.input(1), dims, b.attr(1).as_double());
    auto total = [&](const Tensor& t) { return lead.empty() ? t : sum(t, lead, false); };
    if (b.needs(0)) b.set(0, cast(grads.dx, x.dtype));
    if (b.needs(1)) b.set(1, cast(total(grads.dxhat_weight), b.input_spec(1).dtype));
    if (b.needs(2)) b.set(2, cast(total(grads.g), b.input_spec(2).dtype));
    return;
  }
  Tensors grads =
      call_many(op, {b.grad(0), b.input(0), b.input(1), b.output(1), b.output(2)}, {b.attr(0)});
  for (int i = 0; i < 3 && i < static_cast<int>(grads.size()); ++i) {
    if (b.needs(i)) b.set(i, grads[i]);
  }
}

absl::Status infer_layer_norm_backward(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(1);
  Dims shape(x->sizes.end() - call.attr(0).as_int(), x->sizes.end());
  DType affine = call.in(2) ? call.in(2)->dtype : x->dtype;
  out->push_back({x->dtype, x->sizes, {}});
  out->push_back({affine, shape, {}});
  out->push_back({affine, shape, {}});
  return absl::OkStatus();
}

Tensors compose_layer_norm(const Call& call) {
  static const OpRef op("layer_norm_rows");
  const Tensor& x = call.in(0);
  const IntList& shape = call.attr(0).as_ints();
  int dims = static_cast<int>(shape.size());
  bool fits = dims > 0 && dims <= x->rank() &&
              std::equal(shape.begin(), shape.end(), x->sizes.end() - dims);
  if (!fits) {
    return {poisoned(runtime_error("Given normalized_shape=", shape_text(shape),
                                   ", expected input with shape [*, ", shape_text(shape).substr(1),
                                   ", but got input of size", shape_text(x->sizes)))};
  }
  for (int i : {1, 2}) {
    const Tensor& t = call.in(i);
    if (t && (t->rank() != dims || !std::equal(shape.begin(), shape.end(), t->sizes.begin()))) {
      return {poisoned(runtime_error("Expected ", i == 1 ? "weight" : "bias",
                                     " to be of same shape as normalized_shape, but got ",
                                     t->text(), " and normalized_shape = ", shape_text(shape)))};
    }
  }
  return {call_many(op, {x, call.in(1), call.in(2)}, {dims, call.attr(1)})[0]};
}

// --- softmax -------------------------------------------------------------------------------------

absl::Status infer_softmax(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  auto dim = wrap_dim(call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (!is_floating(x->dtype)) {
    return not_implemented_error("\"", call.op->name, "\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  out->push_back({x->dtype, x->sizes, like_strides(x->sizes, x->strides)});
  return absl::OkStatus();
}

absl::Status lower_softmax(const Call& call, Task* task) {
  task->attributes = {*wrap_dim(call.attr(0).as_int(), call.in(0)->rank())};
  return absl::OkStatus();
}

// y (g - sum(g y)), composed when the gradient is to be differentiated again.
void backward_softmax(Backward& b) {
  static const OpRef op("softmax_backward");
  Tensor g = b.grad(), y = b.output(0);
  if (Slot::current().grad_enabled) {
    b.set(0, mul(y, sub(g, sum(mul(g, y), {b.attr(0).as_int()}, true))));
  } else {
    b.set(0, call(op, {g, y}, {b.attr(0)}));
  }
}

void backward_log_softmax(Backward& b) {
  static const OpRef op("log_softmax_backward"), exp("exp");
  Tensor g = b.grad(), y = b.output(0);
  if (Slot::current().grad_enabled) {
    b.set(0, sub(g, mul(call(exp, {y}), sum(g, {b.attr(0).as_int()}, true))));
  } else {
    b.set(0, call(op, {g, y}, {b.attr(0)}));
  }
}

Tensors softmax_as(const Call& call, const OpRef& op) {
  Tensor x = call.in(0);
  DType dtype = call.attr(1).as_dtype();
  if (dtype != DType::kNone) x = cast(x, dtype);
  return {gradwire::call(op, {x}, {call.attr(0)})};
}

}  // namespace

void add_norm_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, LowerFn lower, BackwardFn backward, uint32_t inputs,
                    uint32_t outputs) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.lower = lower;
    r.backward = backward;
    r.saves_inputs = inputs;
    r.saves_outputs = outputs;
    return r;
  };
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view shape, std::string_view type) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.shape_rule = std::string(shape);
    r.type_rule = std::string(type);
    return r;
  };
  auto& train =
      kernel(660,
             "batch_norm_train(Tensor input, Tensor? weight, Tensor? bias, "
             "Tensor? running_mean, Tensor? running_var, float momentum, "
             "float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
             "Normalises by the batch's statistics and updates the running ones.", infer_batch_norm,
             lower_batch_norm, backward_batch_norm, save(0) | save(1), save(1) | save(2));
  train.kernel = "batch_norm";
  train.no_grad_inputs = {3, 4};
  kernel(661,
         "batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, "
         "Tensor rstd) -> (Tensor dinput, Tensor dweight, Tensor dbias)",
         "The gradients of batch_norm_train.", infer_batch_norm_backward, nullptr, nullptr, 0, 0);
  composite(662,
            "nn.functional.batch_norm(Tensor input, Tensor? running_mean, "
            "Tensor? running_var, Tensor? weight=None, Tensor? bias=None, "
            "bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
            "Normalises each channel by batch (training) or running statistics.",
            compose_batch_norm, "same", "same");
  auto& layer = kernel(663,
                       "layer_norm_rows(Tensor input, Tensor? weight, Tensor? bias, "
                       "int dims, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
                       "Normalises over the last dims.", infer_layer_norm, nullptr,
                       backward_layer_norm, save(0) | save(1), save(1) | save(2));
  layer.kernel = "layer_norm";
  kernel(664,
         "layer_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, "
         "Tensor rstd, int dims) -> (Tensor dinput, Tensor dweight, Tensor dbias)",
         "The gradients of layer_norm_rows.", infer_layer_norm_backward, nullptr, nullptr, 0, 0);
  composite(665,
            "nn.functional.layer_norm(Tensor input, int[] normalized_shape, "
            "Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
            "Normalises over the last dimensions: (x - mean) / sqrt(var + eps) * weight + bias.",
            compose_layer_norm, "same", "same");
  for (auto [number, name, backward] :
       {std::tuple{uint16_t{680}, "softmax", &backward_softmax},
        std::tuple{uint16_t{681}, "log_softmax", &backward_log_softmax}}) {
    kernel(number, std::string(name) + "_along(Tensor input, int dim) -> Tensor",
           "Along one dimension, stable.", infer_softmax, lower_softmax, backward, 0, save(0))
        .kernel = name;
  }
  for (auto [number, name] : {std::tuple{uint16_t{682}, "softmax_backward"},
                              std::tuple{uint16_t{683}, "log_softmax_backward"}}) {
    kernel(
        number, std::string(name) + "(Tensor grad, Tensor output, int dim) -> Tensor",
        "The gradient of the input.",
        [](const Call& call, TensorSpecs* out) {
          out->push_back({call.in(0)->dtype, call.in(0)->sizes, {}});
          return absl::OkStatus();
        },
        lower_softmax, nullptr, 0, 0);
  }
  composite(
      684, "softmax(Tensor input, int dim, dtype? dtype=None) -> Tensor",
      "exp(input) / sum(exp(input)) along dim.",
      [](const Call& call) {
        static const OpRef op("softmax_along");
        return softmax_as(call, op);
      },
      "same", "")
      .method = true;
  composite(
      685, "log_softmax(Tensor input, int dim, dtype? dtype=None) -> Tensor",
      "log(softmax(input)) along dim.",
      [](const Call& call) {
        static const OpRef op("log_softmax_along");
        return softmax_as(call, op);
      },
      "same", "")
      .method = true;
  composite(
      690, "nn.functional.gelu(Tensor input, str approximate='none') -> Tensor",
      "input * Phi(input), by erf or, with approximate='tanh', by tanh.",
      [](const Call& call) -> Tensors {
        static const OpRef erf("nn.functional.gelu_erf"), tanh("nn.functional.gelu_tanh");
        const std::string& how = call.attr(0).as_string();
        if (how != "none" && how != "tanh") {
          return {
              poisoned(runtime_error("approximate argument must be either none or tanh, "
                                     "got ",
                                     how))};
        }
        return {gradwire::call(how == "tanh" ? tanh : erf, {call.in(0)})};
      },
      "same", "float_only");
  c.keep_internal({"batch_norm_train", "batch_norm_backward", "layer_norm_rows",
                   "layer_norm_backward", "softmax_backward", "log_softmax_backward"});
}

}  // namespace gradwire
