#include "kernels/cpu/index_convert.h"

#include <algorithm>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"

namespace gradwire::cpu {
namespace {

template <class To>
void load(DType dtype, const void* from, int64_t stride, int64_t n, To* to) {
  dispatch_dtype(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* p = static_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(p[i * stride]);
  });
}

template <class From>
void store(DType dtype, void* to, int64_t stride, int64_t n, const From* from) {
  dispatch_dtype(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* p = static_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) p[i * stride] = convert<T>(from[i]);
  });
}

}  // namespace

void load_doubles(DType dtype, const void* from, int64_t stride, int64_t n, double* to) {
  load(dtype, from, stride, n, to);
}

void load_ints(DType dtype, const void* from, int64_t stride, int64_t n, int64_t* to) {
  load(dtype, from, stride, n, to);
}

void store_doubles(DType dtype, void* to, int64_t stride, int64_t n, const double* from) {
  store(dtype, to, stride, n, from);
}

void store_ints(DType dtype, void* to, int64_t stride, int64_t n, const int64_t* from) {
  store(dtype, to, stride, n, from);
}

void convert_range(const TensorView& from, int64_t begin, int64_t end, DType to_dtype, void* to) {
  constexpr int64_t kBlock = 512;
  const Space<1> space = space_of<1>({&from});
  const int64_t stride = space.inner_stride(0);
  const bool floats = is_floating(from.dtype);
  const int64_t size = static_cast<int64_t>(dtype_size(to_dtype));
  for_runs(space, begin, end, [&](const auto& offsets, int64_t count, int64_t linear) {
    double doubles[kBlock];
    int64_t ints[kBlock];
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t n = std::min(kBlock, count - i);
      const void* source = address(from, offsets[0] + i * stride);
      void* target = static_cast<char*>(to) + (linear - begin + i) * size;
      if (floats) {
        load_doubles(from.dtype, source, stride, n, doubles);
        store_doubles(to_dtype, target, 1, n, doubles);
      } else {
        load_ints(from.dtype, source, stride, n, ints);
        store_ints(to_dtype, target, 1, n, ints);
      }
    }
  });
}

}  // namespace gradwire::cpu
