// Rows 630 to 639: convolution.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/ops/call.h"
#include "engine/ops/spatial.h"

namespace gradwire {
namespace {

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
  if (!is_floating(x->dtype) && x->dtype != DType::kInt64) {
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

// A convolution made from its result's sizes may reach further than the tensor it stands for:
// output_padding of a transposed one gives room for more windows.
Tensor cut_to(Tensor a, const Dims& sizes) {
  static const OpRef narrow("narrow");
  for (size_t d = 2; d < sizes.size() && !a->poison; ++d) {
    if (a->sizes[d] != sizes[d]) {
      a = call(narrow, {a}, {static_cast<int64_t>(d), int64_t{0}, sizes[d]});
    }
  }
  return a;
}

// dx is linear in the gradient and in the weight; dw in the gradient and in x.
void backward_conv_input(Backward& b) {
  static const OpRef conv("conv"), weight_op("conv_backward_weight");
  AttributeList a = b.node.attributes;
  Tensor g = b.grad();
  if (b.needs(0)) {
    b.set(0, cut_to(call(conv, {g, b.input(1), nullptr}, {a[0], a[1], a[2], a[3]}),
                    b.input_spec(0).sizes));
  }
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
  if (b.needs(0)) {
    b.set(0, cut_to(call(conv, {b.input(1), g, nullptr}, {a[0], a[1], a[2], a[3]}),
                    b.input_spec(0).sizes));
  }
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

absl::StatusOr<Dims> transposed_sizes(const Call& call, const Tensor& x, const Tensor& w,
                                      const IntList& stride, const IntList& padding,
                                      const IntList& extra, const IntList& dilation,
                                      int64_t groups) {
  Dims sizes{x->sizes[0], w->sizes[1] * groups};
  for (size_t i = 0; i < stride.size(); ++i) {
    int64_t k = w->sizes[i + 2];
    if (stride[i] <= 0) return runtime_error("non-positive stride is not supported");
    if (padding[i] < 0) return runtime_error("negative padding is not supported");
    if (dilation[i] <= 0) return runtime_error("dilation should be greater than zero");
    if (extra[i] < 0) return runtime_error("negative output_padding is not supported");
    constexpr int64_t kMost = int64_t{1} << 30;
    if (std::max({stride[i], padding[i], dilation[i], extra[i], k, x->sizes[i + 2]}) > kMost) {
      return runtime_error("[", call.op->name, "] sizes and settings must be below 2^30");
    }
    if (extra[i] >= std::max(stride[i], dilation[i])) {
      return runtime_error(
          "output padding must be smaller than either stride or dilation, but got ",
          "output_padding: ", extra[i], ", stride: ", stride[i], " and dilation: ", dilation[i]);
    }
    int64_t n =
        (x->sizes[i + 2] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (k - 1) + extra[i] + 1;
    if (x->sizes[i + 2] == 0 || k == 0 || n <= 0) {
      return runtime_error("Given input size per channel: ", shape_text(x->sizes),
                           ". Calculated output size per channel is too small: ", n);
    }
    sizes.push_back(n);
  }
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  return sizes;
}

absl::Status check_transposed(const Tensor& x, const Tensor& w, const Tensor& bias,
                              int64_t groups) {
  if (x->dtype != w->dtype || (bias && bias->dtype != x->dtype)) {
    return runtime_error("Input type (", std::string(dtype_name(x->dtype)), ") and weight type (",
                         std::string(dtype_name(w->dtype)), ") should be the same");
  }
  if (!is_floating(x->dtype) && x->dtype != DType::kInt64) {
    return not_implemented_error("\"conv_transpose\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  if (groups <= 0) return runtime_error("non-positive groups is not supported");
  if (w->sizes[0] != x->sizes[1] || w->sizes[0] % groups) {
    return runtime_error("Given transposed=1, weight of size ", shape_text(w->sizes),
                         ", expected input", shape_text(x->sizes), " to have ", w->sizes[0],
                         " channels, but got ", x->sizes[1], " channels instead");
  }
  int64_t channels = 0;
  if (__builtin_mul_overflow(w->sizes[1], groups, &channels)) {
    return runtime_error("[conv_transpose] too many channels");
  }
  if (bias && (bias->rank() != 1 || bias->sizes[0] != channels)) {
    return runtime_error("Given transposed=1, weight of size ", shape_text(w->sizes),
                         ", expected bias to be 1-dimensional with ", channels,
                         " elements, but got bias of size ", shape_text(bias->sizes), " instead");
  }
  return absl::OkStatus();
}

// The gradient of a convolution's input, as an op of its own.
template <int kSpatial>
Tensors compose_transposed(const Call& call) {
  static const OpRef op("conv_backward_input");
  Tensor x = call.in(0);
  const Tensor &w = call.in(1), &bias = call.in(2);
  bool single = x->rank() == kSpatial + 1;
  if (w->rank() != kSpatial + 2 || (x->rank() != kSpatial + 2 && !single)) {
    return {poisoned(runtime_error("Expected ", kSpatial + 1, "D (unbatched) or ", kSpatial + 2,
                                   "D (batched) input to conv_transpose", kSpatial,
                                   "d, but got input of size: ", shape_text(x->sizes),
                                   " and weight of size: ", shape_text(w->sizes)))};
  }
  if (single) x = unsqueeze(x, 0);
  if (x->poison) return {x};
  int64_t groups = call.attr(3).as_int();
  absl::Status fits = check_transposed(x, w, bias, groups);
  if (!fits.ok()) return {poisoned(fits)};
  auto stride = spread(call.attr(0), kSpatial, "stride");
  auto padding = spread(call.attr(1), kSpatial, "padding");
  auto extra = spread(call.attr(2), kSpatial, "output_padding");
  auto dilation = spread(call.attr(4), kSpatial, "dilation");
  for (auto* list : {&stride, &padding, &extra, &dilation}) {
    if (!list->ok()) return {poisoned(list->status())};
  }
  auto sizes = transposed_sizes(call, x, w, *stride, *padding, *extra, *dilation, groups);
  if (!sizes.ok()) return {poisoned(sizes.status())};
  Tensor out = gradwire::call(
      op, {x, w}, {*stride, *padding, *dilation, groups, IntList(sizes->begin(), sizes->end())});
  if (bias) {
    Dims column{1, (*sizes)[1]};
    column.resize(sizes->size(), 1);
    out = add(out, reshape(bias, column));
  }
  return {single ? squeeze(out, 0) : out};
}

}  // namespace

void add_conv_rows(Catalog& c) {
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
  auto transposed = [&](uint16_t number, const char* d, const char* shape, ComposeFn fn) {
    composite(number,
              absl::StrCat("nn.functional.conv_transpose", d,
                           "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=[1], "
                           "int[] padding=[0], int[] output_padding=[0], int groups=1, "
                           "int[] dilation=[1]) -> Tensor"),
              absl::StrCat("Transposed convolution of ", shape,
                           ": the gradient of a convolution by its input; weight [C, out / groups, "
                           "kernel...]."),
              fn, "", "same");
  };
  transposed(636, "1d", "[N, C, L]", compose_transposed<1>);
  transposed(637, "2d", "[N, C, H, W]", compose_transposed<2>);
  transposed(638, "3d", "[N, C, D, H, W]", compose_transposed<3>);
  c.keep_internal({"conv", "conv_backward_input", "conv_backward_weight"});
}

}  // namespace gradwire
