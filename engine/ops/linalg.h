// The vocabulary of linear algebra in compositions and gradients, and torch's checks of matrices.
// Everything here that takes matrices works on their batches: the last two dims.
#pragma once

#include <string>
#include <string_view>

#include "engine/ops/call.h"

namespace gradwire::linalg {

// Checks, with the row's short name in torch's texts.
absl::Status check_matrix(const Call& call, const Tensor& a, std::string_view argument = "A");
absl::Status check_square(const Call& call, const Tensor& a, std::string_view argument = "A");
// float32 and float64 only.
absl::Status check_real(const Call& call, const Tensor& a);
absl::Status check_same_dtype(const Call& call, const Tensor& a, const Tensor& b,
                              std::string_view names = "A and B");
// All that a factorisation of square matrices asks for.
absl::Status check_factor(const Call& call, const Tensor& a);
absl::Status check_floating(const Call& call, DType dtype);

// As many poisoned outputs as the row has.
Tensors fail(const Call& call, const absl::Status& status);

inline std::span<const int64_t> batch_of(const Tensor& a) {
  return {a->sizes.data(), a->sizes.size() - 2};
}
inline int64_t rows_of(const Tensor& a) {
  return a->sizes[a->sizes.size() - 2];
}
inline int64_t cols_of(const Tensor& a) {
  return a->sizes[a->sizes.size() - 1];
}
Dims with_last(std::span<const int64_t> batch, std::initializer_list<int64_t> last);

// A matrix laid out as LAPACK gives it: its columns are gap-free.
TensorSpec by_columns(DType dtype, std::span<const int64_t> batch, int64_t rows, int64_t cols);

Tensor swapped(const Tensor& a);  // the last two dims exchanged
Tensor lower(const Tensor& a, int64_t diagonal = 0);
Tensor upper(const Tensor& a, int64_t diagonal = 0);
Tensor diagonal_of(const Tensor& a);      // of each matrix
Tensor diagonal_matrix(const Tensor& a);  // n numbers to an n by n matrix, the rest 0
Tensor identity(int64_t rows, int64_t cols, DType dtype);
Tensor narrow(const Tensor& a, int64_t dim, int64_t start, int64_t length);
Tensor select(const Tensor& a, int64_t dim, int64_t index);
Tensor cat(Tensors tensors, int64_t dim);
Tensor absolute(const Tensor& a);
Tensor sign(const Tensor& a);
Tensor power(const Tensor& a, double exponent);
Tensor equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, double b);
Tensor masked_fill(const Tensor& a, const Tensor& mask, double value);
// The part of b where mask is true, else 0.
Tensor part_where(const Tensor& mask, const Tensor& b);
Tensor zeros_like(const TensorSpec& spec);

// Batches broadcast to each other. Error: they do not.
absl::Status broadcast_batches(Tensor* a, Tensor* b);

// X with A X = B (left) or X A = B; one triangle of A is read.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit);
// X with A X = B or X A = B of square A; inf or nan where A is singular.
Tensor solve(const Tensor& a, const Tensor& b, bool left);
// The same from LU factors; `adjoint` solves with A transposed.
Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint);
// X with L L^T X = B (or U^T U X = B).
Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper);
// Rows of b exchanged as the factorisation did (P^T B), or back (P B).
Tensor exchange_rows(const Tensor& pivots, const Tensor& b, bool back);
Tensors svd(const Tensor& a, bool full, bool vectors, std::string_view name);
Tensors eigh(const Tensor& a, bool upper, bool vectors, std::string_view name);
Tensor vector_norm(const Tensor& a, double order, const IntList& dims, bool keepdim);
// The gradient of A from that of its pseudo-inverse.
Tensor pinv_gradient(const Tensor& grad, const Tensor& pinv, const Tensor& a);

}  // namespace gradwire::linalg
