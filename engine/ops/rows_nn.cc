// Rows 630 to 729: convolution, pooling, normalisation, softmax.
#include <algorithm>
#include <tuple>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

// One number for every spatial dimension, or one each.
absl::StatusOr<IntList> spread(const Attribute& a, int spatial, std::string_view what) {
  IntList list = a.is_int() ? IntList{a.as_int()} : a.as_ints();
  if (list.size() == 1) list.assign(spatial, list[0]);
  if (static_cast<int>(list.size()) != spatial) {
    return runtime_error(std::string(what), " must have 1 or ", spatial, " entries, got ",
                         list.size());
  }
  return list;
}

// --- convolution: attributes stride, padding, dilation, groups -----------------------------------

absl::Status infer_conv(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  const Tensor& w = call.in(1);
  const Tensor& bias = call.in(2);
  int spatial = w->rank() - 2;
  if (spatial < 1 || spatial > 3 || x->rank() != w->rank()) {
    return runtime_error("Expected ", w->rank() - 1, "D (unbatched) or ", w->rank(),
                         "D (batched) input to conv, but got input of size: ", shape_text(x->sizes),
                         " and weight of size: ", shape_text(w->sizes));
  }
  if (x->dtype != w->dtype || (bias && bias->dtype != x->dtype)) {
    return runtime_error("Input type (", std::string(dtype_name(x->dtype)), ") and weight type (",
                         std::string(dtype_name(w->dtype)), ") should be the same");
  }
  if (!is_floating(x->dtype)) {
    return not_implemented_error("\"conv\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  const IntList& stride = call.attr(0).as_ints();
  const IntList& padding = call.attr(1).as_ints();
  const IntList& dilation = call.attr(2).as_ints();
  int64_t groups = call.attr(3).as_int();
  if (groups <= 0) return runtime_error("non-positive groups is not supported");
  if (w->sizes[0] % groups || w->sizes[1] * groups != x->sizes[1]) {
    return runtime_error("Given groups=", groups, ", weight of size ", shape_text(w->sizes),
                         ", expected input", shape_text(x->sizes), " to have ",
                         w->sizes[1] * groups, " channels, but got ", x->sizes[1],
                         " channels instead");
  }
  if (bias && (bias->rank() != 1 || bias->sizes[0] != w->sizes[0])) {
    return runtime_error("Given weight of size ", shape_text(w->sizes),
                         ", expected bias to be 1-dimensional with ", w->sizes[0],
                         " elements, but got bias of size ", shape_text(bias->sizes), " instead");
  }
  Dims sizes{x->sizes[0], w->sizes[0]};
  for (int i = 0; i < spatial; ++i) {
    if (stride[i] <= 0) return runtime_error("non-positive stride is not supported");
    if (padding[i] < 0) return runtime_error("negative padding is not supported");
    if (dilation[i] <= 0) return runtime_error("dilation should be greater than zero");
    if (padding[i] > (int64_t{1} << 40) || dilation[i] > (int64_t{1} << 40)) {
      return runtime_error("[conv] padding or dilation is too large");
    }
    int64_t window = dilation[i] * (w->sizes[i + 2] - 1) + 1;
    int64_t room = x->sizes[i + 2] + 2 * padding[i] - window;
    if (room < 0 || w->sizes[i + 2] <= 0) {
      return runtime_error("Calculated padded input size per channel: (",
                           x->sizes[i + 2] + 2 * padding[i], "). Kernel size: (", window,
                           "). Kernel size can't be greater than actual input size");
    }
    sizes.push_back(room / stride[i] + 1);
  }
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  out->push_back({x->dtype, sizes, {}});
  return absl::OkStatus();
}

void backward_conv(Backward& b) {
  static const OpRef input_op("conv_backward_input"), weight_op("conv_backward_weight");
  Tensor g = b.grad();
  AttributeList a = b.node.attributes;
  if (b.needs(0)) {
    const Dims& sizes = b.input_spec(0).sizes;
    b.set(0, call(input_op, {g, b.input(1)},
                  {a[0], a[1], a[2], a[3], IntList(sizes.begin(), sizes.end())}));
  }
  if (b.needs(1)) {
    const Dims& sizes = b.input_spec(1).sizes;
    b.set(1, call(weight_op, {g, b.input(0)},
                  {a[0], a[1], a[2], a[3], IntList(sizes.begin(), sizes.end())}));
  }
  if (b.needs(2)) {
    IntList dims{0};
    for (size_t i = 2; i < b.output_spec(0).sizes.size(); ++i) {
      dims.push_back(static_cast<int64_t>(i));
    }
    b.set(2, sum(g, dims, false));
  }
}

absl::Status infer_conv_gradient(const Call& call, TensorSpecs* out) {
  const IntList& sizes = call.attr(4).as_ints();
  out->push_back({call.in(0)->dtype, Dims(sizes.begin(), sizes.end()), {}});
  return absl::OkStatus();
}

absl::Status lower_conv_gradient(const Call&, Task* task) {
  task->attributes.resize(4);
  return absl::OkStatus();
}

// dx is linear in the gradient and in the weight; dw in the gradient and in x.
void backward_conv_input(Backward& b) {
  static const OpRef conv("conv"), weight_op("conv_backward_weight");
  AttributeList a = b.node.attributes;
  Tensor g = b.grad();
  if (b.needs(0)) b.set(0, call(conv, {g, b.input(1), nullptr}, {a[0], a[1], a[2], a[3]}));
  if (b.needs(1)) {
    const Dims& sizes = b.input_spec(1).sizes;
    b.set(1, call(weight_op, {b.input(0), g},
                  {a[0], a[1], a[2], a[3], IntList(sizes.begin(), sizes.end())}));
  }
}

void backward_conv_weight(Backward& b) {
  static const OpRef conv("conv"), input_op("conv_backward_input");
  AttributeList a = b.node.attributes;
  Tensor g = b.grad();
  if (b.needs(0)) b.set(0, call(conv, {b.input(1), g, nullptr}, {a[0], a[1], a[2], a[3]}));
  if (b.needs(1)) {
    const Dims& sizes = b.input_spec(1).sizes;
    b.set(1, call(input_op, {b.input(0), g},
                  {a[0], a[1], a[2], a[3], IntList(sizes.begin(), sizes.end())}));
  }
}

Tensors conv_nd(const Call& call, int spatial) {
  static const OpRef conv("conv");
  Tensor x = call.in(0);
  const Tensor& w = call.in(1);
  if (w->rank() != spatial + 2) {
    return {poisoned(
        runtime_error("conv", spatial, "d expects a ", spatial + 2, "D weight, got ", w->text()))};
  }
  bool single = x->rank() == spatial + 1;
  if (single) x = unsqueeze(x, 0);
  IntList padding;
  auto stride = spread(call.attr(0), spatial, "stride");
  auto dilation = spread(call.attr(2), spatial, "dilation");
  auto given = spread(call.attr(1), spatial, "padding");
  for (auto* list : {&stride, &dilation, &given}) {
    if (!list->ok()) return {poisoned(list->status())};
  }
  Tensor out = gradwire::call(conv, {x, w, call.in(2)}, {*stride, *given, *dilation, call.attr(3)});
  return {single ? squeeze(out, 0) : out};
}

// --- pooling -------------------------------------------------------------------------------------

struct Windows {
  IntList kernel, stride, padding, dilation;
};

// Output sizes of windows over the last `spatial` dims, torch's ceil_mode rule included.
absl::StatusOr<Dims> pooled_sizes(const Call& call, const Dims& x, const Windows& w,
                                  bool ceil_mode) {
  Dims out(x.begin(), x.end());
  int spatial = static_cast<int>(w.kernel.size());
  int lead = static_cast<int>(x.size()) - spatial;
  for (int i = 0; i < spatial; ++i) {
    int64_t k = w.kernel[i], s = w.stride[i], p = w.padding[i], d = w.dilation[i];
    if (k <= 0) return runtime_error("kernel size should be greater than zero, but got ", k);
    if (s <= 0) return runtime_error("stride should not be zero");
    if (d <= 0) return runtime_error("dilation should be greater than zero, but got ", d);
    if (p < 0) return runtime_error("pad must be non-negative, but got pad: ", p);
    if (k > (int64_t{1} << 40) || d > (int64_t{1} << 20)) {
      return runtime_error("[", call.op->name, "] the window is too large");
    }
    if (p > ((k - 1) * d + 1) / 2) {
      return runtime_error("pad should be at most half of effective kernel size, but got pad=", p,
                           ", kernel_size=", k, " and dilation=", d);
    }
    int64_t room = x[lead + i] + 2 * p - d * (k - 1) - 1;
    int64_t n = (room + (ceil_mode ? s - 1 : 0)) / s + 1;
    if (ceil_mode && (n - 1) * s >= x[lead + i] + p) --n;
    if (room < 0 || n < 1) {
      return runtime_error("Given input size: ", shape_text(x),
                           ". Calculated output size is too small [", call.op->name, "]");
    }
    out[lead + i] = n;
  }
  return out;
}

absl::StatusOr<Windows> windows_of(const Call& call, int spatial, bool dilated) {
  if (spatial < 1 || spatial > 3) {
    return runtime_error("[", call.op->name, "] expected an input of 3 to 5 dims, got ",
                         call.in(0)->text());
  }
  Windows w;
  auto kernel = spread(call.attr(0), spatial, "kernel_size");
  if (!kernel.ok()) return kernel.status();
  w.kernel = *kernel;
  bool own = call.attr(1).none() || call.attr(1).as_ints().empty();
  auto stride = spread(own ? call.attr(0) : call.attr(1), spatial, "stride");
  if (!stride.ok()) return stride.status();
  w.stride = *stride;
  auto padding = spread(call.attr(2), spatial, "padding");
  if (!padding.ok()) return padding.status();
  w.padding = *padding;
  w.dilation.assign(spatial, 1);
  if (dilated) {
    auto dilation = spread(call.attr(3), spatial, "dilation");
    if (!dilation.ok()) return dilation.status();
    w.dilation = *dilation;
  }
  return w;
}

// Max pool: attributes kernel, stride, padding, dilation, ceil_mode.
absl::Status infer_max_pool(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  auto windows = windows_of(call, x->rank() - 2, true);
  if (!windows.ok()) return windows.status();
  auto sizes = pooled_sizes(call, x->sizes, *windows, call.attr(4).as_bool());
  if (!sizes.ok()) return sizes.status();
  out->push_back({x->dtype, *sizes, {}});
  out->push_back({DType::kInt64, *sizes, {}});
  return absl::OkStatus();
}

absl::Status lower_max_pool(const Call& call, Task* task) {
  auto w = windows_of(call, call.in(0)->rank() - 2, true);
  if (!w.ok()) return w.status();
  task->attributes = {w->kernel, w->stride, w->padding, w->dilation};
  return absl::OkStatus();
}

void backward_max_pool(Backward& b) {
  static const OpRef op("max_pool_backward");
  const Dims& sizes = b.input_spec(0).sizes;
  b.set(0, call(op, {b.grad(0), b.output(1)}, {IntList(sizes.begin(), sizes.end())}));
}

void backward_max_pool_backward(Backward& b) {
  // The gradient of a choice is the same choice of the gradient.
  static const OpRef gather("gather");
  Tensor g = b.grad(), index = b.input(1);
  if (g->poison || index->poison) {
    b.set(0, g->poison ? g : index);
    return;
  }
  Dims flat{g->sizes[0], g->sizes[1], -1}, flat_index{g->sizes[0], g->sizes[1], -1};
  Tensor picked = call(gather, {reshape(g, flat), reshape(index, flat_index)}, {2});
  b.set(0, reshape(picked, b.input_spec(0).sizes));
}

absl::Status infer_like_attribute(const Call& call, TensorSpecs* out) {
  const IntList& sizes = call.attributes.back().as_ints();
  out->push_back({call.in(0)->dtype, Dims(sizes.begin(), sizes.end()), {}});
  return absl::OkStatus();
}

absl::Status lower_drop_last(const Call&, Task* task) {
  task->attributes.pop_back();
  return absl::OkStatus();
}

Tensors max_pool_nd(const Call& call, int spatial) {
  static const OpRef op("max_pool");
  Tensor x = call.in(0);
  bool single = x->rank() == spatial + 1;
  if (x->rank() != spatial + 2 && !single) {
    return {poisoned(runtime_error("max_pool", spatial, "d: Expected ", spatial + 1, "D or ",
                                   spatial + 2, "D input, got ", x->text()))};
  }
  if (single) x = unsqueeze(x, 0);
  Tensors out =
      call_many(op, {x}, {call.attr(0), call.attr(1), call.attr(2), call.attr(3), call.attr(4)});
  if (out[0]->poison) return {out[0]};
  if (single) {
    for (Tensor& t : out) t = squeeze(t, 0);
  }
  return call.attr(5).as_bool() ? out : Tensors{out[0]};
}

// Average pool: attributes kernel, stride, padding, ceil_mode, count_include_pad, divisor_override.
absl::Status infer_avg_pool(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  auto windows = windows_of(call, x->rank() - 2, false);
  if (!windows.ok()) return windows.status();
  auto sizes = pooled_sizes(call, x->sizes, *windows, call.attr(3).as_bool());
  if (!sizes.ok()) return sizes.status();
  if (call.attr(5).is_int() && call.attr(5).as_int() == 0) {
    return runtime_error("divisor must be not zero");
  }
  out->push_back({x->dtype, *sizes, {}});
  return absl::OkStatus();
}

absl::Status lower_avg_pool(const Call& call, Task* task) {
  auto w = windows_of(call, call.in(0)->rank() - 2, false);
  if (!w.ok()) return w.status();
  task->attributes = {w->kernel, w->stride, w->padding, call.attr(4), call.attr(5)};
  return absl::OkStatus();
}

void backward_avg_pool(Backward& b) {
  static const OpRef op("avg_pool_backward");
  const Dims& sizes = b.input_spec(0).sizes;
  AttributeList a = b.node.attributes;
  a.push_back(IntList(sizes.begin(), sizes.end()));
  b.set(0, call(op, {b.grad()}, std::move(a)));
}

void backward_avg_pool_backward(Backward& b) {
  static const OpRef op("avg_pool");
  AttributeList a = b.node.attributes;
  a.pop_back();
  b.set(0, call(op, {b.grad()}, std::move(a)));
}

Tensors avg_pool_nd(const Call& call, int spatial) {
  static const OpRef op("avg_pool");
  Tensor x = call.in(0);
  bool single = x->rank() == spatial + 1;
  if (x->rank() != spatial + 2 && !single) {
    return {poisoned(runtime_error("avg_pool", spatial, "d: Expected ", spatial + 1, "D or ",
                                   spatial + 2, "D input, got ", x->text()))};
  }
  if (single) x = unsqueeze(x, 0);
  Tensor out = gradwire::call(op, {x}, call.attributes);
  return {single ? squeeze(out, 0) : out};
}

absl::Status infer_adaptive(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  if (x->rank() < 3 || x->rank() > 5) {
    return runtime_error("[adaptive_avg_pool] expected an input of 3 to 5 dims, got ", x->text());
  }
  auto given = spread(call.attr(0), x->rank() - 2, "output_size");
  if (!given.ok()) return given.status();
  Dims sizes{x->sizes[0], x->sizes[1]};
  for (size_t i = 0; i < given->size(); ++i) {
    int64_t n = (*given)[i] == -1 ? x->sizes[i + 2] : (*given)[i];
    if (n < 0) return runtime_error("adaptive pooling: output_size must be non-negative");
    sizes.push_back(n);
  }
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  out->push_back({x->dtype, sizes, {}});
  return absl::OkStatus();
}

// --- normalisation -------------------------------------------------------------------------------

DType statistics_dtype(DType t) {
  return t == DType::kFloat64 ? t : DType::kFloat32;
}

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

void backward_batch_norm(Backward& b) {
  static const OpRef op("batch_norm_backward");
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

Tensor per_channel(const Tensor& t, int rank) {
  Dims sizes(rank, 1);
  sizes[1] = -1;
  return reshape(t, sizes);
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
  Tensor shifted = gradwire::call(add_op, {var, nullptr}, {{}, call.attr(2), 1});
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

void add_nn_rows(Catalog& c) {
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
  kernel(630,
         "conv(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
         "int[] dilation, int groups) -> Tensor",
         "Convolution over 1 to 3 spatial dimensions.", infer_conv, nullptr, backward_conv,
         save(0) | save(1), 0);
  kernel(631,
         "conv_backward_input(Tensor grad, Tensor weight, int[] stride, int[] padding, "
         "int[] dilation, int groups, int[] sizes) -> Tensor",
         "The gradient of conv's input.", infer_conv_gradient, lower_conv_gradient,
         backward_conv_input, save(0) | save(1), 0);
  kernel(632,
         "conv_backward_weight(Tensor grad, Tensor input, int[] stride, int[] padding, "
         "int[] dilation, int groups, int[] sizes) -> Tensor",
         "The gradient of conv's weight.", infer_conv_gradient, lower_conv_gradient,
         backward_conv_weight, save(0) | save(1), 0);
  composite(
      633,
      "nn.functional.conv1d(Tensor input, Tensor weight, Tensor? bias=None, "
      "int[] stride=[1], int[] padding=[0], int[] dilation=[1], int groups=1) -> Tensor",
      "Convolution of [N, C, L].", [](const Call& call) { return conv_nd(call, 1); }, "conv",
      "same");
  composite(
      634,
      "nn.functional.conv2d(Tensor input, Tensor weight, Tensor? bias=None, "
      "int[] stride=[1], int[] padding=[0], int[] dilation=[1], int groups=1) -> Tensor",
      "Convolution of [N, C, H, W].", [](const Call& call) { return conv_nd(call, 2); }, "conv",
      "same");
  composite(
      635,
      "nn.functional.conv3d(Tensor input, Tensor weight, Tensor? bias=None, "
      "int[] stride=[1], int[] padding=[0], int[] dilation=[1], int groups=1) -> Tensor",
      "Convolution of [N, C, D, H, W].", [](const Call& call) { return conv_nd(call, 3); }, "conv",
      "same");
  kernel(640,
         "max_pool(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=[0], "
         "int[] dilation=[1], bool ceil_mode=False) -> (Tensor output, Tensor indices)",
         "The largest of each window, and its place in the plane.", infer_max_pool, lower_max_pool,
         backward_max_pool, 0, save(1));
  kernel(641, "max_pool_backward(Tensor grad, Tensor indices, int[] sizes) -> Tensor",
         "The gradient of max_pool's input.", infer_like_attribute, lower_drop_last,
         backward_max_pool_backward, save(1), 0);
  composite(
      642,
      "nn.functional.max_pool2d(Tensor input, int[] kernel_size, int[]? stride=None, "
      "int[] padding=[0], int[] dilation=[1], bool ceil_mode=False, "
      "bool return_indices=False) -> Tensor",
      "The largest of each window of [N, C, H, W].",
      [](const Call& call) { return max_pool_nd(call, 2); }, "pool", "same");
  composite(
      643,
      "nn.functional.max_pool1d(Tensor input, int[] kernel_size, int[]? stride=None, "
      "int[] padding=[0], int[] dilation=[1], bool ceil_mode=False, "
      "bool return_indices=False) -> Tensor",
      "The largest of each window of [N, C, L].",
      [](const Call& call) { return max_pool_nd(call, 1); }, "pool", "same");
  kernel(644,
         "avg_pool(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=[0], "
         "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) "
         "-> Tensor",
         "The mean of each window.", infer_avg_pool, lower_avg_pool, backward_avg_pool, 0, 0);
  kernel(645,
         "avg_pool_backward(Tensor grad, int[] kernel_size, int[]? stride, int[] padding, "
         "bool ceil_mode, bool count_include_pad, int? divisor_override, int[] sizes) "
         "-> Tensor",
         "The gradient of avg_pool's input.", infer_like_attribute, lower_avg_pool,
         backward_avg_pool_backward, 0, 0);
  composite(
      646,
      "nn.functional.avg_pool2d(Tensor input, int[] kernel_size, int[]? stride=None, "
      "int[] padding=[0], bool ceil_mode=False, bool count_include_pad=True, "
      "int? divisor_override=None) -> Tensor",
      "The mean of each window of [N, C, H, W].",
      [](const Call& call) { return avg_pool_nd(call, 2); }, "pool", "same");
  kernel(
      647, "adaptive_avg_pool(Tensor input, int[] output_size) -> Tensor",
      "Means over windows that give output_size.", infer_adaptive,
      [](const Call&, Task* task) {
        task->attributes.clear();
        return absl::OkStatus();
      },
      [](Backward& b) {
        static const OpRef op("adaptive_avg_pool_backward");
        const Dims& sizes = b.input_spec(0).sizes;
        b.set(0, call(op, {b.grad()}, {IntList(sizes.begin(), sizes.end())}));
      },
      0, 0);
  kernel(
      648, "adaptive_avg_pool_backward(Tensor grad, int[] sizes) -> Tensor",
      "The gradient of adaptive_avg_pool's input.", infer_like_attribute, lower_drop_last,
      [](Backward& b) {
        static const OpRef op("adaptive_avg_pool");
        const Dims& sizes = b.input_spec(0).sizes;
        b.set(0, call(op, {b.grad()}, {IntList(sizes.begin() + 2, sizes.end())}));
      },
      0, 0);
  composite(
      649, "nn.functional.adaptive_avg_pool2d(Tensor input, int[] output_size) -> Tensor",
      "Means over windows that give output_size.",
      [](const Call& call) -> Tensors {
        static const OpRef op("adaptive_avg_pool");
        const Tensor& x = call.in(0);
        if (x->rank() == 3) {
          return {squeeze(gradwire::call(op, {unsqueeze(x, 0)}, {call.attr(0)}), 0)};
        }
        if (x->rank() != 4) {
          return {
              poisoned(runtime_error("adaptive_avg_pool2d(): Expected 3D or 4D tensor, "
                                     "but got ",
                                     x->text()))};
        }
        return {gradwire::call(op, {x}, {call.attr(0)})};
      },
      "", "same");
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
}

}  // namespace gradwire
