// Rows 830 to 834, 840 to 854 and 892: linear systems and determinants.
#include <algorithm>
#include <limits>

#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

absl::Status infer_solve(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  auto batch = batch_of(a);
  const Tensor& b = call.in(1);
  out->push_back(by_columns(b->dtype, batch, rows_of(b), cols_of(b)));
  out->push_back(by_columns(a->dtype, batch, rows_of(a), cols_of(a)));
  out->push_back({DType::kInt32, with_last(batch, {rows_of(a)}), {}});
  out->push_back({DType::kInt32, Dims(batch.begin(), batch.end()), {}});
  return absl::OkStatus();
}

// dB = A^-T dX and dA = -dB X^T; from the factors unless they would need a gradient themselves.
void backward_solve(Backward& b) {
  if (!b.has_grad(0)) return;
  bool left = b.attr(0).as_bool();
  Tensor x = b.output(0), g = b.grad(0);
  Tensor gb = Slot::current().grad_enabled ? solve(swapped(b.input(0)), g, left)
                                           : lu_solve(b.output(1), b.output(2), g, left, true);
  if (b.needs(0)) {
    b.set(0, neg(left ? matmul(gb, swapped(x)) : matmul(swapped(x), gb)));
  }
  if (b.needs(1)) b.set(1, gb);
}

absl::Status infer_triangular(const Call& call, TensorSpecs* out) {
  const Tensor& b = call.in(1);
  out->push_back(by_columns(b->dtype, batch_of(b), rows_of(b), cols_of(b)));
  return absl::OkStatus();
}

void backward_triangular(Backward& b) {
  bool is_upper = b.attr(0).as_bool(), left = b.attr(1).as_bool(), unit = b.attr(2).as_bool();
  Tensor gb = solve_triangular(swapped(b.input(0)), b.grad(), !is_upper, left, unit);
  if (b.needs(0)) {
    Tensor x = b.output(0);
    Tensor ga = neg(left ? matmul(gb, swapped(x)) : matmul(swapped(x), gb));
    b.set(0, is_upper ? upper(ga, unit ? 1 : 0) : lower(ga, unit ? -1 : 0));
  }
  if (b.needs(1)) b.set(1, gb);
}

absl::Status infer_cholesky_solve(const Call& call, TensorSpecs* out) {
  const Tensor& b = call.in(0);
  out->push_back(by_columns(b->dtype, batch_of(b), rows_of(b), cols_of(b)));
  return absl::OkStatus();
}

// As torch's, with the whole factor as the variable.
void backward_cholesky_solve(Backward& b) {
  bool is_upper = b.attr(0).as_bool();
  Tensor x = b.output(0);
  Tensor gb = cholesky_solve(b.grad(), b.input(1), is_upper);
  if (b.needs(0)) b.set(0, gb);
  if (b.needs(1)) {
    Tensor common = matmul(gb, swapped(x));
    common = add(common, swapped(common));
    b.set(1, neg(is_upper ? matmul(b.input(1), common) : matmul(common, b.input(1))));
  }
}

absl::Status infer_order(const Call& call, TensorSpecs* out) {
  Dims sizes = call.in(0)->sizes;
  sizes.back() = call.attr(0).as_int();
  out->push_back({DType::kInt64, sizes, {}});
  return absl::OkStatus();
}

absl::Status infer_det(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  auto batch = batch_of(a);
  for (int i = 0; i < 3; ++i) out->push_back({a->dtype, Dims(batch.begin(), batch.end()), {}});
  out->push_back({a->dtype, a->sizes, {}});
  out->push_back({DType::kInt32, with_last(batch, {rows_of(a)}), {}});
  out->push_back((*out)[0]);
  return absl::OkStatus();
}

// A diagonal matrix for each number of the batch.
Tensor scaled_identity(const Tensor& numbers, int64_t n, DType dtype) {
  return mul(unsqueeze(unsqueeze(numbers, -1), -1), identity(n, n, dtype));
}

// d det = det A^-T g, d log|det| = A^-T g.
void backward_det(Backward& b) {
  const TensorSpec& a = b.input_spec(0);
  int64_t n = a.sizes.back();
  bool again = Slot::current().grad_enabled;
  Tensor grad;
  if (b.has_grad(0)) {
    Tensor d = scaled_identity(mul(b.output(0), b.grad(0)), n, a.dtype);
    if (again) {
      grad = solve(swapped(b.input(0)), d, true);
    } else {
      // det is smooth where A is singular too: there the factors are nudged, and det with them.
      Tensor lu = b.output(3);
      double tiny = a.dtype == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                               : std::numeric_limits<float>::epsilon();
      Tensor zero = equal(diagonal_of(lu), 0);
      lu = add(lu, mul(diagonal_matrix(cast(zero, a.dtype)), tiny));
      static const OpRef prod("prod");
      Tensor nudged = call(prod, {diagonal_of(lu)}, {-1, false, {}});
      Tensor size = mul(nudged, b.output(5));
      d = scaled_identity(mul(size, b.grad(0)), n, a.dtype);
      grad = lu_solve(lu, b.output(4), d, true, true);
    }
  }
  if (b.has_grad(2)) {
    Tensor d = scaled_identity(b.grad(2), n, a.dtype);
    Tensor part = again ? solve(swapped(b.input(0)), d, true)
                        : lu_solve(b.output(3), b.output(4), d, true, true);
    grad = grad ? add(grad, part) : part;
  }
  if (grad) b.set(0, grad);
}

absl::Status infer_lstsq(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  const Tensor& b = call.in(1);
  const std::string& driver = call.attr(1).as_string();
  int64_t m = rows_of(a), n = cols_of(a), k = std::min(m, n);
  auto batch = batch_of(a);
  TensorSpec none{a->dtype, {0}, {}};
  out->push_back({a->dtype, with_last(batch, {n, cols_of(b)}), {}});
  out->push_back(
      m > n && driver != "gelsy" ? TensorSpec{a->dtype, with_last(batch, {cols_of(b)}), {}} : none);
  out->push_back(
      {DType::kInt64, driver == "gels" ? Dims{0} : Dims(batch.begin(), batch.end()), {}});
  out->push_back(driver == "gelsd" || driver == "gelss"
                     ? TensorSpec{a->dtype, with_last(batch, {k}), {}}
                     : none);
  return absl::OkStatus();
}

Tensor pinv_of(const Tensor& a) {
  static const OpRef op("linalg_pinv");
  return call(op, {a, nullptr, nullptr}, {{}, {}, false});
}

void backward_lstsq(Backward& b) {
  Tensor a = b.input(0), rhs = b.input(1), x = b.output(0);
  Tensor ga, gb;
  if (b.has_grad(0)) {
    Tensor inverse = pinv_of(a);
    if (b.needs(0)) ga = pinv_gradient(matmul(b.grad(0), swapped(rhs)), inverse, a);
    if (b.needs(1)) gb = matmul(swapped(inverse), b.grad(0));
  }
  if (b.has_grad(1) && numel_of(b.output_spec(1).sizes) > 0) {
    Tensor left = mul(mul(sub(matmul(a, x), rhs), unsqueeze(b.grad(1), -2)), 2.0);
    Tensor part = matmul(left, swapped(x));
    if (b.needs(0)) ga = ga ? add(ga, part) : part;
    if (b.needs(1)) gb = gb ? sub(gb, left) : neg(left);
  }
  if (ga) b.set(0, ga);
  if (gb) b.set(1, gb);
}

// Public rows.

absl::Status shapes_error(const Call& call, const Tensor& a, const Tensor& b, bool left) {
  return runtime_error(call.op->name, ": Incompatible shapes of A and B for the equation ",
                       left ? "AX = B" : "XA = B", " (", rows_of(a), "x", cols_of(a), " and ",
                       rows_of(b), "x", cols_of(b), ")");
}

// Inputs A, B; attributes left (and check_errors).
Tensors compose_solve(const Call& call) {
  static const OpRef op("linalg_solve");
  Tensor a = call.in(0), b = call.in(1);
  bool left = call.attr(0).as_bool();
  bool ex = call.op->signature.fixed_outputs > 1;
  absl::Status status = check_factor(call, a);
  if (status.ok()) status = check_same_dtype(call, a, b);
  if (!status.ok()) return fail(call, status);
  Dims vector_sizes(a->sizes.begin(), a->sizes.end() - 1);
  bool vector = b->rank() == 1 || (b->rank() == a->rank() - 1 && b->sizes == vector_sizes);
  if (vector && !left) {
    status = runtime_error(call.op->name,
                           ": Vector broadcasting of the left hand side is not supported for "
                           "left=False. In this case linalg.solve is equivalent to B / "
                           "A.squeeze(-1)");
  }
  if (status.ok() && vector) b = unsqueeze(b, -1);
  if (status.ok()) status = check_matrix(call, b, "B");
  if (status.ok() && (left ? rows_of(b) : cols_of(b)) != rows_of(a)) {
    status = shapes_error(call, a, b, left);
  }
  if (status.ok()) status = broadcast_batches(&a, &b);
  if (!status.ok()) return fail(call, status);
  bool checked = !ex || call.attr(1).as_bool();
  Tensors found = call_many(op, {a, b}, {left, checked ? "torch." + call.op->name : std::string()});
  Tensor x = vector ? squeeze(found[0], -1) : found[0];
  if (ex) return {x, found.back()};
  return {x};
}

Tensors compose_triangular(const Call& call) {
  Tensor a = call.in(0), b = call.in(1);
  bool is_upper = call.attr(0).as_bool(), left = call.attr(1).as_bool();
  absl::Status status = check_factor(call, a);
  if (status.ok()) status = check_same_dtype(call, a, b);
  if (status.ok()) status = check_matrix(call, b, "B");
  if (status.ok() && (left ? rows_of(b) : cols_of(b)) != rows_of(a)) {
    status = shapes_error(call, a, b, left);
  }
  if (!status.ok()) return fail(call, status);
  return {solve_triangular(a, b, is_upper, left, call.attr(2).as_bool())};
}

Tensors compose_old_triangular(const Call& call) {
  Tensor b = call.in(0), a = call.in(1);
  absl::Status status = check_factor(call, a);
  if (status.ok()) status = check_same_dtype(call, a, b);
  if (status.ok()) status = check_matrix(call, b, "b");
  if (status.ok() && rows_of(b) != rows_of(a)) status = shapes_error(call, a, b, true);
  if (status.ok()) status = broadcast_batches(&a, &b);
  if (!status.ok()) return fail(call, status);
  bool is_upper = call.attr(0).as_bool(), transposed = call.attr(1).as_bool();
  Tensor used = transposed ? swapped(a) : a;
  Tensor x = solve_triangular(used, b, is_upper != transposed, true, call.attr(2).as_bool());
  return {x, clone(a)};
}

Tensors compose_cholesky_solve(const Call& call) {
  Tensor b = call.in(0), l = call.in(1);
  absl::Status status = check_factor(call, l);
  if (status.ok()) status = check_same_dtype(call, l, b, "b and A");
  if (status.ok() && b->rank() < 2) {
    status = runtime_error("b should have at least 2 dimensions, but has ", b->rank(),
                           " dimensions instead");
  }
  if (status.ok() && rows_of(b) != rows_of(l)) status = shapes_error(call, l, b, true);
  if (!status.ok()) return fail(call, status);
  return {cholesky_solve(b, l, call.attr(0).as_bool())};
}

Tensors compose_cholesky_inverse(const Call& call) {
  const Tensor& l = call.in(0);
  absl::Status status = check_factor(call, l);
  if (!status.ok()) return fail(call, status);
  return {cholesky_solve(expand(identity(rows_of(l), rows_of(l), l->dtype), l->sizes), l,
                         call.attr(0).as_bool())};
}

// det, slogdet and logdet are parts of one kernel's results.
Tensors compose_det(const Call& call) {
  static const OpRef op("linalg_det"), log("log");
  absl::Status status = check_factor(call, call.in(0));
  if (!status.ok()) return fail(call, status);
  Tensors found = call_many(op, {call.in(0)});
  if (found[0]->poison) return Tensors(call.op->signature.fixed_outputs, found[0]);
  const std::string& name = call.op->name;
  if (name == "det" || name == "linalg.det") return {found[0]};
  if (name == "logdet") {
    // nan where the determinant is negative, -inf where it is 0.
    static const OpRef lt("lt");
    Tensor negative = with_number(lt, found[1], 0);
    return {masked_fill(found[2], negative, std::numeric_limits<double>::quiet_NaN())};
  }
  return {found[1], found[2]};
}

Tensors compose_lstsq(const Call& call) {
  static const OpRef op("linalg_lstsq");
  Tensor a = call.in(0), b = call.in(1);
  absl::Status status;
  if (a->rank() < 2) {
    status = runtime_error("torch.linalg.lstsq: input must have at least 2 dimensions.");
  } else if (b->rank() < 1) {
    status = runtime_error("torch.linalg.lstsq: other must have at least 1 dimension.");
  } else if (a->rank() - b->rank() > 1 || a->rank() - b->rank() < 0) {
    status = runtime_error(
        "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
        "(input.dim() - other.dim()) <= 1");
  } else {
    status = check_real(call, a);
  }
  if (status.ok() && a->dtype != b->dtype) {
    status = runtime_error("torch.linalg.lstsq: Expected input and other to have the same dtype, ",
                           "but got ", a->text(), " and ", b->text());
  }
  std::string driver = call.attr(1).none() ? "gelsy" : call.attr(1).as_string();
  if (status.ok() && driver != "gels" && driver != "gelsy" && driver != "gelsd" &&
      driver != "gelss") {
    status = runtime_error(
        "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  }
  if (!status.ok()) return fail(call, status);
  bool vector = a->rank() - 1 == b->rank();
  if (vector) b = unsqueeze(b, -1);
  if (rows_of(a) != rows_of(b)) {
    return fail(call, runtime_error("torch.linalg.lstsq: input.size(-2) should match other.size(",
                                    vector ? "-1" : "-2", ")"));
  }
  status = broadcast_batches(&a, &b);
  if (!status.ok()) return fail(call, status);
  double usual = (a->dtype == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                              : std::numeric_limits<float>::epsilon()) *
                 static_cast<double>(std::max(rows_of(a), cols_of(a)));
  double rcond = call.attr(0).none() ? usual : call.attr(0).as_double();
  Tensors found = call_many(op, {a, b}, {rcond, driver});
  if (vector && !found[0]->poison) {
    found[0] = squeeze(found[0], -1);
    if (found[1]->rank() > 1 || found[1]->numel() > 0) found[1] = squeeze(found[1], -1);
  }
  return found;
}

}  // namespace

void add_linalg_solve_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, BackwardFn backward, uint32_t inputs,
                    uint32_t outputs) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.backward = backward;
    r.saves_inputs = inputs;
    r.saves_outputs = outputs;
    r.checks = true;
    return r;
  };
  kernel(830,
         "linalg_solve(Tensor A, Tensor B, bool left=True, str name='') -> (Tensor result, "
         "Tensor LU, Tensor pivots, Tensor info)",
         "A X = B of batches of one size. A name makes a singular matrix that op's error.",
         infer_solve, backward_solve, save(0), save(0) | save(1) | save(2));
  kernel(831,
         "linalg_solve_triangular(Tensor A, Tensor B, bool upper, bool left, bool "
         "unitriangular) -> Tensor",
         "A X = B of batches of one size, by substitution.", infer_triangular, backward_triangular,
         save(0), save(0));
  kernel(892, "linalg_cholesky_solve(Tensor B, Tensor L, bool upper) -> Tensor",
         "L L^T X = B of batches of one size.", infer_cholesky_solve, backward_cholesky_solve,
         save(1), save(0));
  kernel(832, "linalg_lu_order(Tensor pivots, int rows, bool inverse) -> Tensor",
         "Row exchanges as a permutation.", infer_order, nullptr, 0, 0);
  kernel(833,
         "linalg_det(Tensor A) -> (Tensor result, Tensor sign, Tensor logabsdet, Tensor LU, "
         "Tensor pivots, Tensor parity)",
         "The determinant, by LU.", infer_det, backward_det, save(0),
         save(0) | save(3) | save(4) | save(5));
  kernel(834,
         "linalg_lstsq(Tensor A, Tensor B, float rcond, str driver) -> (Tensor solution, Tensor "
         "residuals, Tensor rank, Tensor singular_values)",
         "min |A X - B| of batches of one size.", infer_lstsq, backward_lstsq, save(0) | save(1),
         save(0));
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, ComposeFn fn,
                 std::string_view types) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(types);
    r.out = true;
    r.method = r.name.find('.') == std::string::npos;
  };
  row(840, "linalg.solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
      "X with A X = B (or X A = B): A [..., n, n], B [..., n, k] or a batch of vectors.",
      compose_solve, "same");
  row(841,
      "linalg.solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
      "(Tensor result, Tensor info)",
      "linalg.solve without an error: info is 0, or the diagonal element of U that is 0.",
      compose_solve, "same, int32");
  row(845,
      "linalg.solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool "
      "unitriangular=False) -> Tensor",
      "X with A X = B (or X A = B) of triangular A; the other triangle is not read.",
      compose_triangular, "same");
  row(846,
      "triangular_solve(Tensor b, Tensor A, bool upper=True, bool transpose=False, bool "
      "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
      "X with A X = b of triangular A, and a copy of A.", compose_old_triangular, "same, same");
  row(847, "cholesky_solve(Tensor B, Tensor L, bool upper=False) -> Tensor",
      "X with A X = B from the Cholesky factor of A.", compose_cholesky_solve, "same");
  row(848, "cholesky_inverse(Tensor L, bool upper=False) -> Tensor",
      "The inverse of A from its Cholesky factor.", compose_cholesky_inverse, "same");
  row(849, "linalg.det(Tensor A) -> Tensor", "The determinant of [..., n, n] matrices.",
      compose_det, "same");
  row(850, "det(Tensor input) -> Tensor", "As linalg.det.", compose_det, "same");
  row(851, "linalg.slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
      "The determinant's sign and the logarithm of its absolute value.", compose_det, "same, same");
  row(852, "slogdet(Tensor input) -> (Tensor sign, Tensor logabsdet)", "As linalg.slogdet.",
      compose_det, "same, same");
  row(853, "logdet(Tensor input) -> Tensor",
      "The logarithm of the determinant; nan where that is negative.", compose_det, "same");
  row(854,
      "linalg.lstsq(Tensor A, Tensor B, float? rcond=None, *, str? driver=None) -> (Tensor "
      "solution, Tensor residuals, Tensor rank, Tensor singular_values)",
      "X that makes |A X - B| least, by LAPACK's gels, gelsy, gelsd or gelss.", compose_lstsq,
      "same, same, int64, same");
  c.keep_internal({"linalg_solve", "linalg_solve_triangular", "linalg_cholesky_solve",
                   "linalg_lu_order", "linalg_det", "linalg_lstsq"});
}

}  // namespace gradwire
