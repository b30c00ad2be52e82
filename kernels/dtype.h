// Element types of tensors, shared by every layer. The numbers are wire values: never renumber.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradwire {

enum class DType : uint8_t {
  kNone = 0,  // "no dtype given"; never the dtype of a tensor
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,
  kBFloat16 = 4,
  kInt64 = 5,
  kInt32 = 6,
  kInt16 = 7,
  kInt8 = 8,
  kUInt8 = 9,
  kBool = 10,
  // 11 and 12 are reserved for complex64 and complex128.
};

inline constexpr int kDTypeCount = 11;  // kNone included: a size for tables indexed by DType

// Bytes of one element; 0 for kNone and unknown values.
constexpr size_t dtype_size(DType t) {
  switch (t) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
      return 2;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      return 1;
    case DType::kNone:
      return 0;
  }
  return 0;
}

constexpr bool is_floating(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 ||
         t == DType::kBFloat16;
}

// Signed and unsigned integers; bool is not integral here.
constexpr bool is_integral(DType t) {
  return t == DType::kInt64 || t == DType::kInt32 || t == DType::kInt16 || t == DType::kInt8 ||
         t == DType::kUInt8;
}

// torch's spelling ("float32"); "none" for kNone and unknown values.
constexpr std::string_view dtype_name(DType t) {
  switch (t) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt64:
      return "int64";
    case DType::kInt32:
      return "int32";
    case DType::kInt16:
      return "int16";
    case DType::kInt8:
      return "int8";
    case DType::kUInt8:
      return "uint8";
    case DType::kBool:
      return "bool";
    case DType::kNone:
      return "none";
  }
  return "none";
}

// True for the ten dtypes a tensor may have; false for kNone and for numbers from a hostile wire.
constexpr bool is_valid(DType t) {
  return dtype_size(t) != 0;
}

}  // namespace gradwire
