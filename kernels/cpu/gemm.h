// One matrix product on the calling thread. The libraries behind it run with one thread each;
// whoever calls cuts the work.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"

namespace gradwire::cpu {

// A matrix in memory; strides in elements, 0 for a broadcast dimension.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 0;

  T* at(int64_t r, int64_t c) const { return data + r * row_stride + c * col_stride; }
  Matrix block(int64_t row, int64_t n_rows, int64_t col, int64_t n_cols) const {
    return {at(row, col), n_rows, n_cols, row_stride, col_stride};
  }
  Matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }

  // True when a BLAS can take it, as it stands or transposed.
  bool row_major() const {
    return (col_stride == 1 || cols <= 1) && (row_stride >= (cols > 1 ? cols : 1) || rows <= 1);
  }
  bool blas_ready() const { return row_major() || transposed().row_major(); }
};

// c = alpha * a b + beta * c; with beta 0 the old c is not read. c is row-major or its transpose
// is; a and b are blas_ready. Sizes must agree. Zero sizes are allowed.
void gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
          const Matrix<float>& c);
void gemm(double alpha, const Matrix<const double>& a, const Matrix<const double>& b, double beta,
          const Matrix<double>& c);

// c = a b in float32, c row-major, by oneDNN. False, with c untouched, when this processor has no
// fast way or a matrix does not suit; a and b as for gemm.
bool gemm_bfloat16(const Matrix<const uint16_t>& a, const Matrix<const uint16_t>& b,
                   const Matrix<float>& c);

// c = a b, wrapping; any strides.
template <class T>
void gemm_integer(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c);

}  // namespace gradwire::cpu
