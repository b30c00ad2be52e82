#include "kernels/cpu/pointwise_scalar.h"

#include <bit>
#include <limits>

namespace gradwire::cpu {
namespace {

template <class T>
uint64_t integer_bits(double value) {
  constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double kMost = static_cast<double>(std::numeric_limits<T>::max());
  T v = 0;
  if (value >= kMost) {
    v = std::numeric_limits<T>::max();
  } else if (value <= kLeast) {
    v = std::numeric_limits<T>::min();
  } else if (value == value) {
    v = static_cast<T>(value);
  }
  return static_cast<uint64_t>(static_cast<int64_t>(v));
}

}  // namespace

uint64_t constant_bits(double value, DType type) {
  switch (type) {
    case DType::kFloat32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::kFloat64:
      return std::bit_cast<uint64_t>(value);
    case DType::kInt64:
      return integer_bits<int64_t>(value);
    case DType::kInt32:
      return integer_bits<int32_t>(value);
    case DType::kInt16:
      return integer_bits<int16_t>(value);
    case DType::kInt8:
      return integer_bits<int8_t>(value);
    case DType::kUInt8:
      return integer_bits<uint8_t>(value);
    default:
      return value != 0;
  }
}

uint64_t scalar_bits(const ScalarValue& scalar, DType type) {
  if (scalar.kind == ScalarValue::Kind::kFloat) return constant_bits(scalar.f, type);
  switch (type) {
    case DType::kFloat32:
      return std::bit_cast<uint32_t>(static_cast<float>(scalar.i));
    case DType::kFloat64:
      return std::bit_cast<uint64_t>(static_cast<double>(scalar.i));
    case DType::kBool:
      return scalar.i != 0;
    default:
      return static_cast<uint64_t>(scalar.i);
  }
}

}  // namespace gradwire::cpu
