// Rows 800 to 829: factorisations of matrices. The kernels are rows of their own without checks;
// the public rows check, broadcast and call them.
#include <algorithm>

#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

int64_t rows_of(const TensorSpec& a) {
  return a.sizes[a.sizes.size() - 2];
}
int64_t cols_of(const TensorSpec& a) {
  return a.sizes[a.sizes.size() - 1];
}

TensorSpec vectors_of(DType dtype, std::span<const int64_t> batch, int64_t n) {
  return {dtype, with_last(batch, {n}), {}};
}

absl::Status infer_lu(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  auto batch = batch_of(a);
  int64_t m = linalg::rows_of(a), n = linalg::cols_of(a);
  out->push_back(by_columns(a->dtype, batch, m, n));
  out->push_back(vectors_of(DType::kInt32, batch, std::min(m, n)));
  out->push_back({DType::kInt32, Dims(batch.begin(), batch.end()), {}});
  return absl::OkStatus();
}

// P A_grad' of the gradients of L and U; either may be null.
Tensor lu_gradient(const Tensor& gl, const Tensor& gu, const Tensor& lu, const Tensor& pivots,
                   int64_t m, int64_t n) {
  if (lu->poison) return lu;
  int64_t k = std::min(m, n);
  Tensor square = m > n ? narrow(lu, -2, 0, k) : m < n ? narrow(lu, -1, 0, k) : lu;
  Tensor l = add(lower(m < n ? square : lu, -1), identity(m, k, lu->dtype));
  Tensor u = upper(m > n ? square : lu);
  Tensor grad;
  if (m == n) {
    if (gl) grad = lower(matmul(swapped(l), gl), -1);
    if (gu) {
      Tensor part = upper(matmul(gu, swapped(u)));
      grad = grad ? add(grad, part) : part;
    }
    grad = solve_triangular(swapped(u), grad, false, false, false);
    grad = solve_triangular(swapped(l), grad, true, true, true);
  } else if (m < n) {
    if (gl) grad = matmul(swapped(l), gl);
    if (gu) {
      Tensor part = matmul(upper(gu), swapped(u));
      grad = grad ? sub(grad, part) : neg(part);
    }
    grad = solve_triangular(swapped(upper(square)), lower(grad, -1), false, false, false);
    Tensor rest;
    if (gu) {
      grad = add(grad, upper(narrow(gu, -1, 0, m)));
      rest = narrow(gu, -1, m, n - m);
    } else {
      rest = zeros(with_last(batch_of(lu), {m, n - m}), lu->dtype);
    }
    grad = solve_triangular(swapped(l), cat({grad, rest}, -1), true, true, true);
  } else {
    Tensor l1 = narrow(l, -2, 0, n);
    if (gu) grad = matmul(upper(gu), swapped(u));
    if (gl) {
      Tensor part = matmul(swapped(l), lower(gl, -1));
      grad = grad ? sub(grad, part) : neg(part);
    }
    grad = solve_triangular(swapped(l1), upper(grad), true, true, true);
    Tensor rest;
    if (gl) {
      grad = add(grad, lower(narrow(gl, -2, 0, n), -1));
      rest = narrow(gl, -2, n, m - n);
    } else {
      rest = zeros(with_last(batch_of(lu), {m - n, n}), lu->dtype);
    }
    grad = solve_triangular(swapped(u), cat({grad, rest}, -2), false, false, false);
  }
  return exchange_rows(pivots, grad, true);
}

void backward_lu(Backward& b) {
  if (!b.has_grad(0)) return;
  int64_t m = rows_of(b.input_spec(0)), n = cols_of(b.input_spec(0)), k = std::min(m, n);
  Tensor g = b.grad(0);
  Tensor gl = m < n ? narrow(g, -1, 0, k) : g, gu = m > n ? narrow(g, -2, 0, k) : g;
  b.set(0, lu_gradient(lower(gl, -1), upper(gu), b.output(0), b.output(1), m, n));
}

absl::Status infer_cholesky(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  auto batch = batch_of(a);
  out->push_back(by_columns(a->dtype, batch, linalg::rows_of(a), linalg::cols_of(a)));
  out->push_back({DType::kInt32, Dims(batch.begin(), batch.end()), {}});
  return absl::OkStatus();
}

void backward_cholesky(Backward& b) {
  // Murray, Differentiation of the Cholesky decomposition (2016).
  if (!b.has_grad(0)) return;
  bool is_upper = b.attr(0).as_bool();
  Tensor l = is_upper ? swapped(b.output(0)) : b.output(0);
  Tensor g = is_upper ? swapped(b.grad(0)) : b.grad(0);
  Tensor phi = matmul(swapped(l), g);
  phi = mul(add(lower(phi), swapped(lower(phi, -1))), 0.5);
  phi = solve_triangular(swapped(l), phi, true, true, false);
  b.set(0, solve_triangular(l, phi, false, false, false));
}

absl::Status infer_qr(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  const std::string& mode = call.attr(0).as_string();
  int64_t m = linalg::rows_of(a), n = linalg::cols_of(a), k = std::min(m, n);
  int64_t inner = mode == "complete" ? m : k;
  if (mode == "r") {
    out->push_back({a->dtype, {0}, {}});
  } else {
    out->push_back(by_columns(a->dtype, batch_of(a), m, inner));
  }
  out->push_back(by_columns(a->dtype, batch_of(a), inner, n));
  return absl::OkStatus();
}

// Of the tall or square case: both gradients may be null.
Tensor qr_gradient(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r) {
  Tensor m;
  if (gr) m = matmul(gr, swapped(r));
  if (gq) {
    Tensor part = matmul(swapped(q), gq);
    m = m ? sub(m, part) : neg(part);
  }
  m = upper(m);
  Tensor grad = matmul(q, add(m, swapped(upper(m, 1))));
  if (gq) grad = add(grad, gq);
  return solve_triangular(swapped(r), grad, false, false, false);
}

void backward_qr(Backward& b) {
  const std::string& mode = b.attr(0).as_string();
  int64_t m = rows_of(b.input_spec(0)), n = cols_of(b.input_spec(0));
  if (mode == "r") {
    b.set(0, poisoned(runtime_error(
                 "The derivative of linalg.qr depends on Q, which is not computed when "
                 "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to require "
                 "gradients of the R factor")));
    return;
  }
  if (mode == "complete" && m > n) {
    b.set(0, poisoned(runtime_error("The QR decomposition is not differentiable when "
                                    "mode='complete' and nrows > ncols")));
    return;
  }
  Tensor q = b.output(0), r = b.output(1);
  Tensor gq = b.has_grad(0) ? b.grad(0) : Tensor(), gr = b.has_grad(1) ? b.grad(1) : Tensor();
  if (!gq && !gr) return;
  if (m >= n) {
    b.set(0, qr_gradient(gq, gr, q, r));
    return;
  }
  // A = [A1 A2], A1 = Q R1, R2 = Q^T A2.
  if (!gr) {
    Tensor first = qr_gradient(gq, {}, q, narrow(r, -1, 0, m));
    Dims rest = b.input_spec(0).sizes;
    rest.back() = n - m;
    b.set(0, cat({first, zeros(rest, b.input_spec(0).dtype)}, -1));
    return;
  }
  Tensor g2 = narrow(gr, -1, m, n - m);
  Tensor through = matmul(matmul(q, narrow(r, -1, m, n - m)), swapped(g2));
  Tensor first =
      qr_gradient(gq ? add(gq, through) : through, narrow(gr, -1, 0, m), q, narrow(r, -1, 0, m));
  b.set(0, cat({first, matmul(q, g2)}, -1));
}

absl::Status infer_eigh(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  int64_t n = linalg::rows_of(a);
  out->push_back(vectors_of(a->dtype, batch_of(a), n));
  out->push_back(call.attr(1).as_bool() ? by_columns(a->dtype, batch_of(a), n, n)
                                        : TensorSpec{a->dtype, {0}, {}});
  return absl::OkStatus();
}

// 1 where the difference is between one value and itself, so that dividing by it leaves 0.
Tensor with_unit_diagonal(const Tensor& a) {
  if (a->poison) return a;
  int64_t n = linalg::cols_of(a);
  return masked_fill(a, identity(n, n, DType::kBool), 1);
}

void backward_eigh(Backward& b) {
  bool gl = b.has_grad(0), gv = b.has_grad(1);
  if (!gl && !gv) return;
  Tensor v = b.output(1);
  if (!b.attr(1).as_bool()) {
    // The values alone were computed: their vectors are needed now.
    v = eigh(b.input(0), b.attr(0).as_bool(), true, "linalg.eigh")[1];
  }
  Tensor inner;
  if (gv) {
    Tensor l = b.output(0);
    Tensor gaps = with_unit_diagonal(sub(unsqueeze(l, -2), unsqueeze(l, -1)));
    Tensor turn = matmul(swapped(v), b.grad(1));
    int64_t n = rows_of(b.input_spec(0));
    inner = masked_fill(div(turn, gaps), identity(n, n, DType::kBool), 0);
    if (gl) inner = add(inner, diagonal_matrix(b.grad(0)));
    b.set(0, matmul(matmul(v, inner), swapped(v)));
    return;
  }
  b.set(0, matmul(mul(v, unsqueeze(b.grad(0), -2)), swapped(v)));
}

absl::Status infer_svd(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  bool full = call.attr(0).as_bool(), wants = call.attr(1).as_bool();
  int64_t m = linalg::rows_of(a), n = linalg::cols_of(a), k = std::min(m, n);
  TensorSpec none{a->dtype, {0, 0}, {}};
  auto batch = batch_of(a);
  out->push_back(wants ? by_columns(a->dtype, batch, m, full ? m : k) : none);
  out->push_back(vectors_of(a->dtype, batch, k));
  out->push_back(wants ? by_columns(a->dtype, batch, full ? n : k, n) : none);
  return absl::OkStatus();
}

void backward_svd(Backward& b) {
  bool gs = b.has_grad(1);
  bool wants = b.attr(1).as_bool();
  Tensor gu = b.has_grad(0) && wants ? b.grad(0) : Tensor();
  Tensor gvh = b.has_grad(2) && wants ? b.grad(2) : Tensor();
  if (!gu && !gs && !gvh) return;
  int64_t m = rows_of(b.input_spec(0)), n = cols_of(b.input_spec(0)), k = std::min(m, n);
  Tensor u, vh, s = b.output(1);
  if (wants) {
    bool full = b.attr(0).as_bool();
    auto first = [&](const Tensor& t, int64_t dim) { return full ? narrow(t, dim, 0, k) : t; };
    u = first(b.output(0), -1);
    vh = first(b.output(2), -2);
    if (gu) gu = first(gu, -1);
    if (gvh) gvh = first(gvh, -2);
  } else {
    Tensors all = svd(b.input(0), false, true, "linalg.svd");
    u = all[0];
    vh = all.back();
  }
  if (!gu && !gvh) {
    Tensor g = unsqueeze(b.grad(1), -2);
    b.set(0, matmul(mul(u, g), vh));
    return;
  }
  auto skew = [](const Tensor& x) { return sub(x, swapped(x)); };
  Tensor row = unsqueeze(s, -2), column = unsqueeze(s, -1);
  Tensor squares = mul(s, s);
  Tensor gaps = with_unit_diagonal(sub(unsqueeze(squares, -2), unsqueeze(squares, -1)));
  Tensor inner;
  if (gu) {
    Tensor turn = skew(matmul(swapped(u), gu));
    if (gvh) {
      Tensor other = skew(matmul(vh, swapped(gvh)));
      inner = div(add(mul(turn, row), mul(column, other)), gaps);
    } else {
      inner = mul(div(turn, gaps), row);
    }
  } else {
    inner = mul(column, div(skew(matmul(vh, swapped(gvh))), gaps));
  }
  if (gs) inner = add(inner, diagonal_matrix(b.grad(1)));
  if (m > k && gu) {
    Tensor scaled = div(gu, row);
    Tensor g = add(matmul(u, inner), sub(scaled, matmul(u, matmul(swapped(u), scaled))));
    b.set(0, matmul(g, vh));
  } else if (n > k && gvh) {
    Tensor scaled = div(gvh, column);
    Tensor g = add(matmul(inner, vh), sub(scaled, matmul(matmul(scaled, swapped(vh)), vh)));
    b.set(0, matmul(u, g));
  } else {
    b.set(0, matmul(matmul(u, inner), vh));
  }
}

// Public rows.

Tensors compose_cholesky(const Call& call) {
  static const OpRef op("linalg_cholesky");
  absl::Status status = check_factor(call, call.in(0));
  if (!status.ok()) return fail(call, status);
  bool ex = call.op->signature.fixed_outputs > 1;
  bool checked = !ex || call.attr(1).as_bool();
  Tensors found =
      call_many(op, {call.in(0)}, {call.attr(0), checked ? call.op->name : std::string()});
  if (ex) return found;
  return {found[0]};
}

Tensors compose_lu_factor(const Call& call) {
  static const OpRef op("linalg_lu");
  absl::Status status = check_matrix(call, call.in(0));
  if (status.ok()) status = check_real(call, call.in(0));
  if (status.ok() && !call.attr(0).as_bool()) {
    status = runtime_error(call.op->name, ": LU without pivoting is not implemented on the CPU");
  }
  if (!status.ok()) return fail(call, status);
  bool ex = call.op->signature.fixed_outputs > 2;
  bool checked = !ex || call.attr(1).as_bool();
  Tensors found = call_many(op, {call.in(0)}, {checked ? "torch." + call.op->name : std::string()});
  if (!ex) found.resize(2);
  return found;
}

// L and U from their common matrix, P from the exchanges.
Tensors unpacked(const Tensor& lu, const Tensor& pivots, bool data, bool permutation) {
  if (lu->poison) return {lu, lu, lu};
  int64_t m = linalg::rows_of(lu), n = linalg::cols_of(lu), k = std::min(m, n);
  Tensor none = zeros(Dims{0}, lu->dtype);
  Tensors out{none, none, none};
  if (permutation) {
    Tensor one = expand(identity(m, m, lu->dtype), with_last(batch_of(lu), {m, m}));
    out[0] = exchange_rows(pivots, one, true);
  }
  if (data) {
    out[1] = add(lower(m < n ? narrow(lu, -1, 0, k) : lu, -1), identity(m, k, lu->dtype));
    out[2] = upper(m > n ? narrow(lu, -2, 0, k) : lu);
  }
  return out;
}

Tensors compose_lu(const Call& call) {
  static const OpRef op("linalg_lu");
  absl::Status status = check_matrix(call, call.in(0));
  if (status.ok()) status = check_real(call, call.in(0));
  if (status.ok() && !call.attr(0).as_bool()) {
    status = runtime_error("linalg.lu: LU without pivoting is not implemented on the CPU");
  }
  if (!status.ok()) return fail(call, status);
  Tensors found = call_many(op, {call.in(0)}, {""});
  return unpacked(found[0], found[found.size() > 1 ? 1 : 0], true, true);
}

absl::Status check_pivots(const Call& call, const Tensor& lu, const Tensor& pivots) {
  if (pivots->dtype != DType::kInt32) {
    return runtime_error(call.op->name,
                         ": Expected LU_pivots to be a contiguous tensor of torch.int32 dtype");
  }
  Dims want(lu->sizes.begin(), lu->sizes.end() - 1);
  want.back() = std::min(linalg::rows_of(lu), linalg::cols_of(lu));
  if (pivots->sizes != want) {
    return runtime_error(call.op->name, ": Number of pivots per batch should be same as the ",
                         "dimension of the matrix: got pivots ", pivots->text(), " for ",
                         lu->text());
  }
  return absl::OkStatus();
}

Tensors compose_lu_unpack(const Call& call) {
  const Tensor& lu = call.in(0);
  absl::Status status = check_matrix(call, lu, "LU_data");
  if (status.ok()) status = check_real(call, lu);
  if (status.ok()) status = check_pivots(call, lu, call.in(1));
  if (!status.ok()) return fail(call, status);
  return unpacked(lu, call.in(1), call.attr(0).as_bool(), call.attr(1).as_bool());
}

// torch.lu_solve(b, LU, pivots) and linalg.lu_solve(LU, pivots, B, left, adjoint).
Tensors compose_lu_solve(const Call& call) {
  bool old = call.op->name == "lu_solve";
  Tensor lu = call.in(old ? 1 : 0), pivots = call.in(old ? 2 : 1), b = call.in(old ? 0 : 2);
  bool left = old || call.attr(0).as_bool(), adjoint = !old && call.attr(1).as_bool();
  absl::Status status = check_square(call, lu, "LU");
  if (status.ok()) status = check_real(call, lu);
  if (status.ok()) status = check_same_dtype(call, lu, b, "LU and B");
  if (status.ok()) status = check_matrix(call, b, "B");
  if (status.ok()) status = check_pivots(call, lu, pivots);
  if (status.ok()) {
    int64_t n = linalg::rows_of(lu);
    if ((left ? linalg::rows_of(b) : linalg::cols_of(b)) != n) {
      status = runtime_error(call.op->name, ": Incompatible shapes of A and B for the equation ",
                             left ? "AX = B" : "XA = B", " (", n, "x", n, " and ",
                             linalg::rows_of(b), "x", linalg::cols_of(b), ")");
    }
  }
  if (status.ok()) status = broadcast_batches(&lu, &b);
  if (!status.ok()) return fail(call, status);
  Dims sizes(lu->sizes.begin(), lu->sizes.end() - 1);
  return {lu_solve(lu, expand(pivots, sizes), b, left, adjoint)};
}

Tensors compose_qr(const Call& call) {
  static const OpRef op("linalg_qr");
  const Tensor& a = call.in(0);
  absl::Status status = check_matrix(call, a);
  if (status.ok()) status = check_real(call, a);
  std::string mode = call.attr(0).as_string();
  if (call.op->name == "qr") mode = call.attr(0).as_bool() ? "reduced" : "complete";
  if (status.ok() && mode != "reduced" && mode != "complete" && mode != "r") {
    status = runtime_error("qr received unrecognized mode '", mode,
                           "' but expected one of 'reduced' (default), 'r', or 'complete'");
  }
  if (!status.ok()) return fail(call, status);
  return call_many(op, {a}, {mode});
}

Tensors compose_eigh(const Call& call) {
  absl::Status status = check_factor(call, call.in(0));
  const std::string& side = call.attr(0).as_string();
  bool is_upper = side == "U" || side == "u";
  if (status.ok() && !is_upper && side != "L" && side != "l") {
    status =
        runtime_error(call.op->name, ": Expected UPLO argument to be 'L' or 'U', but got ", side);
  }
  if (!status.ok()) return fail(call, status);
  bool vectors = call.op->signature.fixed_outputs > 1;
  Tensors found = eigh(call.in(0), is_upper, vectors, call.op->name);
  if (!vectors) found.resize(1);
  return found;
}

Tensors compose_svd(const Call& call) {
  const Tensor& a = call.in(0);
  absl::Status status = check_matrix(call, a);
  if (status.ok()) status = check_real(call, a);
  if (!status.ok()) return fail(call, status);
  if (call.op->name == "linalg.svd") return svd(a, call.attr(0).as_bool(), true, "linalg.svd");
  if (call.op->name == "linalg.svdvals") {
    Tensors found = svd(a, false, false, "linalg.svdvals");
    return {found[found.size() > 1 ? 1 : 0]};
  }
  bool full = !call.attr(0).as_bool(), vectors = call.attr(1).as_bool();
  Tensors found = svd(a, full, vectors, "linalg.svd");
  if (found.size() < 3) return found;
  if (!vectors) {
    int64_t m = linalg::rows_of(a), n = linalg::cols_of(a);
    return {zeros(with_last(batch_of(a), {m, m}), a->dtype), found[1],
            zeros(with_last(batch_of(a), {n, n}), a->dtype)};
  }
  return {found[0], found[1], swapped(found[2])};
}

}  // namespace

void add_linalg_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, BackwardFn backward, uint32_t inputs, uint32_t outputs) {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.backward = backward;
    r.saves_inputs = inputs;
    r.saves_outputs = outputs;
    r.checks = true;
  };
  kernel(800, "linalg_lu(Tensor A, str name='') -> (Tensor LU, Tensor pivots, Tensor info)",
         "A = P L U in one matrix. A name makes a singular matrix that op's error.", infer_lu,
         backward_lu, 0, save(0) | save(1));
  kernel(801, "linalg_cholesky(Tensor A, bool upper=False, str name='') -> (Tensor L, Tensor info)",
         "A = L L^T.", infer_cholesky, backward_cholesky, 0, save(0));
  kernel(802, "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", "A = Q R.",
         infer_qr, backward_qr, 0, save(0) | save(1));
  kernel(803,
         "linalg_eigh(Tensor A, bool upper, bool vectors, str name) -> (Tensor eigenvalues, "
         "Tensor eigenvectors)",
         "A = V diag(w) V^T.", infer_eigh, backward_eigh, save(0), save(0) | save(1));
  kernel(804,
         "linalg_svd(Tensor A, bool full, bool vectors, str name) -> (Tensor U, Tensor S, "
         "Tensor Vh)",
         "A = U diag(S) Vh.", infer_svd, backward_svd, save(0), save(0) | save(1) | save(2));
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, ComposeFn fn,
                 std::string_view types) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(types);
    r.out = true;
    r.method = r.name.find('.') == std::string::npos && r.name != "lu_unpack";
  };
  row(810, "linalg.cholesky(Tensor A, *, bool upper=False) -> Tensor",
      "The lower triangular L with A = L L^T of symmetric positive-definite [..., n, n] matrices, "
      "or with upper its transpose.",
      compose_cholesky, "same");
  row(811,
      "linalg.cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
      "Tensor info)",
      "linalg.cholesky without an error: info is 0, or the order of the leading minor that is not "
      "positive-definite.",
      compose_cholesky, "same, int32");
  row(812, "cholesky(Tensor input, bool upper=False) -> Tensor", "As linalg.cholesky.",
      compose_cholesky, "same");
  row(813, "linalg.lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
      "The factors of A = P L U in one [..., m, n] matrix, and the row exchanges, from 1.",
      compose_lu_factor, "same, int32");
  row(814,
      "linalg.lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, "
      "Tensor pivots, Tensor info)",
      "linalg.lu_factor without an error: info is 0, or the diagonal element of U that is 0.",
      compose_lu_factor, "same, int32, int32");
  row(815, "linalg.lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
      "A = P L U of [..., m, n] matrices: a permutation, a unit lower and an upper triangle.",
      compose_lu, "same, same, same");
  row(816,
      "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool "
      "unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
      "P, L and U from what linalg.lu_factor gives.", compose_lu_unpack, "same, same, same");
  row(817,
      "linalg.lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool "
      "adjoint=False) -> Tensor",
      "X with A X = B (or X A = B, or with A transposed) from linalg.lu_factor of A.",
      compose_lu_solve, "same");
  row(818, "lu_solve(Tensor b, Tensor LU_data, Tensor LU_pivots) -> Tensor",
      "x with A x = b from linalg.lu_factor of A.", compose_lu_solve, "same");
  row(819, "linalg.qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
      "A = Q R: orthogonal columns and an upper triangle. mode is reduced, complete or r.",
      compose_qr, "same, same");
  row(820, "qr(Tensor input, bool some=True) -> (Tensor Q, Tensor R)",
      "As linalg.qr, reduced where some is true, else complete.", compose_qr, "same, same");
  row(821, "linalg.eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
      "A = V diag(w) V^T of symmetric matrices; w ascends. Only the triangle UPLO is read.",
      compose_eigh, "same, same");
  row(822, "linalg.eigvalsh(Tensor A, str UPLO='L') -> Tensor",
      "The eigenvalues of symmetric matrices, ascending.", compose_eigh, "same");
  row(823, "linalg.svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)",
      "A = U diag(S) Vh with orthogonal U and Vh; S descends.", compose_svd, "same, same, same");
  row(824, "linalg.svdvals(Tensor A) -> Tensor", "The singular values, descending.", compose_svd,
      "same");
  row(825,
      "svd(Tensor input, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
      "input = U diag(S) V^T, reduced where some is true.", compose_svd, "same, same, same");
  c.keep_internal({"linalg_lu", "linalg_cholesky", "linalg_qr", "linalg_eigh", "linalg_svd"});
}

}  // namespace gradwire
