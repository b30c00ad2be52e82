// Rows 1166 to 1171: interpolation.
#include <cmath>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

// resample and resample_backward: attributes mode, align_corners, antialias, scales, sizes.
absl::Status infer_resample(const Call& call, TensorSpecs* out) {
  const IntList& sizes = call.attr(4).as_ints();
  out->push_back({call.in(0)->dtype, Dims(sizes.begin(), sizes.end()), {}});
  return absl::OkStatus();
}

absl::Status lower_resample(const Call&, Task* task) {
  task->attributes.pop_back();
  return absl::OkStatus();
}

void backward_by(Backward& b, const OpRef& op) {
  const Dims& sizes = b.input_spec(0).sizes;
  b.set(0, call(op, {b.grad()},
                {b.attr(0), b.attr(1), b.attr(2), b.attr(3), IntList(sizes.begin(), sizes.end())}));
}

struct Mode {
  const char* name;
  int64_t number;
  int rank;  // of the input; 0: any
};
constexpr Mode kModes[] = {{"nearest", 0, 0},  {"nearest-exact", 1, 0}, {"linear", 2, 3},
                           {"bilinear", 2, 4}, {"trilinear", 2, 5},     {"bicubic", 3, 4},
                           {"area", -1, 0}};

// The last sizes of the result, and the factors where those decide the places.
struct Target {
  IntList sizes;
  FloatList scales;
};

absl::StatusOr<Target> target_of(const Tensor& x, const Attribute& size, const Attribute& factor,
                                 bool recompute) {
  Target t;
  auto spatial = static_cast<size_t>(x->rank() - 2);
  if (size.none() == factor.none()) {
    return value_error(size.none() ? "either size or scale_factor should be defined"
                                   : "only one of size or scale_factor should be defined");
  }
  if (!size.none()) {
    t.sizes = size.as_ints();
    if (t.sizes.size() == 1) t.sizes.assign(spatial, t.sizes[0]);
    if (t.sizes.size() != spatial) {
      return value_error(
          "Input and output must have the same number of spatial dimensions, but "
          "got input with spatial dimensions of ",
          spatial, " and output size of ", t.sizes.size(), " entries");
    }
    if (recompute) {
      return value_error("recompute_scale_factor is not meaningful with an explicit size.");
    }
  } else {
    FloatList factors = factor.as_floats();
    if (factors.size() == 1) factors.assign(spatial, factors[0]);
    if (factors.size() != spatial) {
      return value_error(
          "Input and scale_factor must have the same number of spatial dimensions, "
          "but got input with spatial dimensions of ",
          spatial, " and scale_factor of ", factors.size(), " entries");
    }
    for (size_t d = 0; d < spatial; ++d) {
      double n = std::floor(static_cast<double>(x->sizes[d + 2]) * factors[d]);
      if (!(n >= 1 && n < 1e12)) {
        return runtime_error("Input and output sizes should be greater than 0, but got input ",
                             shape_text(x->sizes), " and scale_factor ", factors[d]);
      }
      t.sizes.push_back(static_cast<int64_t>(n));
    }
    if (!recompute) t.scales = factors;
  }
  for (size_t d = 0; d < spatial; ++d) {
    if (t.sizes[d] <= 0 || x->sizes[d + 2] == 0) {
      return runtime_error("Input and output sizes should be greater than 0, but got input ",
                           shape_text(x->sizes), " and output size ", t.sizes[d], " in dimension ",
                           d + 2);
    }
  }
  return t;
}

Tensors interpolate(const Call& call, const std::string& name, const Attribute& align,
                    bool recompute, bool antialias) {
  static const OpRef op("resample"), area("adaptive_avg_pool");
  const Tensor& x = call.in(0);
  const Mode* mode = nullptr;
  for (const Mode& m : kModes) {
    if (name == m.name) mode = &m;
  }
  if (!mode || x->rank() < 3 || x->rank() > 5 || (mode->rank && mode->rank != x->rank())) {
    return {poisoned(not_implemented_error(
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", x->rank(),
        "D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | "
        "nearest-exact (got ",
        name, ")"))};
  }
  if (!align.none() && mode->number < 2) {
    return {poisoned(value_error(
        "align_corners option can only be set with the interpolating modes: linear | bilinear | "
        "bicubic | trilinear"))};
  }
  if (antialias && !(x->rank() == 4 && mode->number >= 2)) {
    return {poisoned(value_error(
        "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor "
        "as input"))};
  }
  auto target = target_of(x, call.attr(0), call.attr(1), recompute);
  if (!target.ok()) return {poisoned(target.status())};
  bool bytes = x->dtype == DType::kUInt8 && (mode->number < 2 || x->rank() == 4);
  if (!is_floating(x->dtype) && (mode->number < 0 || !bytes)) {
    return {
        poisoned(not_implemented_error("\"interpolate\" in mode ", name, " not implemented for '",
                                       std::string(dtype_name(x->dtype)), "'"))};
  }
  Dims sizes{x->sizes[0], x->sizes[1]};
  for (int64_t n : target->sizes) sizes.push_back(n);
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return {poisoned(numel.status())};
  if (mode->number < 0) return {gradwire::call(area, {x}, {target->sizes})};
  return {gradwire::call(op, {x},
                         {mode->number, align.as_bool(), antialias, target->scales,
                          IntList(sizes.begin(), sizes.end())})};
}

}  // namespace

void add_resample_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    BackwardFn backward) {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer_resample;
    r.lower = lower_resample;
    r.backward = backward;
  };
  kernel(1166,
         "resample(Tensor input, int mode, bool align_corners, bool antialias, float[] scales, "
         "int[] sizes) -> Tensor",
         "Images of other sizes, each element a weighted sum along every axis.", [](Backward& b) {
           static const OpRef op("resample_backward");
           backward_by(b, op);
         });
  kernel(1167,
         "resample_backward(Tensor grad, int mode, bool align_corners, bool antialias, "
         "float[] scales, int[] sizes) -> Tensor",
         "The gradient of resample's input.", [](Backward& b) {
           static const OpRef op("resample");
           backward_by(b, op);
         });
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = "same";
  };
  composite(1168,
            "nn.functional.interpolate(Tensor input, int[]? size=None, "
            "float[]? scale_factor=None, str mode='nearest', bool? align_corners=None, "
            "bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
            "Images [N, C, ...] of 1 to 3 dimensions resampled to size, or to floor(size * "
            "scale_factor), by nearest, nearest-exact, linear, bilinear, trilinear, bicubic or "
            "area.",
            [](const Call& call) {
              return interpolate(call, call.attr(2).as_string(), call.attr(3),
                                 call.attr(4).as_bool(), call.attr(5).as_bool());
            });
  composite(1169,
            "nn.functional.upsample(Tensor input, int[]? size=None, float[]? scale_factor=None, "
            "str mode='nearest', bool? align_corners=None) -> Tensor",
            "interpolate by its old name.", [](const Call& call) {
              return interpolate(call, call.attr(2).as_string(), call.attr(3), false, false);
            });
  composite(1170,
            "nn.functional.upsample_nearest(Tensor input, int[]? size=None, "
            "float[]? scale_factor=None) -> Tensor",
            "interpolate by the nearest element.",
            [](const Call& call) { return interpolate(call, "nearest", {}, false, false); });
  composite(1171,
            "nn.functional.upsample_bilinear(Tensor input, int[]? size=None, "
            "float[]? scale_factor=None) -> Tensor",
            "interpolate bilinearly with aligned corners.",
            [](const Call& call) { return interpolate(call, "bilinear", true, false, false); });
  c.keep_internal({"resample", "resample_backward"});
}

}  // namespace gradwire
