// Rows 640 to 659: pooling.
#include <algorithm>

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
  c.keep_internal({"max_pool_backward", "avg_pool_backward", "adaptive_avg_pool_backward"});
}

}  // namespace gradwire
