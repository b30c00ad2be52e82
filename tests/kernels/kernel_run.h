// Running one CPU kernel on tensors of any geometry and dtype, and looking at what came out.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu::testing {

enum class Layout {
  kPlain,      // row-major
  kReversed,   // the first dimension innermost
  kChannels,   // the second dimension innermost
  kGaps,       // every stride twice what it needs
  kBroadcast,  // the first dimension has stride 0; inputs only
};

inline const std::vector<Layout> kOutputLayouts = {Layout::kPlain, Layout::kReversed,
                                                   Layout::kChannels, Layout::kGaps};
inline const std::vector<Layout> kInputLayouts = {
    Layout::kPlain, Layout::kReversed, Layout::kChannels, Layout::kGaps, Layout::kBroadcast};
inline const std::vector<DType> kFloats = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                           DType::kBFloat16};

using Sizes = std::vector<int64_t>;

// A tensor that owns its memory.
class Array {
 public:
  Array() = default;  // absent
  Array(DType dtype, const Sizes& sizes, Layout layout = Layout::kPlain) {
    view_.dtype = dtype;
    view_.rank = static_cast<int>(sizes.size());
    std::vector<int> order;  // outermost first
    for (int d = 0; d < view_.rank; ++d) order.push_back(d);
    if (layout == Layout::kReversed) order = {order.rbegin(), order.rend()};
    if (layout == Layout::kChannels && view_.rank > 1) {
      order.erase(order.begin() + 1);
      order.push_back(1);
    }
    int64_t step = layout == Layout::kGaps ? 2 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      int d = order[i];
      view_.sizes[d] = sizes[d];
      view_.strides[d] = step;
      if (layout == Layout::kBroadcast && d == 0) {
        view_.strides[d] = 0;
        continue;
      }
      step *= std::max<int64_t>(sizes[d], 1);
    }
    memory_.assign(static_cast<size_t>(step * 2 + 16) * dtype_size(dtype), 0xff);
  }

  TensorView view() const {
    TensorView v = view_;
    v.data = const_cast<uint8_t*>(memory_.data());
    return v;
  }
  int64_t size() const { return view_.numel(); }
  double get(int64_t i) const {
    TensorView v = view();
    if (v.dtype == DType::kInt64) return static_cast<double>(integer(i));
    return read_element(v, map_dims(v, 0, v.rank).offset(i));
  }
  int64_t integer(int64_t i) const {
    return view().as<int64_t>()[map_dims(view_, 0, view_.rank).offset(i)];
  }
  void set(int64_t i, double x) {
    write_element(view(), map_dims(view_, 0, view_.rank).offset(i), x);
  }
  Array& fill(double x) {
    for (int64_t i = 0; i < size(); ++i) set(i, x);
    return *this;
  }
  Array& random(unsigned seed, double low = -1, double high = 1) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> numbers(low, high);
    for (int64_t i = 0; i < size(); ++i) set(i, numbers(generator));
    return *this;
  }
  Array& random_integers(unsigned seed, int64_t low, int64_t high) {
    std::mt19937 generator(seed);
    std::uniform_int_distribution<int64_t> numbers(low, high);
    for (int64_t i = 0; i < size(); ++i) set(i, static_cast<double>(numbers(generator)));
    return *this;
  }
  std::vector<double> values() const {
    std::vector<double> out;
    for (int64_t i = 0; i < size(); ++i) out.push_back(get(i));
    return out;
  }
  const std::vector<uint8_t>& memory() const { return memory_; }

 private:
  TensorView view_;
  std::vector<uint8_t> memory_;
};

inline DType compute_dtype(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

// Relative to 1 + |expected|.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-11;
    case DType::kFloat32:
      return 2e-5;
    case DType::kFloat16:
      return 4e-3;
    default:
      return 3e-2;
  }
}

inline absl::Status launch(const std::string& name, const std::vector<Array*>& inputs,
                           const std::vector<Array*>& outputs, const AttributeList& attributes,
                           ThreadPool& pool) {
  KernelCall call;
  call.kernel = find_kernel(name);
  if (call.kernel == 0) return internal_error("no kernel ", name);
  for (Array* a : inputs) call.inputs.push_back(a ? a->view() : TensorView{});
  for (Array* a : outputs) call.outputs.push_back(a ? a->view() : TensorView{});
  call.attributes = attributes;
  Context context{pool};
  return kernel_at(call.kernel)(call, context);
}

// Runs with one thread and with three on equal memory; the results must be the same bits. Tensors
// that are inputs and outputs are updated in place.
inline absl::Status run(const std::string& name, const std::vector<Array*>& inputs,
                        const std::vector<Array*>& outputs, const AttributeList& attributes = {}) {
  static ThreadPool one(1);
  static ThreadPool three(3);
  std::vector<Array> before;
  for (Array* a : outputs) before.push_back(a ? *a : Array());
  absl::Status status = launch(name, inputs, outputs, attributes, one);
  std::vector<Array> after;
  for (size_t i = 0; i < outputs.size(); ++i) {
    after.push_back(outputs[i] ? *outputs[i] : Array());
    if (outputs[i]) *outputs[i] = before[i];
  }
  absl::Status again = launch(name, inputs, outputs, attributes, three);
  EXPECT_EQ(status.ok(), again.ok()) << name;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    EXPECT_EQ(after[i].memory(), outputs[i]->memory()) << name << " output " << i;
  }
  return status;
}

inline void expect_near(const Array& got, const std::vector<double>& expected, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(expected.size())) << what;
  for (int64_t i = 0; i < got.size(); ++i) {
    double x = got.get(i), y = expected[i];
    if (std::isnan(y) && std::isnan(x)) continue;
    if (x == y) continue;
    ASSERT_LE(std::abs(x - y), tolerance * (1 + std::abs(y)))
        << what << ": element " << i << " is " << x << ", not " << y;
  }
}

inline std::string label(DType dtype, Layout in, Layout out) {
  return std::string(dtype_name(dtype)) + " layouts " + std::to_string(static_cast<int>(in)) +
         " to " + std::to_string(static_cast<int>(out));
}

// Calls f(dtype, input layout, output layout) for all of them.
template <class F>
void for_all(F&& f) {
  for (DType dtype : kFloats) {
    for (Layout in : kInputLayouts) {
      for (Layout out : kOutputLayouts) f(dtype, in, out);
    }
  }
}

}  // namespace gradwire::cpu::testing
