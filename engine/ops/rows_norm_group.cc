// Rows 666 to 672: normalisation over groups of channels, over images, by the root mean square.
#include <algorithm>
#include <limits>

#include "engine/ops/normalisation.h"

namespace gradwire {
namespace {

// --- group norm: [N, C, ...] as N * groups rows --------------------------------------------------

absl::Status check_group_norm(const Call& call) {
  const Tensor& x = call.in(0);
  int64_t groups = call.attr(0).as_int();
  if (x->rank() < 2) {
    return runtime_error("Expected at least 2 dimensions for input tensor but received ",
                         x->rank());
  }
  GW_RETURN_IF_ERROR(check_floating(call, x));
  int64_t channels = x->sizes[1];
  if (groups <= 0) return runtime_error("Expected num groups to be greater than 0, got ", groups);
  if (channels <= 0) {
    return runtime_error("Expected number of channels to be greater than 0, got ", channels);
  }
  if (channels % groups) {
    return runtime_error(
        "Expected number of channels in input to be divisible by num_groups, but got input of "
        "shape ",
        shape_text(x->sizes), " and num_groups=", groups);
  }
  for (int i : {1, 2}) {
    const Tensor& t = call.in(i);
    if (!t || (t->rank() == 1 && t->sizes[0] == channels)) continue;
    const char* name = i == 1 ? "weight" : "bias";
    return runtime_error("Expected ", name,
                         " to be a vector of size equal to the number of channels in input, but "
                         "got ",
                         name, " of shape ", shape_text(t->sizes), " and input of shape ",
                         shape_text(x->sizes));
  }
  return absl::OkStatus();
}

absl::Status infer_group_norm(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_group_norm(call));
  const Tensor& x = call.in(0);
  DType statistics = statistics_dtype(x->dtype);
  out->push_back({x->dtype, x->sizes, like_strides(x->sizes, x->strides)});
  out->push_back({statistics, {x->sizes[0], call.attr(0).as_int()}, {}});
  out->push_back({statistics, {x->sizes[0], call.attr(0).as_int()}, {}});
  return absl::OkStatus();
}

absl::Status infer_group_norm_backward(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(1);
  DType affine = call.in(2) ? call.in(2)->dtype : x->dtype;
  out->push_back({x->dtype, x->sizes, like_strides(x->sizes, x->strides)});
  out->push_back({affine, {x->sizes[1]}, {}});
  out->push_back({affine, {x->sizes[1]}, {}});
  return absl::OkStatus();
}

// The same gradients from rows with gradients of their own.
void backward_group_norm_again(Backward& b) {
  const TensorSpec& spec = b.input_spec(0);
  Tensor x = b.input(0), weight = b.input(1);
  int64_t groups = b.attr(0).as_int(), images = spec.sizes[0], channels = spec.sizes[1];
  int64_t plane = images && channels ? numel_of(spec.sizes) / (images * channels) : 0;
  Dims grouped{images, groups, channels / groups, plane};
  Tensor scale = weight ? reshape(weight, Dims{1, groups, channels / groups, 1}) : nullptr;
  NormGradients grads = norm_gradients(reshape(b.grad(0), grouped), reshape(x, grouped), scale,
                                       {2, 3}, b.attr(1).as_double());
  auto per = [&](const Tensor& t, int i) {
    return cast(reshape(sum(t, {0, 3}, false), Dims{channels}), b.input_spec(i).dtype);
  };
  if (b.needs(0)) b.set(0, cast(reshape(grads.dx, spec.sizes), spec.dtype));
  if (b.needs(1)) b.set(1, per(grads.dxhat_weight, 1));
  if (b.needs(2)) b.set(2, per(grads.g, 2));
}

void backward_group_norm(Backward& b) {
  static const OpRef op("group_norm_backward");
  if (Slot::current().grad_enabled) return backward_group_norm_again(b);
  Tensors grads = call_many(op, {b.grad(0), b.input(0), b.input(1), b.output(1), b.output(2)});
  for (int i = 0; i < 3 && i < static_cast<int>(grads.size()); ++i) {
    if (b.needs(i)) b.set(i, grads[i]);
  }
}

Tensors compose_group_norm(const Call& call) {
  static const OpRef op("group_norm_rows");
  const Tensor& x = call.in(0);
  absl::Status status = check_group_norm(call);
  if (!status.ok()) return {poisoned(status)};
  int64_t groups = call.attr(0).as_int(), per_row = x->sizes[0] * (x->sizes[1] / groups);
  for (int i = 2; i < x->rank(); ++i) per_row *= x->sizes[i];
  if (per_row == 1) {
    return {poisoned(value_error("Expected more than 1 value per channel when training, got input ",
                                 "size ", shape_text(x->sizes)))};
  }
  return {call_many(op, {x, call.in(1), call.in(2)}, {call.attr(0), call.attr(1)})[0]};
}

// --- instance norm: batch norm of [1, N * C, ...] ------------------------------------------------

Tensor repeated(const Tensor& t, int64_t times) {
  if (!t) return t;
  return reshape(expand(unsqueeze(t, 0), Dims{times, t->numel()}), Dims{times * t->numel()});
}

Tensors compose_instance_norm(const Call& call) {
  static const OpRef batch_norm("nn.functional.batch_norm"), mean_op("mean"), copy("copy_");
  const Tensor &x = call.in(0), &mean = call.in(1), &var = call.in(2);
  bool batch = call.attr(0).as_bool();
  int rank = x->rank();
  int64_t per_row = 1;
  for (int i = 2; i < rank; ++i) per_row *= x->sizes[i];
  if (batch && per_row == 1) {
    return {poisoned(value_error("Expected more than 1 spatial element when training, got input ",
                                 "size ", shape_text(x->sizes)))};
  }
  if (rank < 2)
    return {poisoned(value_error("expected at least 2D input (got ", rank, "D input)"))};
  if (!batch && (!mean || !var)) {
    return {poisoned(runtime_error("Expected running_mean and running_var to be defined when ",
                                   "use_input_stats is false"))};
  }
  int64_t images = x->sizes[0], channels = x->sizes[1];
  for (int i = 1; i < 5; ++i) {
    const Tensor& t = call.in(i);
    if (t && (t->rank() != 1 || t->numel() != channels)) {
      return {poisoned(runtime_error(call.op->signature.params[i].name, " should contain ",
                                     channels, " elements not ", t->numel()))};
    }
  }
  Dims rows = x->sizes;
  rows[0] = 1;
  rows[1] = images * channels;
  Tensor means = repeated(mean, images), vars = repeated(var, images);
  if (batch && mean) means = contiguous(means);
  Tensor y = gradwire::call(
      batch_norm,
      {reshape(x, rows), means, vars, repeated(call.in(3), images), repeated(call.in(4), images)},
      {batch, call.attr(1), call.attr(2)});
  if (y->poison) return {y};
  if (batch && x->numel()) {
    GradMode off(false);
    for (auto [running, updated] : {std::pair{mean, means}, std::pair{var, vars}}) {
      if (!running) continue;
      Tensor merged =
          gradwire::call(mean_op, {reshape(updated, Dims{images, channels})}, {IntList{0}, false});
      call_in_place(copy, {running, merged});
    }
  }
  return {reshape(y, x->sizes)};
}

// --- rms norm ------------------------------------------------------------------------------------

Tensors compose_rms_norm(const Call& call) {
  static const OpRef mean("mean"), rsqrt("rsqrt"), square("square"), add_op("add");
  const Tensor &x = call.in(0), &weight = call.in(1);
  const IntList& shape = call.attr(0).as_ints();
  int dims = static_cast<int>(shape.size());
  if (dims == 0) {
    return {poisoned(runtime_error(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
        "element, but got normalized_shape = []"))};
  }
  if (weight &&
      (weight->rank() != dims || !std::equal(shape.begin(), shape.end(), weight->sizes.begin()))) {
    return {poisoned(runtime_error("Expected weight to be of same shape as normalized_shape, but ",
                                   "got weight of shape ", shape_text(weight->sizes),
                                   " and normalized_shape = ", shape_text(shape)))};
  }
  if (dims > x->rank() || !std::equal(shape.begin(), shape.end(), x->sizes.end() - dims)) {
    return {poisoned(runtime_error("Given normalized_shape=", shape_text(shape),
                                   ", expected input with shape [*, ", shape_text(shape).substr(1),
                                   ", but got input of size", shape_text(x->sizes)))};
  }
  absl::Status status = check_floating(call, x);
  if (!status.ok()) return {poisoned(status)};
  DType dtype = statistics_dtype(x->dtype);
  double eps = dtype == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                        : std::numeric_limits<float>::epsilon();
  if (!call.attr(1).none()) eps = call.attr(1).as_double();
  IntList over;
  for (int i = 0; i < dims; ++i) over.push_back(x->rank() - dims + i);
  Tensor wide = cast(x, dtype);
  Tensor power = gradwire::call(mean, {gradwire::call(square, {wide})}, {over, true});
  Tensor scale = gradwire::call(rsqrt, {with_number(add_op, power, eps, 1)});
  Tensor y = mul(wide, scale);
  if (weight) y = mul(y, weight);
  return {cast(y, x->dtype)};
}

}  // namespace

void add_norm_group_rows(Catalog& c) {
  auto& rows = c.add(666, OpKind::kKernel,
                     "group_norm_rows(Tensor input, Tensor? weight, Tensor? bias, int num_groups, "
                     "float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
                     "Normalises every group of channels of every image.");
  rows.kernel = "group_norm";
  rows.infer = infer_group_norm;
  rows.backward = backward_group_norm;
  rows.saves_inputs = save(0) | save(1);
  rows.saves_outputs = save(1) | save(2);
  auto& back = c.add(667, OpKind::kKernel,
                     "group_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, "
                     "Tensor rstd) -> (Tensor dinput, Tensor dweight, Tensor dbias)",
                     "The gradients of group_norm_rows.");
  back.infer = infer_group_norm_backward;
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.shape_rule = r.type_rule = "same";
  };
  composite(668,
            "nn.functional.group_norm(Tensor input, int num_groups, Tensor? weight=None, "
            "Tensor? bias=None, float eps=1e-05) -> Tensor",
            "Normalises [N, C, ...] over each of num_groups groups of channels, then weight and "
            "bias [C].",
            compose_group_norm);
  composite(669,
            "nn.functional.instance_norm(Tensor input, Tensor? running_mean=None, "
            "Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, "
            "bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
            "Normalises each channel of each image of [N, C, ...] by its own statistics, or by "
            "running ones.",
            compose_instance_norm);
  composite(670,
            "nn.functional.rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
            "float? eps=None) -> Tensor",
            "input / sqrt(mean(input**2) + eps) * weight over the last dimensions; eps defaults to "
            "the computing dtype's epsilon.",
            compose_rms_norm);
  c.keep_internal({"group_norm_rows", "group_norm_backward"});
}

}  // namespace gradwire
