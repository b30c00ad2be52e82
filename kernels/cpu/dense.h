// From tensors of any geometry to what inner loops want, and back: gap-free runs of the compute
// type, which is float32 for the 16-bit floats and the dtype itself for all others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/error.h"
#include "kernels/half.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T>
using ComputeOf = std::conditional_t<is_half_v<T>, float, T>;

// Out of memory for scratch.
absl::Status scratch_error();
// The op has no kernel for the dtype.
absl::Status dtype_error(const char* op, DType dtype);

// Offsets of elements by their row-major number over some dimensions of a view, with dimensions
// merged where memory allows.
struct IndexMap {
  int rank = 0;
  int64_t count = 1;
  std::array<int64_t, kMaxRank> sizes{};
  std::array<int64_t, kMaxRank> strides{};

  // True when element i lies at i * step().
  bool linear() const { return rank <= 1; }
  int64_t step() const { return rank == 0 ? 1 : strides[0]; }

  int64_t offset(int64_t i) const {
    if (rank <= 1) return i * step();
    int64_t at = 0;
    for (int d = rank - 1; d > 0; --d) {
      at += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return at + i * strides[0];
  }
  void add(int64_t size, int64_t stride);  // a further, inner dimension
};

IndexMap map_dims(const TensorView& view, int begin, int end);
// All dimensions but one.
IndexMap map_without(const TensorView& view, int dim);

// Calls f(T{}) with the type of the dtype; false when the dtype is not among them.
template <class F>
bool visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      f(float{});
      return true;
    case DType::kFloat64:
      f(double{});
      return true;
    case DType::kFloat16:
      f(Half{});
      return true;
    case DType::kBFloat16:
      f(BFloat16{});
      return true;
    default:
      return false;
  }
}

template <class F>
bool visit_integral(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt64:
      f(int64_t{});
      return true;
    case DType::kInt32:
      f(int32_t{});
      return true;
    case DType::kInt16:
      f(int16_t{});
      return true;
    case DType::kInt8:
      f(int8_t{});
      return true;
    case DType::kUInt8:
    case DType::kBool:
      f(uint8_t{});
      return true;
    default:
      return false;
  }
}

void convert(const Half* from, float* to, int64_t n);
void convert(const float* from, Half* to, int64_t n);
void convert(const BFloat16* from, float* to, int64_t n);
void convert(const float* from, BFloat16* to, int64_t n);

// dst[0, n) = elements [begin, begin + n) of the map at p.
template <class T, class C>
void gather(const T* p, const IndexMap& map, int64_t begin, int64_t n, C* dst) {
  int64_t inner = map.rank == 0 ? 1 : map.sizes[map.rank - 1];
  int64_t step = map.rank == 0 ? 1 : map.strides[map.rank - 1];
  for (int64_t i = 0; i < n;) {
    int64_t run = map.linear() ? n : std::min(n - i, inner - (begin + i) % inner);
    const T* from = p + map.offset(begin + i);
    if constexpr (is_half_v<T> && std::is_same_v<C, float>) {
      if (step == 1) {
        convert(from, dst + i, run);
        i += run;
        continue;
      }
    }
    for (int64_t k = 0; k < run; ++k) dst[i + k] = static_cast<C>(from[k * step]);
    i += run;
  }
}

template <class T, class C>
void scatter(const C* src, int64_t n, T* p, const IndexMap& map, int64_t begin) {
  int64_t inner = map.rank == 0 ? 1 : map.sizes[map.rank - 1];
  int64_t step = map.rank == 0 ? 1 : map.strides[map.rank - 1];
  for (int64_t i = 0; i < n;) {
    int64_t run = map.linear() ? n : std::min(n - i, inner - (begin + i) % inner);
    T* to = p + map.offset(begin + i);
    if constexpr (is_half_v<T> && std::is_same_v<C, float>) {
      if (step == 1) {
        convert(src + i, to, run);
        i += run;
        continue;
      }
    }
    for (int64_t k = 0; k < run; ++k) to[k * step] = static_cast<T>(src[i + k]);
    i += run;
  }
}

// A row of T as a row of C: in place when it lies so, else through `buffer`.
template <class T, class C>
const C* read_row(const T* p, const IndexMap& map, int64_t n, C* buffer) {
  if constexpr (std::is_same_v<T, C>) {
    if (map.linear() && (map.step() == 1 || n == 1)) return p;
  }
  gather(p, map, 0, n, buffer);
  return buffer;
}

// Where to put a row of C meant for T; write_row then brings it there when it is the buffer.
template <class T, class C>
C* row_target(T* p, const IndexMap& map, int64_t n, C* buffer) {
  if constexpr (std::is_same_v<T, C>) {
    if (map.linear() && (map.step() == 1 || n == 1)) return p;
  }
  return buffer;
}
template <class T, class C>
void write_row(const C* row, const C* buffer, int64_t n, T* p, const IndexMap& map) {
  if (row == buffer) scatter(row, n, p, map, 0);
}

double read_element(const TensorView& view, int64_t offset);
void write_element(const TensorView& view, int64_t offset, double value);

// All elements of the view, row-major, as C (float, double or an integer type as its own dtype).
// Any floating dtype converts to any floating C. Parallel for big tensors.
template <class C>
void copy_in(const TensorView& view, C* dst, ThreadPool& pool);
template <class C>
void copy_out(const C* src, const TensorView& view, ThreadPool& pool);

template <class C>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<C, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<C, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<C, Half>) return DType::kFloat16;
  if constexpr (std::is_same_v<C, BFloat16>) return DType::kBFloat16;
  if constexpr (std::is_same_v<C, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<C, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<C, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<C, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<C, uint8_t>) return DType::kUInt8;
  return DType::kNone;
}

// A contiguous read-only image of a view: the view's own memory when it is one already, or when
// the caller says that it will do `as_is`.
template <class C>
class DenseInput {
 public:
  DenseInput(const TensorView& view, ThreadPool& pool, bool as_is = false) {
    if (!view.present()) return;
    if (as_is || (view.dtype == dtype_of<C>() && view.contiguous())) {
      data_ = view.as<const C>();
      return;
    }
    scratch_.emplace(static_cast<size_t>(view.numel()) * sizeof(C) + 64);
    ok_ = scratch_->data() != nullptr;
    data_ = scratch_->as<C>();
    if (ok_) copy_in<C>(view, scratch_->as<C>(), pool);
  }
  bool ok() const { return ok_; }
  const C* data() const { return data_; }  // null for an absent view

 private:
  std::optional<Scratch> scratch_;
  const C* data_ = nullptr;
  bool ok_ = true;
};

// Contiguous memory to write; store() brings it to the view.
template <class C>
class DenseOutput {
 public:
  DenseOutput(const TensorView& view, ThreadPool& pool, bool as_is = false)
      : view_(view), pool_(pool) {
    if (!view.present()) return;
    if (as_is || (view.dtype == dtype_of<C>() && view.contiguous())) {
      data_ = view.as<C>();
      return;
    }
    scratch_.emplace(static_cast<size_t>(view.numel()) * sizeof(C) + 64);
    ok_ = scratch_->data() != nullptr;
    data_ = scratch_->as<C>();
  }
  bool ok() const { return ok_; }
  C* data() const { return data_; }
  void store() {
    if (scratch_) copy_out<C>(data_, view_, pool_);
  }

 private:
  const TensorView& view_;
  ThreadPool& pool_;
  std::optional<Scratch> scratch_;
  C* data_ = nullptr;
  bool ok_ = true;
};

}  // namespace gradwire::cpu
