#include "engine/ops/linalg.h"

namespace gradwire::linalg {
namespace {

std::string name_of(const Call& call) {
  return call.op->name;
}

// torch's C++ names of dtypes.
std::string_view type_name(DType t) {
  switch (t) {
    case DType::kFloat32:
      return "Float";
    case DType::kFloat64:
      return "Double";
    case DType::kFloat16:
      return "Half";
    case DType::kBFloat16:
      return "BFloat16";
    case DType::kInt64:
      return "Long";
    case DType::kInt32:
      return "Int";
    case DType::kInt16:
      return "Short";
    case DType::kInt8:
      return "Char";
    case DType::kUInt8:
      return "Byte";
    case DType::kBool:
      return "Bool";
    case DType::kNone:
      break;
  }
  return "Undefined";
}

}  // namespace

absl::Status check_matrix(const Call& call, const Tensor& a, std::string_view argument) {
  if (a->rank() >= 2) return absl::OkStatus();
  return runtime_error(name_of(call), ": The input tensor ", std::string(argument),
                       " must have at least 2 dimensions.");
}

absl::Status check_square(const Call& call, const Tensor& a, std::string_view argument) {
  GW_RETURN_IF_ERROR(check_matrix(call, a, argument));
  if (rows_of(a) == cols_of(a)) return absl::OkStatus();
  return runtime_error(name_of(call), ": ", std::string(argument),
                       " must be batches of square matrices, but they are ", rows_of(a), " by ",
                       cols_of(a), " matrices");
}

absl::Status check_floating(const Call& call, DType dtype) {
  if (is_floating(dtype)) return absl::OkStatus();
  return runtime_error(name_of(call),
                       ": Expected a floating point or complex tensor as input. Got ",
                       std::string(type_name(dtype)));
}

absl::Status check_real(const Call& call, const Tensor& a) {
  GW_RETURN_IF_ERROR(check_floating(call, a->dtype));
  if (a->dtype == DType::kFloat32 || a->dtype == DType::kFloat64) return absl::OkStatus();
  return runtime_error(name_of(call), ": Low precision dtypes not supported. Got ",
                       std::string(type_name(a->dtype)));
}

absl::Status check_same_dtype(const Call& call, const Tensor& a, const Tensor& b,
                              std::string_view names) {
  if (a->dtype == b->dtype) return absl::OkStatus();
  return runtime_error(name_of(call), ": Expected ", std::string(names),
                       " to have the same dtype, but found ", std::string(type_name(a->dtype)),
                       " and ", std::string(type_name(b->dtype)), " instead");
}

absl::Status check_factor(const Call& call, const Tensor& a) {
  GW_RETURN_IF_ERROR(check_square(call, a));
  return check_real(call, a);
}

Tensors fail(const Call& call, const absl::Status& status) {
  return Tensors(std::max(1, call.op->signature.fixed_outputs), poisoned(status));
}

Dims with_last(std::span<const int64_t> batch, std::initializer_list<int64_t> last) {
  Dims sizes(batch.begin(), batch.end());
  sizes.insert(sizes.end(), last.begin(), last.end());
  return sizes;
}

TensorSpec by_columns(DType dtype, std::span<const int64_t> batch, int64_t rows, int64_t cols) {
  TensorSpec spec{dtype, with_last(batch, {rows, cols}), {}};
  spec.strides = contiguous_strides(with_last(batch, {cols, rows}));
  std::swap(spec.strides[batch.size()], spec.strides[batch.size() + 1]);
  return spec;
}

Tensor swapped(const Tensor& a) {
  return transpose(a, -2, -1);
}
Tensor lower(const Tensor& a, int64_t diagonal) {
  static const OpRef op("tril");
  return call(op, {a}, {diagonal});
}
Tensor upper(const Tensor& a, int64_t diagonal) {
  static const OpRef op("triu");
  return call(op, {a}, {diagonal});
}
Tensor diagonal_of(const Tensor& a) {
  static const OpRef op("diagonal");
  return call(op, {a}, {0, -2, -1});
}
Tensor diagonal_matrix(const Tensor& a) {
  if (a->poison) return a;
  int64_t n = a->sizes.back();
  return part_where(identity(n, n, DType::kBool), unsqueeze(a, -1));
}
Tensor identity(int64_t rows, int64_t cols, DType dtype) {
  static const OpRef op("eye");
  return call(op, {}, {IntList{rows, cols}, dtype});
}
Tensor narrow(const Tensor& a, int64_t dim, int64_t start, int64_t length) {
  static const OpRef op("narrow");
  return call(op, {a}, {dim, start, length});
}
Tensor select(const Tensor& a, int64_t dim, int64_t index) {
  static const OpRef op("select");
  return call(op, {a}, {dim, index});
}
Tensor cat(Tensors tensors, int64_t dim) {
  static const OpRef op("cat");
  return call_list(op, std::move(tensors), {dim})[0];
}
Tensor absolute(const Tensor& a) {
  static const OpRef op("abs");
  return call(op, {a});
}
Tensor sign(const Tensor& a) {
  static const OpRef op("sign");
  return call(op, {a});
}
Tensor power(const Tensor& a, double exponent) {
  static const OpRef op("pow");
  return with_number(op, a, exponent);
}
Tensor equal(const Tensor& a, const Tensor& b) {
  static const OpRef op("eq");
  return call(op, {a, b});
}
Tensor equal(const Tensor& a, double b) {
  static const OpRef op("eq");
  return with_number(op, a, b);
}
Tensor masked_fill(const Tensor& a, const Tensor& mask, double value) {
  static const OpRef op("masked_fill");
  return call(op, {a, mask, nullptr}, {value});
}
Tensor part_where(const Tensor& mask, const Tensor& b) {
  static const OpRef op("where");
  return call(op, {mask, b, nullptr}, {{}, 0});
}
Tensor zeros_like(const TensorSpec& spec) {
  return zeros(spec.sizes, spec.dtype);
}

absl::Status broadcast_batches(Tensor* a, Tensor* b) {
  auto batch = broadcast_shapes(batch_of(*a), batch_of(*b));
  if (!batch.ok()) return batch.status();
  for (Tensor* t : {a, b}) {
    Dims sizes = with_last(*batch, {rows_of(*t), cols_of(*t)});
    if (sizes != (*t)->sizes) *t = expand(*t, sizes);
    if ((*t)->poison) return runtime_error("a batch of ", shape_text(*batch), " is too big");
  }
  return absl::OkStatus();
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  static const OpRef op("linalg_solve_triangular");
  if (a->poison || b->poison) return a->poison ? a : b;
  Tensor left_side = a, right_side = b;
  absl::Status status = broadcast_batches(&left_side, &right_side);
  if (!status.ok()) return poisoned(status);
  return call(op, {left_side, right_side}, {upper, left, unit});
}

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  static const OpRef op("linalg_solve");
  if (a->poison || b->poison) return a->poison ? a : b;
  Tensor left_side = a, right_side = b;
  absl::Status status = broadcast_batches(&left_side, &right_side);
  if (!status.ok()) return poisoned(status);
  return call(op, {left_side, right_side}, {left, ""});
}

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  static const OpRef op("linalg_cholesky_solve");
  if (b->poison || factor->poison) return b->poison ? b : factor;
  Tensor right_side = b, left_side = factor;
  absl::Status status = broadcast_batches(&right_side, &left_side);
  if (!status.ok()) return poisoned(status);
  return call(op, {right_side, left_side}, {upper});
}

Tensor exchange_rows(const Tensor& pivots, const Tensor& b, bool back) {
  static const OpRef order_op("linalg_lu_order"), gather("gather");
  if (pivots->poison || b->poison) return pivots->poison ? pivots : b;
  Tensor order = call(order_op, {pivots}, {rows_of(b), back});
  return call(gather, {b, expand(unsqueeze(order, -1), b->sizes)}, {-2});
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  if (!left) return swapped(lu_solve(lu, pivots, swapped(b), true, !adjoint));
  if (adjoint) {
    Tensor t = swapped(lu);
    Tensor x = solve_triangular(t, b, false, true, false);
    return exchange_rows(pivots, solve_triangular(t, x, true, true, true), true);
  }
  Tensor x = solve_triangular(lu, exchange_rows(pivots, b, false), false, true, true);
  return solve_triangular(lu, x, true, true, false);
}

Tensors svd(const Tensor& a, bool full, bool vectors, std::string_view name) {
  static const OpRef op("linalg_svd");
  return call_many(op, {a}, {full, vectors, std::string(name)});
}

Tensors eigh(const Tensor& a, bool upper, bool vectors, std::string_view name) {
  static const OpRef op("linalg_eigh");
  return call_many(op, {a}, {upper, vectors, std::string(name)});
}

Tensor pinv_gradient(const Tensor& grad, const Tensor& pinv, const Tensor& a) {
  // Golub and Pereyra, The Differentiation of Pseudo-Inverses (1973), as torch arranges it.
  if (grad->poison || pinv->poison || a->poison) {
    return grad->poison ? grad : pinv->poison ? pinv : a;
  }
  Tensor pinv_t = swapped(pinv), grad_t = swapped(grad);
  if (rows_of(a) <= cols_of(a)) {
    Tensor k = matmul(grad_t, pinv);
    Tensor kp = matmul(k, pinv_t);
    Tensor out = sub(kp, swapped(matmul(pinv, k)));
    out = sub(out, matmul(matmul(a, pinv), kp));
    return add(out, matmul(matmul(pinv_t, pinv), sub(grad_t, matmul(k, a))));
  }
  Tensor k = matmul(pinv, grad_t);
  Tensor pk = matmul(pinv_t, k);
  Tensor out =
      sub(matmul(matmul(sub(grad_t, matmul(a, k)), pinv), pinv_t), swapped(matmul(k, pinv)));
  return sub(add(out, pk), matmul(matmul(pk, pinv), a));
}

}  // namespace gradwire::linalg
