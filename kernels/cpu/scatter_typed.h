// The types in which accumulating kernels add: float16 and bfloat16 through a float32 copy of the
// whole target, rounded once at the end.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "kernels/cpu/index_bounds.h"
#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/random_generate.h"
#include "kernels/cpu/scratch.h"
#include "kernels/error.h"

namespace gradwire::cpu {

template <class T>
using Target = std::conditional_t<is_half_v<T>, float, T>;

// Adds as torch does: integers wrap, bool is a logical or.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_same_v<T, Bool8>) {
    return Bool8{static_cast<uint8_t>(a.bits != 0 || b.bits != 0)};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_same_v<T, Bool8>) {
    return Bool8{static_cast<uint8_t>(a.bits != 0 && b.bits != 0)};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// Kernels that read `src` as `self`'s type rely on it.
inline absl::Status check_same_dtype(const char* op, const TensorView& self,
                                     const TensorView& src) {
  if (self.dtype == src.dtype) return absl::OkStatus();
  return runtime_error("[", op, "] Expected self.dtype to be equal to src.dtype, got ",
                       std::string(dtype_name(self.dtype)), " and ",
                       std::string(dtype_name(src.dtype)));
}

// Calls f(target), a Status, with `self` or with a float32 copy that is written back when f
// succeeds.
template <class F>
absl::Status with_target(const TensorView& self, Context& context, F&& f) {
  if (self.dtype != DType::kFloat16 && self.dtype != DType::kBFloat16) return f(self);
  const int64_t n = self.numel();
  Scratch scratch(static_cast<size_t>(n) * sizeof(float) + 1);
  if (scratch.data() == nullptr) return make_error(ErrorKind::kOutOfMemory, "no scratch memory");
  const TensorView wide = dense_like(self, DType::kFloat32, scratch.data());
  context.pool.parallel_ranges(n, 32768, [&](int64_t begin, int64_t end) {
    convert_range(self, begin, end, DType::kFloat32, wide.as<float>() + begin);
  });
  GW_RETURN_IF_ERROR(f(wide));
  const Space<1> space = space_of<1>({&self});
  context.pool.parallel_ranges(n, 32768, [&](int64_t begin, int64_t end) {
    store_range(self, space, begin, end - begin, wide.as<float>() + begin);
  });
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
