// Rows 1172 to 1177: sampling images at points of a grid.
#include "engine/ops/call.h"

namespace gradwire {
namespace {

// input [N, C, ...], grid [N, ..., S]; attributes mode, padding, align_corners.
absl::Status infer_grid_sampler(const Call& call, TensorSpecs* out) {
  const Tensor &x = call.in(0), &grid = call.in(1);
  Dims sizes{x->sizes[0], x->sizes[1]};
  for (int d = 1; d + 1 < grid->rank(); ++d) sizes.push_back(grid->sizes[d]);
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  out->push_back({x->dtype, sizes, {}});
  return absl::OkStatus();
}

absl::Status infer_grid_backward(const Call& call, TensorSpecs* out) {
  out->push_back({call.in(1)->dtype, call.in(1)->sizes, {}});
  out->push_back({call.in(2)->dtype, call.in(2)->sizes, {}});
  return absl::OkStatus();
}

void backward_grid_sampler(Backward& b) {
  static const OpRef op("grid_sampler_backward");
  Tensors grads =
      call_many(op, {b.grad(), b.input(0), b.input(1)}, {b.attr(0), b.attr(1), b.attr(2)});
  for (int i = 0; i < 2; ++i) {
    if (b.needs(i)) b.set(i, grads[i]);
  }
}

absl::Status check_sampling(const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding) {
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) {
    return runtime_error("grid_sampler(): expected interpolation and padding modes of 0 to 2, got ",
                         mode, " and ", padding);
  }
  if (x->dtype != grid->dtype) {
    return runtime_error(
        "grid_sampler(): expected input and grid to have same dtype, but input has ", x->text(),
        " and grid has ", grid->text());
  }
  if (!is_floating(x->dtype)) {
    return not_implemented_error("\"grid_sampler\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  if (x->rank() < 4 || x->rank() > 5 || grid->rank() != x->rank()) {
    return runtime_error(
        "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got "
        "input with sizes ",
        shape_text(x->sizes), " and grid with sizes ", shape_text(grid->sizes));
  }
  if (x->sizes[0] != grid->sizes[0]) {
    return runtime_error(
        "grid_sampler(): expected grid and input to have same batch size, but got input with "
        "sizes ",
        shape_text(x->sizes), " and grid with sizes ", shape_text(grid->sizes));
  }
  if (grid->sizes.back() != x->rank() - 2) {
    return runtime_error("grid_sampler(): expected grid to have size ", x->rank() - 2,
                         " in last dimension, but got grid with sizes ", shape_text(grid->sizes));
  }
  for (int d = 2; d < x->rank(); ++d) {
    if (x->sizes[d] == 0) {
      return runtime_error(
          "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
          "sizes ",
          shape_text(x->sizes), " with dimension ", d, " being empty");
    }
  }
  if (mode == 2 && x->rank() != 4) {
    return runtime_error("grid_sampler(): bicubic interpolation only supports 4D input");
  }
  return absl::OkStatus();
}

Tensors sample(const Call& call, int rank, int64_t mode, int64_t padding, bool align) {
  static const OpRef op("grid_sampler");
  const Tensor &x = call.in(0), &grid = call.in(1);
  absl::Status status = check_sampling(x, grid, mode, padding);
  if (status.ok() && rank && x->rank() != rank) {
    status = runtime_error("[", call.op->name, "] expected an input of ", rank, " dims, got ",
                           x->text());
  }
  if (!status.ok()) return {poisoned(status)};
  return {gradwire::call(op, {x, grid}, {mode, padding, align})};
}

Tensors compose_grid_sample(const Call& call) {
  const std::string &mode = call.attr(0).as_string(), &padding = call.attr(1).as_string();
  int64_t m = mode == "bilinear" ? 0 : mode == "nearest" ? 1 : mode == "bicubic" ? 2 : -1;
  int64_t p = padding == "zeros" ? 0 : padding == "border" ? 1 : padding == "reflection" ? 2 : -1;
  if (m < 0) {
    return {poisoned(value_error(
        "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
        "got: '",
        mode, "'"))};
  }
  if (p < 0) {
    return {poisoned(value_error(
        "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
        "'reflection', but got: '",
        padding, "'"))};
  }
  return sample(call, 0, m, p, call.attr(2).as_bool());
}

// n places from -1 to 1, at the corners or the middles of n cells.
Tensor places(int64_t n, DType dtype, bool align) {
  static const OpRef linspace("linspace");
  if (n <= 1) return zeros(Dims{n}, dtype);
  Tensor line = call(linspace, {}, {-1.0, 1.0, n, dtype});
  return align ? line : mul(line, static_cast<double>(n - 1) / static_cast<double>(n));
}

// theta [N, S, S + 1] applied to (x, y[, z], 1) of every place.
Tensors compose_affine_grid(const Call& call) {
  static const OpRef stack("stack");
  const Tensor& theta = call.in(0);
  const IntList& size = call.attr(0).as_ints();
  bool align = call.attr(1).as_bool();
  if (!is_floating(theta->dtype)) {
    return {poisoned(value_error("Expected theta to have floating point type, but got ",
                                 std::string(dtype_name(theta->dtype))))};
  }
  auto spatial = static_cast<int64_t>(size.size()) - 2;
  if (spatial != 2 && spatial != 3) {
    return {poisoned(not_implemented_error(
        "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
        "respectively. Got size ",
        shape_text(Dims(size.begin(), size.end()))))};
  }
  if (theta->rank() != 3 || theta->sizes[1] != spatial || theta->sizes[2] != spatial + 1 ||
      theta->sizes[0] != size[0]) {
    return {poisoned(value_error("Expected a batch of ", spatial, "D affine matrices of shape [",
                                 size[0], ", ", spatial, ", ", spatial + 1, "] for size ",
                                 shape_text(Dims(size.begin(), size.end())), ". Got ",
                                 shape_text(theta->sizes)))};
  }
  Dims grid(size.begin() + 2, size.end());
  for (int64_t n : grid) {
    if (n <= 0) {
      return {poisoned(value_error("Expected non-zero, positive output size. Got ",
                                   shape_text(Dims(size.begin(), size.end()))))};
    }
  }
  auto numel = checked_numel(grid);
  if (!numel.ok()) return {poisoned(numel.status())};
  Tensors columns;
  for (int64_t d = spatial - 1; d >= 0; --d) {
    Dims along(static_cast<size_t>(spatial), 1);
    along[static_cast<size_t>(d)] = grid[static_cast<size_t>(d)];
    columns.push_back(
        expand(reshape(places(grid[static_cast<size_t>(d)], theta->dtype, align), along), grid));
  }
  columns.push_back(full(grid, 1, theta->dtype));
  Tensor base = reshape(call_list(stack, columns, {-1})[0], Dims{1, *numel, spatial + 1});
  Tensor points = matmul(base, transpose(theta, 1, 2));
  Dims sizes{size[0]};
  for (int64_t n : grid) sizes.push_back(n);
  sizes.push_back(spatial);
  return {reshape(points, sizes)};
}

}  // namespace

void add_grid_rows(Catalog& c) {
  OpDef& forward = c.add(1172, OpKind::kKernel,
                         "grid_sampler(Tensor input, Tensor grid, int mode, int padding, "
                         "bool align_corners) -> Tensor",
                         "input [N, C, ...] at the points of grid [N, ..., S], of 2 or 3 dims.");
  forward.infer = infer_grid_sampler;
  forward.backward = backward_grid_sampler;
  forward.saves_inputs = save(0) | save(1);
  OpDef& backward = c.add(1173, OpKind::kKernel,
                          "grid_sampler_backward(Tensor grad, Tensor input, Tensor grid, int mode, "
                          "int padding, bool align_corners) -> (Tensor input, Tensor grid)",
                          "The gradients of grid_sampler's input and grid.");
  backward.infer = infer_grid_backward;
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = "same";
  };
  composite(1174,
            "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, "
            "int padding_mode, bool align_corners) -> Tensor",
            "grid_sample of [N, C, H, W] with modes by number.", [](const Call& call) {
              return sample(call, 4, call.attr(0).as_int(), call.attr(1).as_int(),
                            call.attr(2).as_bool());
            });
  composite(1175,
            "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, "
            "int padding_mode, bool align_corners) -> Tensor",
            "grid_sample of [N, C, D, H, W] with modes by number.", [](const Call& call) {
              return sample(call, 5, call.attr(0).as_int(), call.attr(1).as_int(),
                            call.attr(2).as_bool());
            });
  composite(1176,
            "nn.functional.grid_sample(Tensor input, Tensor grid, str mode='bilinear', "
            "str padding_mode='zeros', bool? align_corners=None) -> Tensor",
            "input [N, C, ...] at the points of grid [N, ..., S], whose last dimension says where "
            "in [-1, 1] along each axis, the last axis first.",
            compose_grid_sample);
  composite(1177,
            "nn.functional.affine_grid(Tensor theta, int[] size, bool? align_corners=None) "
            "-> Tensor",
            "The grid [N, ..., S] for grid_sample of the affine map theta [N, S, S + 1].",
            compose_affine_grid);
  c.keep_internal({"grid_sampler", "grid_sampler_backward"});
}

}  // namespace gradwire
