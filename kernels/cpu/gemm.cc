#include "kernels/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/scratch.h"

namespace gradwire::cpu {
namespace {

[[maybe_unused]] const bool kSingleThreaded = [] {
  openblas_set_num_threads(1);
  return true;
}();

void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k, float alpha,
               const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
               int64_t ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k,
               double alpha, const double* a, int64_t lda, const double* b, int64_t ldb,
               double beta, double* c, int64_t ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void blas_gemv(CBLAS_TRANSPOSE t, int64_t rows, int64_t cols, float alpha, const float* a,
               int64_t lda, const float* x, int64_t step_x, float beta, float* y, int64_t step_y) {
  cblas_sgemv(CblasRowMajor, t, rows, cols, alpha, a, lda, x, step_x, beta, y, step_y);
}

void blas_gemv(CBLAS_TRANSPOSE t, int64_t rows, int64_t cols, double alpha, const double* a,
               int64_t lda, const double* x, int64_t step_x, double beta, double* y,
               int64_t step_y) {
  cblas_dgemv(CblasRowMajor, t, rows, cols, alpha, a, lda, x, step_x, beta, y, step_y);
}

template <class T>
void scale(const Matrix<T>& c, T beta) {
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t j = 0; j < c.cols; ++j) {
      T* at = c.at(r, j);
      *at = beta == 0 ? T(0) : beta * *at;
    }
  }
}

// y (one row) = x (one row) times b.
template <class T>
void vector_product(T alpha, const Matrix<const T>& x, const Matrix<const T>& b, T beta,
                    const Matrix<T>& y) {
  int64_t step_x = std::max<int64_t>(x.col_stride, 1);
  int64_t step_y = std::max<int64_t>(y.col_stride, 1);
  if (b.row_major()) {
    int64_t ld = std::max({b.row_stride, b.cols, int64_t{1}});
    blas_gemv(CblasTrans, b.rows, b.cols, alpha, b.data, ld, x.data, step_x, beta, y.data, step_y);
  } else {
    int64_t ld = std::max({b.col_stride, b.rows, int64_t{1}});
    blas_gemv(CblasNoTrans, b.cols, b.rows, alpha, b.data, ld, x.data, step_x, beta, y.data,
              step_y);
  }
}

template <class T>
void multiply(T alpha, const Matrix<const T>& a, const Matrix<const T>& b, T beta,
              const Matrix<T>& c) {
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0 || alpha == 0) return scale(c, beta);
  if (!c.row_major()) {
    return multiply<T>(alpha, b.transposed(), a.transposed(), beta, c.transposed());
  }
  if (c.rows == 1) return vector_product(alpha, a, b, beta, c);
  if (c.cols == 1) {
    return vector_product(alpha, b.transposed(), a.transposed(), beta, c.transposed());
  }
  bool plain_a = a.row_major();
  bool plain_b = b.row_major();
  int64_t lda = plain_a ? std::max(a.row_stride, a.cols) : std::max(a.col_stride, a.rows);
  int64_t ldb = plain_b ? std::max(b.row_stride, b.cols) : std::max(b.col_stride, b.rows);
  blas_gemm(plain_a ? CblasNoTrans : CblasTrans, plain_b ? CblasNoTrans : CblasTrans, c.rows,
            c.cols, a.cols, alpha, a.data, lda, b.data, ldb, beta, c.data,
            std::max(c.row_stride, c.cols));
}

}  // namespace

void gemm(float alpha, const Matrix<const float>& a, const Matrix<const float>& b, float beta,
          const Matrix<float>& c) {
  multiply<float>(alpha, a, b, beta, c);
}

void gemm(double alpha, const Matrix<const double>& a, const Matrix<const double>& b, double beta,
          const Matrix<double>& c) {
  multiply<double>(alpha, a, b, beta, c);
}

template <class T>
void gemm_integer(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  // At least 32 bits, so that the product of two small unsigned integers does not become a signed
  // overflow by promotion.
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int64_t kColumns = 256;
  U sums[kColumns];
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t first = 0; first < c.cols; first += kColumns) {
      int64_t n = std::min(kColumns, c.cols - first);
      std::fill(sums, sums + n, U{0});
      for (int64_t k = 0; k < a.cols; ++k) {
        U x = static_cast<U>(*a.at(r, k));
        const T* row = b.at(k, first);
        for (int64_t j = 0; j < n; ++j) sums[j] += x * static_cast<U>(row[j * b.col_stride]);
      }
      for (int64_t j = 0; j < n; ++j) *c.at(r, first + j) = static_cast<T>(sums[j]);
    }
  }
}

#define GW_INTEGER(T) \
  template void gemm_integer<T>(const Matrix<const T>&, const Matrix<const T>&, const Matrix<T>&)
GW_INTEGER(int64_t);
GW_INTEGER(int32_t);
GW_INTEGER(int16_t);
GW_INTEGER(int8_t);
GW_INTEGER(uint8_t);
#undef GW_INTEGER

}  // namespace gradwire::cpu
