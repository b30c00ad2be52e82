// Rows 1178 to 1185: windows as columns, shuffles of channels and pixels, response norm.
#include <algorithm>

#include "engine/ops/call.h"
#include "engine/ops/spatial.h"

namespace gradwire {
namespace {

// im2col and col2im: attributes kernel, dilation, padding, stride, windows, sizes.
absl::Status infer_columns(const Call& call, TensorSpecs* out) {
  const IntList& sizes = call.attr(5).as_ints();
  out->push_back({call.in(0)->dtype, Dims(sizes.begin(), sizes.end()), {}});
  return absl::OkStatus();
}

absl::Status lower_columns(const Call&, Task* task) {
  task->attributes.pop_back();
  return absl::OkStatus();
}

void backward_by(Backward& b, const OpRef& op) {
  const Dims& sizes = b.input_spec(0).sizes;
  AttributeList a = b.node.attributes;
  a.back() = IntList(sizes.begin(), sizes.end());
  b.set(0, call(op, {b.grad()}, std::move(a)));
}

struct Windows {
  IntList kernel, dilation, padding, stride, count;
};

// Over images of the two sizes; call attributes from `first` on: kernel, dilation, padding, stride.
absl::StatusOr<Windows> windows_of(const Call& call, int first, const IntList& image) {
  Windows w;
  IntList* lists[] = {&w.kernel, &w.dilation, &w.padding, &w.stride};
  const char* names[] = {"kernel_size", "dilation", "padding", "stride"};
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int i = 0; i < 4; ++i) {
    auto list = spread(call.attr(first + i), 2, names[i]);
    if (!list.ok()) return list.status();
    *lists[i] = *list;
    for (int64_t n : *list) {
      if (n < (i == 2 ? 0 : 1) || n > kMost) {
        return runtime_error(names[i], " should be ", i == 2 ? "non-negative" : "greater than zero",
                             ", but got ", names[i], ": ", n);
      }
    }
  }
  for (size_t d = 0; d < 2; ++d) {
    int64_t room = image[d] + 2 * w.padding[d] - w.dilation[d] * (w.kernel[d] - 1) - 1;
    if (image[d] > kMost || room < 0) {
      return runtime_error(
          "Given input with spatial size (", image[0], ", ", image[1], "), kernel_size=(",
          w.kernel[0], ", ", w.kernel[1], "), dilation=(", w.dilation[0], ", ", w.dilation[1],
          "), padding=(", w.padding[0], ", ", w.padding[1],
          "), calculated shape of the array of sliding blocks is too small (", call.op->name, ")");
    }
    w.count.push_back(room / w.stride[d] + 1);
  }
  return w;
}

Tensors compose_unfold(const Call& call) {
  static const OpRef op("im2col");
  Tensor x = call.in(0);
  bool single = x->rank() == 3;
  if (x->rank() != 4 && !single) {
    return {
        poisoned(runtime_error("Expected 3D or 4D (batch mode) tensor with possibly 0 batch "
                               "size and other non-zero dimensions for input, but got: ",
                               shape_text(x->sizes)))};
  }
  if (single) x = unsqueeze(x, 0);
  if (x->poison) return {x};
  auto w = windows_of(call, 0, {x->sizes[2], x->sizes[3]});
  if (!w.ok()) return {poisoned(w.status())};
  if (x->sizes[1] == 0 || x->sizes[2] == 0 || x->sizes[3] == 0) {
    return {
        poisoned(runtime_error("Expected 3D or 4D (batch mode) tensor with possibly 0 batch "
                               "size and other non-zero dimensions for input, but got: ",
                               shape_text(x->sizes)))};
  }
  auto rows = checked_numel(Dims{x->sizes[1], w->kernel[0], w->kernel[1]});
  auto columns = checked_numel(w->count.empty() ? Dims{} : Dims{w->count[0], w->count[1]});
  if (!rows.ok()) return {poisoned(rows.status())};
  if (!columns.ok()) return {poisoned(columns.status())};
  Dims sizes{x->sizes[0], *rows, *columns};
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return {poisoned(numel.status())};
  Tensor out = gradwire::call(op, {x},
                              {w->kernel, w->dilation, w->padding, w->stride, w->count,
                               IntList(sizes.begin(), sizes.end())});
  return {single ? squeeze(out, 0) : out};
}

Tensors compose_fold(const Call& call) {
  static const OpRef op("col2im");
  Tensor x = call.in(0);
  bool single = x->rank() == 2;
  if (x->rank() != 3 && !single) {
    return {
        poisoned(runtime_error("Expected 2D or 3D (batch mode) tensor for input with possibly "
                               "0 batch size and non-zero dimensions for input, but got: ",
                               shape_text(x->sizes)))};
  }
  if (single) x = unsqueeze(x, 0);
  if (x->poison) return {x};
  auto image = spread(call.attr(0), 2, "output_size");
  if (!image.ok()) return {poisoned(image.status())};
  if ((*image)[0] < 1 || (*image)[1] < 1) {
    return {
        poisoned(runtime_error("Expected output spatial size to be positive, but got: "
                               "output_size=(",
                               (*image)[0], ", ", (*image)[1], ")"))};
  }
  auto w = windows_of(call, 1, *image);
  if (!w.ok()) return {poisoned(w.status())};
  auto window = checked_numel(Dims{w->kernel[0], w->kernel[1]});
  auto columns = checked_numel(Dims{w->count[0], w->count[1]});
  if (!window.ok() || !columns.ok() || x->sizes[1] == 0 || x->sizes[1] % *window) {
    return {poisoned(runtime_error(
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
        "got input.size(1)=",
        x->sizes[1], " and kernel_size=(", w->kernel[0], ", ", w->kernel[1], ")"))};
  }
  if (x->sizes[2] != *columns) {
    return {poisoned(runtime_error("Given output_size=(", (*image)[0], ", ", (*image)[1],
                                   "), expected size of input's "
                                   "dimension 2 to match the calculated number of sliding blocks ",
                                   w->count[0], " * ", w->count[1], " = ", *columns,
                                   ", but got input.size(2)=", x->sizes[2], "."))};
  }
  if (!is_floating(x->dtype)) {
    return {poisoned(not_implemented_error("\"col2im\" not implemented for '",
                                           std::string(dtype_name(x->dtype)), "'"))};
  }
  Dims sizes{x->sizes[0], x->sizes[1] / *window, (*image)[0], (*image)[1]};
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return {poisoned(numel.status())};
  Tensor out = gradwire::call(op, {x},
                              {w->kernel, w->dilation, w->padding, w->stride, w->count,
                               IntList(sizes.begin(), sizes.end())});
  return {single ? squeeze(out, 0) : out};
}

// The leading dims, then `rest`.
Dims with_lead(const Tensor& x, int trailing, std::initializer_list<int64_t> rest) {
  Dims sizes(x->sizes.begin(), x->sizes.end() - trailing);
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return sizes;
}

Tensor permute_last(const Tensor& x, int lead, std::initializer_list<int64_t> order) {
  IntList dims;
  for (int d = 0; d < lead; ++d) dims.push_back(d);
  for (int64_t d : order) dims.push_back(lead + d);
  return permute(x, dims);
}

Tensors compose_pixel_shuffle(const Call& call) {
  const Tensor& x = call.in(0);
  int64_t r = call.attr(0).as_int();
  if (x->rank() < 3) {
    return {
        poisoned(runtime_error("pixel_shuffle expects input to have at least 3 dimensions, "
                               "but got input with ",
                               x->rank(), " dimension(s)"))};
  }
  if (r <= 0 || r > (int64_t{1} << 30)) {
    return {
        poisoned(runtime_error("pixel_shuffle expects a positive upscale_factor, but got ", r))};
  }
  int lead = x->rank() - 3;
  int64_t c = x->sizes[lead], h = x->sizes[lead + 1], w = x->sizes[lead + 2];
  if (c % (r * r)) {
    return {poisoned(runtime_error(
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=",
        c, " is not divisible by ", r * r))};
  }
  c /= r * r;
  Tensor apart = reshape(x, with_lead(x, 3, {c, r, r, h, w}));
  return {reshape(permute_last(apart, lead, {0, 3, 1, 4, 2}), with_lead(x, 3, {c, h * r, w * r}))};
}

Tensors compose_pixel_unshuffle(const Call& call) {
  const Tensor& x = call.in(0);
  int64_t r = call.attr(0).as_int();
  if (x->rank() < 3) {
    return {
        poisoned(runtime_error("pixel_unshuffle expects input to have at least 3 dimensions, "
                               "but got input with ",
                               x->rank(), " dimension(s)"))};
  }
  if (r <= 0 || r > (int64_t{1} << 30)) {
    return {poisoned(
        runtime_error("pixel_unshuffle expects a positive downscale_factor, but got ", r))};
  }
  int lead = x->rank() - 3;
  int64_t c = x->sizes[lead], h = x->sizes[lead + 1], w = x->sizes[lead + 2];
  if (h % r || w % r) {
    return {poisoned(runtime_error(
        "pixel_unshuffle expects height and width to be divisible by downscale_factor, but "
        "input.size(-2)=",
        h, " and input.size(-1)=", w, " are not both divisible by ", r))};
  }
  Tensor apart = reshape(x, with_lead(x, 3, {c, h / r, r, w / r, r}));
  return {reshape(permute_last(apart, lead, {0, 2, 4, 1, 3}),
                  with_lead(x, 3, {c * r * r, h / r, w / r}))};
}

Tensors compose_channel_shuffle(const Call& call) {
  const Tensor& x = call.in(0);
  int64_t groups = call.attr(0).as_int();
  if (x->rank() <= 2) {
    return {
        poisoned(runtime_error("channel_shuffle expects input with > 2 dims, but got input "
                               "with sizes ",
                               shape_text(x->sizes)))};
  }
  int64_t c = x->sizes[1];
  if (groups <= 0) {
    return {poisoned(runtime_error(
        "Number of groups to divide channels in must be positive. Value of groups:", groups))};
  }
  if (c % groups) {
    return {poisoned(runtime_error("Number of channels must be divisible by groups. Got ", c,
                                   " channels and ", groups, " groups."))};
  }
  Dims apart{x->sizes[0], groups, c / groups};
  apart.insert(apart.end(), x->sizes.begin() + 2, x->sizes.end());
  return {reshape(transpose(reshape(x, apart), 1, 2), x->sizes)};
}

// input / (k + alpha * mean of squares over `size` neighbouring channels) ** beta
Tensors compose_response_norm(const Call& call) {
  static const OpRef pad("nn.functional.pad"), average("avg_pool"), pow("pow");
  const Tensor& x = call.in(0);
  int64_t size = call.attr(0).as_int();
  if (x->rank() < 3) {
    return {poisoned(value_error("Expected 3D or higher dimensionality input (got ", x->rank(),
                                 " dimensions)"))};
  }
  if (numel_of(x->sizes) == 0) return {x};
  if (size <= 0 || size > (int64_t{1} << 30)) {
    return {poisoned(runtime_error("[local_response_norm] size must be positive, got ", size))};
  }
  int64_t rest = numel_of(x->sizes) / (x->sizes[0] * x->sizes[1]);
  Tensor squares = reshape(mul(x, x), Dims{x->sizes[0], 1, x->sizes[1], rest});
  squares = gradwire::call(pad, {squares}, {IntList{0, 0, size / 2, (size - 1) / 2}});
  Tensor mean = gradwire::call(average, {squares}, {IntList{size, 1}, IntList{1}});
  mean = mul(reshape(mean, x->sizes), call.attr(1).as_double());
  static const OpRef plus("add");
  mean = with_number(plus, mean, call.attr(3).as_double(), 1);
  return {div(x, with_number(pow, mean, call.attr(2).as_double()))};
}

}  // namespace

void add_rearrange_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    BackwardFn backward) {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer_columns;
    r.lower = lower_columns;
    r.backward = backward;
  };
  kernel(1178,
         "im2col(Tensor input, int[] kernel, int[] dilation, int[] padding, int[] stride, "
         "int[] windows, int[] sizes) -> Tensor",
         "The windows of [N, C, H, W] as columns.", [](Backward& b) {
           static const OpRef op("col2im");
           backward_by(b, op);
         });
  kernel(1179,
         "col2im(Tensor input, int[] kernel, int[] dilation, int[] padding, int[] stride, "
         "int[] windows, int[] sizes) -> Tensor",
         "Columns added up to [N, C, H, W].", [](Backward& b) {
           static const OpRef op("im2col");
           backward_by(b, op);
         });
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view type) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(type);
  };
  composite(1180,
            "nn.functional.unfold(Tensor input, int[] kernel_size, int[] dilation=[1], "
            "int[] padding=[0], int[] stride=[1]) -> Tensor",
            "The windows of [N, C, H, W] as columns [N, C * kH * kW, L].", compose_unfold, "same");
  composite(1181,
            "nn.functional.fold(Tensor input, int[] output_size, int[] kernel_size, "
            "int[] dilation=[1], int[] padding=[0], int[] stride=[1]) -> Tensor",
            "Columns [N, C * kH * kW, L] added up to [N, C, H, W] of output_size.", compose_fold,
            "same");
  composite(1182, "nn.functional.pixel_shuffle(Tensor input, int upscale_factor) -> Tensor",
            "[..., C * r * r, H, W] as [..., C, H * r, W * r].", compose_pixel_shuffle, "same");
  composite(1183, "nn.functional.pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor",
            "[..., C, H * r, W * r] as [..., C * r * r, H, W].", compose_pixel_unshuffle, "same");
  composite(1184, "nn.functional.channel_shuffle(Tensor input, int groups) -> Tensor",
            "Channels of [N, C, ...] dealt out by groups.", compose_channel_shuffle, "same");
  composite(1185,
            "nn.functional.local_response_norm(Tensor input, int size, float alpha=0.0001, "
            "float beta=0.75, float k=1.0) -> Tensor",
            "input / (k + alpha * mean of squares of size neighbouring channels) ** beta.",
            compose_response_norm, "");
  c.keep_internal({"im2col", "col2im"});
}

}  // namespace gradwire
