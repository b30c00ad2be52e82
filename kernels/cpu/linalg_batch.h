// What the kernels of matrix factorisations share: batches of matrices as column-major copies, and
// the failures of single matrices as one error.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/linalg_lapack.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {

// The matrices of a view, its last two dims, numbered row-major over the others. With kVectors the
// last dim alone is a matrix of one column.
class Matrices {
 public:
  enum class Kind : uint8_t { kMatrices, kVectors };
  explicit Matrices(const TensorView& view, Kind kind = Kind::kMatrices);

  Matrices transposed() const {
    Matrices t = *this;
    std::swap(t.rows, t.cols);
    std::swap(t.row_stride_, t.col_stride_);
    return t;
  }

  // Matrix i to column-major memory (and back); elements convert to C.
  template <class C>
  void load(int64_t i, C* to, int64_t ld) const {
    const C* from = static_cast<const C*>(data_) + map_.offset(i);
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = 0; r < rows; ++r) to[c * ld + r] = from[r * row_stride_ + c * col_stride_];
    }
  }
  template <class C>
  void store(int64_t i, const C* from, int64_t ld) const {
    C* to = static_cast<C*>(data_) + map_.offset(i);
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = 0; r < rows; ++r) to[r * row_stride_ + c * col_stride_] = from[c * ld + r];
    }
  }

  int64_t count = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  bool batched = false;

 private:
  void* data_;
  int64_t row_stride_ = 0;
  int64_t col_stride_ = 0;
  IndexMap map_;
};

// Temporary column-major memory of one matrix; never empty.
template <class C>
class Block {
 public:
  explicit Block(int64_t n) : scratch_(static_cast<size_t>(n < 1 ? 1 : n) * sizeof(C) + 64) {}
  C* data() const { return scratch_.as<C>(); }
  bool ok() const { return scratch_.data() != nullptr; }

 private:
  Scratch scratch_;
};

// Whether there is nothing to write, as for a batch of any length of empty matrices.
bool all_empty(const KernelCall& call);

// LAPACK counts in int. Error: a matrix that is too big.
absl::Status check_size(const Matrices& m);

// Runs solve(i) for all matrices, `work` being the arithmetic of one. What it returns is LAPACK's
// info; kept in order of the matrices.
std::vector<int> for_matrices(int64_t count, double work, ThreadPool& pool,
                              const std::function<int(int64_t)>& solve);

// The first failure as LinAlgError with torch's text for the op `name`. An empty name lets
// positive infos pass.
absl::Status check_infos(const std::vector<int>& infos, std::string_view name, bool batched);
void store_infos(const std::vector<int>& infos, const TensorView& out);

template <class C>
bool all_finite(const C* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(p[i])) return false;
  }
  return true;
}
// The info of a matrix with inf or nan where LAPACK might not end.
inline constexpr int kNotFinite = -4;

// Calls f(C{}) with the dtype of the first input, float or double, unless there is nothing to do.
// Error: another dtype.
template <class F>
absl::Status visit_real(const char* op, const KernelCall& call, F&& f) {
  DType dtype = call.inputs[0].dtype;
  if (all_empty(call)) return absl::OkStatus();
  if (dtype == DType::kFloat32) return f(float{});
  if (dtype == DType::kFloat64) return f(double{});
  return dtype_error(op, dtype);
}

}  // namespace gradwire::cpu
