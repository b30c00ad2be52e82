// What a kernel sees of a tensor: a pointer and its geometry. Owns nothing.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/dtype.h"

namespace gradwire {

inline constexpr int kMaxRank = 16;

// `data` points at element [0, ..., 0]; it is null for an absent optional tensor and may be null
// for a tensor without elements. Strides are in elements, may be 0 (broadcast) but not negative.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kNone;
  int rank = 0;
  std::array<int64_t, kMaxRank> sizes{};
  std::array<int64_t, kMaxRank> strides{};

  bool present() const { return dtype != DType::kNone; }

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= sizes[i];
    return n;
  }

  // Row-major without gaps; dimensions of size 1 do not matter.
  bool contiguous() const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] == 0) return true;
      if (sizes[i] != 1 && strides[i] != expected) return false;
      expected *= sizes[i];
    }
    return true;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace gradwire
