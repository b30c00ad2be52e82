// Rows 640 to 659 and 1150 to 1155: pooling.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/ops/call.h"
#include "engine/ops/spatial.h"

namespace gradwire {
namespace {

struct Windows {
  IntList kernel, stride, padding, dilation;
};

// Output sizes of windows over the last `spatial` dims, torch's ceil_mode rule included.
absl::StatusOr<Dims> pooled_sizes(const Call& call, const Dims& x, const Windows& w,
                                  bool ceil_mode) {
  Dims out(x.begin(), x.end());
  int spatial = static_cast<int>(w.kernel.size());
  int lead = static_cast<int>(x.size()) - spatial;
  for (int i = 1; i < static_cast<int>(x.size()); ++i) {
    if (x[i] == 0) {
      return runtime_error("[", call.op->name, "] Expected ", spatial + 1, "D or ", spatial + 2,
                           "D (batch mode) tensor with optional 0 dim batch size for input, but "
                           "got: ",
                           shape_text(x));
    }
  }
  for (int i = 0; i < spatial; ++i) {
    int64_t k = w.kernel[i], s = w.stride[i], p = w.padding[i], d = w.dilation[i];
    if (k <= 0) return runtime_error("kernel size should be greater than zero, but got ", k);
    if (s <= 0) return runtime_error("stride should not be zero");
    if (s > (int64_t{1} << 40))
      return runtime_error("[", call.op->name, "] the stride is too large");
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

// With a batch dimension when the input has none; `wanted` outputs.
Tensors max_pool_nd(const Call& call, int spatial, size_t wanted) {
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
  out.resize(wanted);
  if (out[0]->poison) return out;
  if (single) {
    for (Tensor& t : out) t = squeeze(t, 0);
  }
  return out;
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

absl::StatusOr<Dims> adaptive_sizes(const Call& call) {
  const Tensor& x = call.in(0);
  if (x->rank() < 3 || x->rank() > 5) {
    return runtime_error("[", call.op->name, "] expected an input of 3 to 5 dims, got ", x->text());
  }
  auto given = spread(call.attr(0), x->rank() - 2, "output_size");
  if (!given.ok()) return given.status();
  Dims sizes{x->sizes[0], x->sizes[1]};
  for (size_t i = 0; i < given->size(); ++i) {
    if ((*given)[i] < 0) {
      return runtime_error("[", call.op->name,
                           "] elements of output_size must be greater than or equal to 0, got ",
                           (*given)[i]);
    }
    if (x->sizes[i + 2] == 0) {
      return runtime_error("[", call.op->name,
                           "] Expected input to have non-zero size for non-batch dimensions, but "
                           "input has sizes ",
                           shape_text(x->sizes));
    }
    sizes.push_back((*given)[i]);
  }
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  return sizes;
}

absl::Status infer_adaptive(const Call& call, TensorSpecs* out) {
  auto sizes = adaptive_sizes(call);
  if (!sizes.ok()) return sizes.status();
  out->push_back({call.in(0)->dtype, *sizes, {}});
  return absl::OkStatus();
}

absl::Status infer_adaptive_max(const Call& call, TensorSpecs* out) {
  absl::Status status = infer_adaptive(call, out);
  if (status.ok()) out->push_back({DType::kInt64, out->front().sizes, {}});
  return status;
}

absl::Status lower_adaptive(const Call&, Task* task) {
  task->attributes.clear();
  return absl::OkStatus();
}

Tensors adaptive_nd(const Call& call, const OpRef& op, int spatial, size_t wanted) {
  Tensor x = call.in(0);
  bool single = x->rank() == spatial + 1;
  if (x->rank() <= spatial) {
    return {poisoned(
        value_error("Input dimension should be at least ", spatial + 1, ", got ", x->text()))};
  }
  if (x->rank() > spatial + 2) {
    return {poisoned(runtime_error("[", call.op->name, "] Expected ", spatial + 1, "D or ",
                                   spatial + 2, "D tensor, but got ", x->text()))};
  }
  Tensors out = call_many(op, {single ? unsqueeze(x, 0) : x}, {call.attr(0)});
  out.resize(wanted);
  if (single) {
    for (Tensor& t : out) t = squeeze(t, 0);
  }
  return out;
}

template <int kSpatial>
Tensors compose_adaptive_avg(const Call& call) {
  static const OpRef op("adaptive_avg_pool");
  return adaptive_nd(call, op, kSpatial, 1);
}

// An error stands for every output.
Tensors filled(Tensors out, size_t wanted) {
  out.resize(wanted, Tensor(out[0]));
  return out;
}

template <int kSpatial, int kWanted>
Tensors compose_adaptive_max(const Call& call) {
  static const OpRef op("adaptive_max_pool");
  return filled(adaptive_nd(call, op, kSpatial, kWanted), kWanted);
}

template <int kSpatial, int kWanted>
Tensors compose_max_pool(const Call& call) {
  return filled(max_pool_nd(call, kSpatial, kWanted), kWanted);
}

template <int kSpatial>
Tensors compose_avg_pool(const Call& call) {
  return avg_pool_nd(call, kSpatial);
}

}  // namespace

void add_pool_rows(Catalog& c) {
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
  kernel(640,
         "max_pool(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=[0], "
         "int[] dilation=[1], bool ceil_mode=False) -> (Tensor output, Tensor indices)",
         "The largest of each window, and its place in the plane.", infer_max_pool, lower_max_pool,
         backward_max_pool, 0, save(1));
  kernel(641, "max_pool_backward(Tensor grad, Tensor indices, int[] sizes) -> Tensor",
         "The gradient of max_pool's input.", infer_like_attribute, lower_drop_last,
         backward_max_pool_backward, save(1), 0);
  // Max pools by dimensions: rows with the values alone, and with their indices.
  struct Numbers {
    uint16_t max, indices, adaptive, adaptive_indices;
    ComposeFn max_fn, indices_fn, adaptive_fn, adaptive_indices_fn;
  };
  const Numbers by_dims[] = {
      {643, 656, 1150, 1153, compose_max_pool<1, 1>, compose_max_pool<1, 2>,
       compose_adaptive_max<1, 1>, compose_adaptive_max<1, 2>},
      {642, 657, 1151, 1154, compose_max_pool<2, 1>, compose_max_pool<2, 2>,
       compose_adaptive_max<2, 1>, compose_adaptive_max<2, 2>},
      {650, 658, 1152, 1155, compose_max_pool<3, 1>, compose_max_pool<3, 2>,
       compose_adaptive_max<3, 1>, compose_adaptive_max<3, 2>},
  };
  for (int i = 0; i < 3; ++i) {
    const Numbers& n = by_dims[i];
    std::string d = absl::StrCat(i + 1, "d"), plane = i == 0 ? "L" : i == 1 ? "H, W" : "D, H, W";
    std::string window =
        "(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=[0], "
        "int[] dilation=[1], bool ceil_mode=False) -> ";
    std::string both = "(Tensor output, Tensor indices)";
    composite(n.max, absl::StrCat("nn.functional.max_pool", d, window, "Tensor"),
              absl::StrCat("The largest of each window of [N, C, ", plane, "]."), n.max_fn, "pool",
              "same");
    composite(n.indices, absl::StrCat("nn.functional.max_pool", d, "_with_indices", window, both),
              absl::StrCat("max_pool", d, ", and where in its plane each value was."), n.indices_fn,
              "", "same");
    std::string sizes = "(Tensor input, int[] output_size) -> ";
    composite(n.adaptive, absl::StrCat("nn.functional.adaptive_max_pool", d, sizes, "Tensor"),
              "The largest of windows that give output_size.", n.adaptive_fn, "", "same");
    composite(n.adaptive_indices,
              absl::StrCat("nn.functional.adaptive_max_pool", d, "_with_indices", sizes, both),
              absl::StrCat("adaptive_max_pool", d, ", and where in its plane each value was."),
              n.adaptive_indices_fn, "", "same");
  }
  kernel(655,
         "adaptive_max_pool(Tensor input, int[] output_size) -> (Tensor output, Tensor indices)",
         "The largest of windows that give output_size, and its place in the plane.",
         infer_adaptive_max, lower_adaptive, backward_max_pool, 0, save(1));
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
  composite(651,
            "nn.functional.avg_pool1d(Tensor input, int[] kernel_size, int[]? stride=None, "
            "int[] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
            "The mean of each window of [N, C, L].", compose_avg_pool<1>, "pool", "same");
  composite(646,
            "nn.functional.avg_pool2d(Tensor input, int[] kernel_size, int[]? stride=None, "
            "int[] padding=[0], bool ceil_mode=False, bool count_include_pad=True, "
            "int? divisor_override=None) -> Tensor",
            "The mean of each window of [N, C, H, W].", compose_avg_pool<2>, "pool", "same");
  composite(652,
            "nn.functional.avg_pool3d(Tensor input, int[] kernel_size, int[]? stride=None, "
            "int[] padding=[0], bool ceil_mode=False, bool count_include_pad=True, "
            "int? divisor_override=None) -> Tensor",
            "The mean of each window of [N, C, D, H, W].", compose_avg_pool<3>, "pool", "same");
  kernel(
      647, "adaptive_avg_pool(Tensor input, int[] output_size) -> Tensor",
      "Means over windows that give output_size.", infer_adaptive, lower_adaptive,
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
  composite(653, "nn.functional.adaptive_avg_pool1d(Tensor input, int[] output_size) -> Tensor",
            "Means over windows of [N, C, L] that give output_size.", compose_adaptive_avg<1>, "",
            "same");
  composite(649, "nn.functional.adaptive_avg_pool2d(Tensor input, int[] output_size) -> Tensor",
            "Means over windows of [N, C, H, W] that give output_size.", compose_adaptive_avg<2>,
            "", "same");
  composite(654, "nn.functional.adaptive_avg_pool3d(Tensor input, int[] output_size) -> Tensor",
            "Means over windows of [N, C, D, H, W] that give output_size.", compose_adaptive_avg<3>,
            "", "same");
  c.keep_internal({"max_pool_backward", "avg_pool_backward", "adaptive_avg_pool_backward"});
}

}  // namespace gradwire
