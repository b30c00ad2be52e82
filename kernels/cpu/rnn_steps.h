// What the two kernels of recurrent nets share: the cell kinds, the order of the steps, and
// products that use all threads.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/attribute.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/thread_pool.h"

namespace gradwire::cpu {

// The attribute `kind` of rnn_steps. Gates in a row: 1, 1, 4 (i, f, g, o), 3 (r, z, n).
enum class CellKind : int64_t { kTanh = 0, kRelu = 1, kLstm = 2, kGru = 3 };

inline int64_t gates_of(CellKind kind) {
  return kind == CellKind::kLstm ? 4 : kind == CellKind::kGru ? 3 : 1;
}

// Rows of packed data, time by time: step t has rows [offset(t), offset(t) + batch(t)), of the
// sequences 0 to batch(t) - 1. Batch sizes do not increase.
class StepOrder {
 public:
  StepOrder(const IntList& batch_sizes, bool reverse) : sizes_(batch_sizes), reverse_(reverse) {
    for (int64_t b : batch_sizes) {
      offsets_.push_back(rows_);
      rows_ += b;
    }
  }
  int64_t steps() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t rows() const { return rows_; }
  // The time of the i-th step in the order of computation.
  int64_t time(int64_t i) const { return reverse_ ? steps() - 1 - i : i; }
  int64_t batch(int64_t t) const { return sizes_[t]; }
  int64_t offset(int64_t t) const { return offsets_[t]; }
  // The row computed before sequence n's row of time t; -1: it starts from the initial state.
  int64_t previous(int64_t t, int64_t n) const {
    int64_t before = reverse_ ? t + 1 : t - 1;
    bool there = before >= 0 && before < steps() && n < sizes_[before];
    return there ? offsets_[before] + n : -1;
  }

 private:
  const IntList& sizes_;
  bool reverse_;
  std::vector<int64_t> offsets_;
  int64_t rows_ = 0;
};

// Columns of a product of that much work per block, by shape alone.
inline int64_t column_block(int64_t rows, int64_t cols, int64_t depth) {
  double work =
      2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(depth);
  auto blocks = std::clamp<int64_t>(static_cast<int64_t>(work / 1e6), 1, 16);
  return std::max<int64_t>(16, ((cols + blocks - 1) / blocks + 15) / 16 * 16);
}

// c = a b + beta c.
template <class C>
void product(const Matrix<const C>& a, const Matrix<const C>& b, C beta, const Matrix<C>& c,
             ThreadPool& pool) {
  if (c.rows > c.cols && c.cols < 64) {
    int64_t block = column_block(c.cols, c.rows, a.cols);
    pool.parallel_ranges(c.rows, block, [&](int64_t begin, int64_t end) {
      gemm(C(1), a.block(begin, end - begin, 0, a.cols), b, beta,
           c.block(begin, end - begin, 0, c.cols));
    });
    return;
  }
  int64_t block = column_block(c.rows, c.cols, a.cols);
  pool.parallel_ranges(c.cols, block, [&](int64_t begin, int64_t end) {
    gemm(C(1), a, b.block(0, b.rows, begin, end - begin), beta,
         c.block(0, c.rows, begin, end - begin));
  });
}

template <class C>
Matrix<C> rows_at(C* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, 1};
}

template <class C>
typename Simd<C>::V sigmoid(typename Simd<C>::V x) {
  auto one = Simd<C>::set(1);
  return one / (one + Simd<C>::exp(-x));
}

// The rows of a step per claim, by shape alone.
inline int64_t row_grain(int64_t cols) {
  return std::max<int64_t>(1, 4096 / std::max<int64_t>(cols, 1));
}

}  // namespace gradwire::cpu
