// Tensors of any dtype and layout for kernel tests, read and written as doubles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {

inline constexpr DType kAllDTypes[] = {
    DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt64,
    DType::kInt32,   DType::kInt16,   DType::kInt8,    DType::kUInt8,    DType::kBool};
inline constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                    DType::kBFloat16};

enum class Layout { kDense, kReversed, kGapped, kBroadcast };  // kBroadcast: dim 0 has stride 0
inline constexpr Layout kOutLayouts[] = {Layout::kDense, Layout::kReversed, Layout::kGapped};
inline constexpr Layout kInLayouts[] = {Layout::kDense, Layout::kReversed, Layout::kGapped,
                                        Layout::kBroadcast};

struct Tensor {
  TensorView view;
  std::vector<char> storage;
  Space<1> space;

  Tensor(DType dtype, std::vector<int64_t> sizes, Layout layout = Layout::kDense) {
    view.dtype = dtype;
    view.rank = static_cast<int>(sizes.size());
    int64_t stride = layout == Layout::kGapped ? 2 : 1;
    for (int i = 0; i < view.rank; ++i) {
      const int d = layout == Layout::kReversed ? i : view.rank - 1 - i;
      view.sizes[d] = sizes[d];
      view.strides[d] = stride;
      stride *= std::max<int64_t>(sizes[d], 1);
    }
    if (layout == Layout::kBroadcast && view.rank > 0) view.strides[0] = 0;
    storage.resize(static_cast<size_t>(stride + 1) * dtype_size(dtype) * 2, 0x55);
    view.data = storage.data();
    space = space_of<1>({&view});
  }
  Tensor(const Tensor&) = delete;

  int64_t numel() const { return view.numel(); }
  double get(int64_t i) const {
    double v;
    load_doubles(view.dtype, address(view, space.offsets_of(i)[0]), 1, 1, &v);
    return v;
  }
  void set(int64_t i, double v) {
    store_doubles(view.dtype, address(view, space.offsets_of(i)[0]), 1, 1, &v);
  }
  Tensor& fill(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) set(static_cast<int64_t>(i), values[i]);
    return *this;
  }
  // Small whole numbers with ties and zeros; negative ones where the dtype has them.
  Tensor& pattern(uint64_t seed = 1) {
    for (int64_t i = 0; i < numel(); ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      double v = static_cast<double>(seed >> 33 & 7) - 3;
      if (view.dtype == DType::kUInt8 || view.dtype == DType::kBool) v = std::abs(v);
      set(i, v);
    }
    return *this;
  }
  std::vector<double> values() const {
    std::vector<double> v;
    for (int64_t i = 0; i < numel(); ++i) v.push_back(get(i));
    return v;
  }
};

struct Launch {
  KernelCall call;

  Launch& in(const Tensor& t) {
    call.inputs.push_back(t.view);
    return *this;
  }
  Launch& out(const Tensor& t) {
    call.outputs.push_back(t.view);
    return *this;
  }
  Launch& inout(const Tensor& t) { return in(t).out(t); }
  // Not inline: GCC 12 sees uninitialised variants where there are none.
  __attribute__((noinline)) Launch& attr(const Attribute& a) {
    call.attributes.push_back(a);
    return *this;
  }
  Launch& scalar(double v) {
    ScalarValue s;
    s.f = v;
    call.scalars.push_back(s);
    return *this;
  }
  Launch& stream(uint64_t seed, uint64_t offset) {
    call.seed = seed;
    call.offset = offset;
    return *this;
  }
  absl::Status run(const char* name, int threads = 1) {
    call.kernel = find_kernel(name);
    if (call.kernel == 0) return internal_error("no kernel ", name);
    static ThreadPool one(1), two(2);
    Context context{threads == 1 ? one : two};
    return kernel_at(call.kernel)(call, context);
  }
};

inline std::string trace(DType dtype, Layout layout) {
  return std::string(dtype_name(dtype)) + " layout " + std::to_string(static_cast<int>(layout));
}

// Equal, with NaN equal to NaN.
inline bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// The index along each dim of a linear index.
inline std::vector<int64_t> unravel(const TensorView& v, int64_t linear) {
  std::vector<int64_t> index(v.rank);
  for (int d = v.rank - 1; d >= 0; --d) {
    index[d] = linear % v.sizes[d];
    linear /= v.sizes[d];
  }
  return index;
}
inline int64_t ravel(const TensorView& v, const std::vector<int64_t>& index) {
  int64_t linear = 0;
  for (int d = 0; d < v.rank; ++d) linear = linear * v.sizes[d] + index[d];
  return linear;
}

}  // namespace gradwire::cpu
