// Tensors and launches for the tests of expressions and the pointwise kernel.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tile.h"
#include "kernels/error.h"
#include "kernels/expr/expr.h"
#include "kernels/half.h"

namespace gradwire {

inline constexpr DType kAllDTypes[] = {
    DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt64,
    DType::kInt32,   DType::kInt16,   DType::kInt8,    DType::kUInt8,    DType::kBool};
inline constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                    DType::kBFloat16};
inline constexpr DType kIntegers[] = {DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
                                      DType::kUInt8};

// Host memory with a geometry. Elements are read and written as double or int64.
class TestTensor {
 public:
  TestTensor() = default;
  explicit TestTensor(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides = {},
                      int64_t room = -1) {
    view_.dtype = dtype;
    view_.rank = static_cast<int>(sizes.size());
    int64_t expected = 1, last = 0;
    for (int d = view_.rank - 1; d >= 0; --d) {
      view_.sizes[d] = sizes[d];
      view_.strides[d] = strides.empty() ? expected : strides[d];
      expected *= sizes[d];
      if (sizes[d] > 0) last += (sizes[d] - 1) * view_.strides[d];
    }
    elements_ = room >= 0 ? room : last + 1;
    storage_.assign((elements_ * dtype_size(dtype) + 7) / 8 + 8, 0x5a5a5a5a5a5a5a5a);
    view_.data = storage_.data();
  }

  TensorView view() {
    view_.data = storage_.data();
    return view_;
  }
  DType dtype() const { return view_.dtype; }
  int64_t elements() const { return elements_; }
  int64_t numel() const { return view_.numel(); }
  std::span<const uint64_t> words() const { return storage_; }

  // The storage offset of the i-th element in row-major order.
  int64_t offset(int64_t i) const {
    int64_t at = 0;
    for (int d = view_.rank - 1; d >= 0; --d) {
      at += i % view_.sizes[d] * view_.strides[d];
      i /= view_.sizes[d];
    }
    return at;
  }

  template <class T>
  T& raw(int64_t storage_index) {
    return reinterpret_cast<T*>(storage_.data())[storage_index];
  }
  double number(int64_t i) { return number_at(offset(i)); }
  int64_t integer(int64_t i) { return integer_at(offset(i)); }
  void set(int64_t i, double v) { set_at(offset(i), v); }
  void set_integer(int64_t i, int64_t v) { set_integer_at(offset(i), v); }

  double number_at(int64_t at) {
    switch (dtype()) {
      case DType::kFloat32:
        return raw<float>(at);
      case DType::kFloat64:
        return raw<double>(at);
      case DType::kFloat16:
        return static_cast<float>(raw<Half>(at));
      case DType::kBFloat16:
        return static_cast<float>(raw<BFloat16>(at));
      default:
        return static_cast<double>(integer_at(at));
    }
  }
  int64_t integer_at(int64_t at) {
    switch (dtype()) {
      case DType::kInt64:
        return raw<int64_t>(at);
      case DType::kInt32:
        return raw<int32_t>(at);
      case DType::kInt16:
        return raw<int16_t>(at);
      case DType::kInt8:
        return raw<int8_t>(at);
      case DType::kUInt8:
      case DType::kBool:
        return raw<uint8_t>(at);
      default:
        return static_cast<int64_t>(number_at(at));
    }
  }
  void set_at(int64_t at, double v) {
    switch (dtype()) {
      case DType::kFloat32:
        raw<float>(at) = static_cast<float>(v);
        break;
      case DType::kFloat64:
        raw<double>(at) = v;
        break;
      case DType::kFloat16:
        raw<Half>(at) = Half(static_cast<float>(v));
        break;
      case DType::kBFloat16:
        raw<BFloat16>(at) = BFloat16(static_cast<float>(v));
        break;
      default:
        set_integer_at(at, static_cast<int64_t>(v));
    }
  }
  void set_integer_at(int64_t at, int64_t v) {
    switch (dtype()) {
      case DType::kInt64:
        raw<int64_t>(at) = v;
        break;
      case DType::kInt32:
        raw<int32_t>(at) = static_cast<int32_t>(v);
        break;
      case DType::kInt16:
        raw<int16_t>(at) = static_cast<int16_t>(v);
        break;
      case DType::kInt8:
        raw<int8_t>(at) = static_cast<int8_t>(v);
        break;
      case DType::kUInt8:
        raw<uint8_t>(at) = static_cast<uint8_t>(v);
        break;
      case DType::kBool:
        raw<uint8_t>(at) = v != 0;
        break;
      default:
        set_at(at, static_cast<double>(v));
    }
  }

  // Every element of the storage, also those that the view skips.
  void randomize(std::mt19937_64& rng, double least = -3, double most = 3) {
    std::uniform_real_distribution<double> real(least, most);
    for (int64_t at = 0; at < elements_; ++at) {
      if (is_floating(dtype())) {
        set_at(at, real(rng));
      } else {
        set_integer_at(at, dtype() == DType::kBool ? static_cast<int64_t>(rng() & 1)
                                                   : static_cast<int64_t>(rng() % 13) - 6);
      }
    }
  }

 private:
  TensorView view_;
  std::vector<uint64_t> storage_;
  int64_t elements_ = 0;
};

inline ScalarValue float_scalar(double v) {
  ScalarValue s;
  s.kind = ScalarValue::Kind::kFloat;
  s.f = v;
  return s;
}
inline ScalarValue int_scalar(int64_t v) {
  ScalarValue s;
  s.kind = ScalarValue::Kind::kInt;
  s.i = v;
  return s;
}

inline absl::Status launch(const expr::Program* program, std::vector<TensorView> inputs,
                           std::vector<TensorView> outputs, std::vector<ScalarValue> scalars = {},
                           int threads = 1) {
  static cpu::ThreadPool one(1);
  static cpu::ThreadPool two(2);
  cpu::Context context{threads == 1 ? one : two};
  KernelCall call;
  call.program = program;
  call.inputs.assign(inputs.begin(), inputs.end());
  call.outputs.assign(outputs.begin(), outputs.end());
  call.scalars.assign(scalars.begin(), scalars.end());
  return cpu::pointwise(call, context);
}

inline expr::OperandType tensor_of(DType dtype) {
  return {false, dtype};
}
inline expr::OperandType scalar_operand() {
  return {true, DType::kNone};
}

// Restores the processor's own instruction set at the end.
class IsaGuard {
 public:
  explicit IsaGuard(cpu::Isa isa) { cpu::select_isa(isa); }
  ~IsaGuard() {
    cpu::select_isa(cpu::isa_supported(cpu::Isa::kAvx512) ? cpu::Isa::kAvx512 : cpu::Isa::kAvx2);
  }
};

inline std::vector<cpu::Isa> isas() {
  std::vector<cpu::Isa> out{cpu::Isa::kAvx2};
  if (cpu::isa_supported(cpu::Isa::kAvx512)) out.push_back(cpu::Isa::kAvx512);
  return out;
}

}  // namespace gradwire
