// Rows 880 to 889: distances and similarities of vectors.
#include "engine/core/promotion.h"
#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

absl::Status infer_cdist(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  out->push_back({a->dtype, {a->sizes[0], a->sizes[1], call.in(1)->sizes[1]}, {}});
  return absl::OkStatus();
}

absl::Status infer_like(const Call& call, TensorSpecs* out, int i) {
  out->push_back({call.in(i)->dtype, call.in(i)->sizes, {}});
  return absl::OkStatus();
}

void backward_cdist(Backward& b) {
  static const OpRef op("cdist_backward");
  Tensor a = b.input(0), c = b.input(1), y = b.output(0), g = b.grad();
  if (b.needs(0)) b.set(0, call(op, {g, a, c, y}, {b.attr(0)}));
  if (b.needs(1)) b.set(1, call(op, {swapped(g), c, a, swapped(y)}, {b.attr(0)}));
}

void backward_pdist(Backward& b) {
  static const OpRef op("pdist_backward");
  b.set(0, call(op, {b.grad(), b.input(0), b.output(0)}, {b.attr(0)}));
}

Tensors compose_cdist(const Call& call) {
  static const OpRef op("cdist_rows");
  Tensor a = call.in(0), b = call.in(1);
  double p = call.attr(0).as_double();
  const std::string& mode = call.attr(1).as_string();
  absl::Status status;
  if (!is_floating(a->dtype)) {
    status = runtime_error("cdist only supports floating-point dtypes, X1 got: ",
                           std::string(dtype_name(a->dtype)));
  } else if (!is_floating(b->dtype)) {
    status = runtime_error("cdist only supports floating-point dtypes, X2 got: ",
                           std::string(dtype_name(b->dtype)));
  } else if (a->rank() < 2 || b->rank() < 2) {
    status = runtime_error("cdist only supports at least 2D tensors, X1 got: ", a->rank(),
                           "D, X2 got: ", b->rank(), "D");
  } else if (cols_of(a) != cols_of(b)) {
    status = runtime_error("X1 and X2 must have the same number of columns. X1: ", cols_of(a),
                           " X2: ", cols_of(b));
  } else if (!(p >= 0)) {
    status = runtime_error("cdist only supports non-negative p values");
  } else if (mode != "use_mm_for_euclid_dist_if_necessary" && mode != "use_mm_for_euclid_dist" &&
             mode != "donot_use_mm_for_euclid_dist") {
    status = value_error(mode, " is not a valid value for compute_mode");
  } else if (a->dtype != b->dtype) {
    status = runtime_error("cdist: X1 and X2 must have the same dtype, got ", a->text(), " and ",
                           b->text());
  } else if (a->dtype != DType::kFloat32 && a->dtype != DType::kFloat64) {
    status = not_implemented_error("\"cdist\" not implemented for '",
                                   std::string(dtype_name(a->dtype)), "'");
  }
  if (status.ok()) status = broadcast_batches(&a, &b);
  if (!status.ok()) return fail(call, status);
  Dims sizes = with_last(batch_of(a), {rows_of(a), rows_of(b)});
  int64_t batch = numel_of(batch_of(a));
  auto flat = [&](const Tensor& t) { return reshape(t, Dims{batch, rows_of(t), cols_of(t)}); };
  return {reshape(gradwire::call(op, {flat(a), flat(b)}, {p}), sizes)};
}

Tensors compose_pdist(const Call& call) {
  static const OpRef op("pdist_rows");
  const Tensor& x = call.in(0);
  double p = call.attr(0).as_double();
  absl::Status status;
  if (x->rank() != 2) {
    status = runtime_error("pdist only supports 2D tensors, got: ", x->rank(), "D");
  } else if (rows_of(x) > int64_t{1} << 31) {
    status = runtime_error("pdist: too many pairs of rows of ", x->text());
  } else if (!is_floating(x->dtype)) {
    status = runtime_error("pdist only supports floating-point dtypes");
  } else if (!(p >= 0)) {
    status = runtime_error("pdist only supports non-negative p values");
  } else if (x->dtype != DType::kFloat32 && x->dtype != DType::kFloat64) {
    status = not_implemented_error("\"pdist\" not implemented for '",
                                   std::string(dtype_name(x->dtype)), "'");
  }
  if (!status.ok()) return fail(call, status);
  return {gradwire::call(op, {x}, {p})};
}

Tensors compose_pairwise(const Call& call) {
  static const OpRef add_op("add");
  const Tensor& a = call.in(0);
  const Tensor& b = call.in(1);
  int rank = std::max(a->rank(), b->rank());
  if (rank < 1) return fail(call, runtime_error("pairwise_distance needs at least 1 dimension"));
  Tensor difference = with_number(add_op, sub(a, b), call.attr(1).as_double(), 1);
  if (difference->poison) return {difference};
  double p = call.attr(0).as_double();
  if (difference->sizes.back() == 0 && (p < 0 || p == std::numeric_limits<double>::infinity())) {
    return fail(call, runtime_error("linalg.vector_norm cannot compute the ", p,
                                    " norm on an empty dimension"));
  }
  return {vector_norm(difference, p, {rank - 1}, call.attr(2).as_bool())};
}

Tensors compose_cosine(const Call& call) {
  static const OpRef clamp_min("clamp_min");
  PromotionState common;
  for (const Tensor& t : call.inputs) common.add_tensor(t->dtype, t->sizes.empty());
  DType dtype = common.result();
  if (!is_floating(dtype)) {
    return fail(call, runtime_error("expected common dtype to be floating point, yet common dtype ",
                                    "is ", std::string(dtype_name(dtype))));
  }
  auto sizes = broadcast_shapes(call.in(0)->sizes, call.in(1)->sizes);
  if (!sizes.ok()) return fail(call, sizes.status());
  auto dim = dim_of(call, call.attr(0).as_int(), static_cast<int64_t>(sizes->size()));
  if (!dim.ok()) return fail(call, dim.status());
  double eps = call.attr(1).as_double();
  IntList dims;
  if (!sizes->empty()) dims.push_back(*dim);
  // The norm is held above eps in value, but its gradient flows as if it were not.
  auto unit = [&](const Tensor& t) {
    Tensor x = expand(cast(t, dtype), *sizes);
    Tensor norm = vector_norm(x, 2, dims, true);
    Tensor lift;
    {
      GradMode off(false);
      lift = sub(gradwire::call(clamp_min, {norm, nullptr}, {eps}), norm);
    }
    return div(x, add(norm, lift));
  };
  Tensor product = mul(unit(call.in(0)), unit(call.in(1)));
  return {dims.empty() ? product : sum(product, dims, false)};
}

}  // namespace

void add_distance_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, BackwardFn backward, uint32_t inputs, uint32_t outputs) {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.backward = backward;
    r.saves_inputs = inputs;
    r.saves_outputs = outputs;
  };
  kernel(880, "cdist_rows(Tensor x1, Tensor x2, float p) -> Tensor",
         "Distances of [B, P, M] and [B, R, M].", infer_cdist, backward_cdist, save(0) | save(1),
         save(0));
  kernel(
      881, "cdist_backward(Tensor grad, Tensor x1, Tensor x2, Tensor y, float p) -> Tensor",
      "The gradient of x1.",
      [](const Call& call, TensorSpecs* out) { return infer_like(call, out, 1); }, nullptr, 0, 0);
  kernel(
      882, "pdist_rows(Tensor x, float p) -> Tensor", "Distances of the pairs of rows.",
      [](const Call& call, TensorSpecs* out) {
        int64_t n = call.in(0)->sizes[0];
        int64_t pairs = n % 2 ? n * ((n - 1) / 2) : n / 2 * (n - 1);
        out->push_back({call.in(0)->dtype, {n ? pairs : 0}, {}});
        return absl::OkStatus();
      },
      backward_pdist, save(0), save(0));
  kernel(
      883, "pdist_backward(Tensor grad, Tensor x, Tensor y, float p) -> Tensor",
      "The gradient of x.",
      [](const Call& call, TensorSpecs* out) { return infer_like(call, out, 1); }, nullptr, 0, 0);
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, ComposeFn fn,
                 std::string_view types) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(types);
  };
  row(884,
      "cdist(Tensor x1, Tensor x2, float p=2.0, str "
      "compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
      "The p-norm distance of each row of x1 [..., P, M] to each of x2 [..., R, M]: [..., P, R].",
      compose_cdist, "same");
  row(885, "nn.functional.pdist(Tensor input, float p=2.0) -> Tensor",
      "The p-norm distances of all pairs of rows of input [N, M]: [N (N - 1) / 2].", compose_pdist,
      "same");
  row(886,
      "nn.functional.pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool "
      "keepdim=False) -> Tensor",
      "|x1 - x2 + eps| over the last dim.", compose_pairwise, "promote_float");
  row(887,
      "nn.functional.cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> "
      "Tensor",
      "x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) over dim.", compose_cosine, "promote");
  c.keep_internal({"cdist_rows", "cdist_backward", "pdist_rows", "pdist_backward"});
}

}  // namespace gradwire
