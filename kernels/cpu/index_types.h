// Element types of the CPU kernels: dispatch from DType and conversion between any two.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/attribute.h"
#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "kernels/half.h"

namespace gradwire::cpu {

// bool in memory: any nonzero byte is true, whatever a client uploaded.
struct Bool8 {
  uint8_t bits = 0;
};

template <class T>
struct Type {
  using type = T;
};

template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// What arithmetic sees of a T: float for 16-bit floats, 0 or 1 for bool.
template <class T>
using Wide = std::conditional_t<is_half_v<T>, float,
                                std::conditional_t<std::is_same_v<T, Bool8>, uint8_t, T>>;

template <class T>
Wide<T> widen(T v) {
  if constexpr (is_half_v<T>) {
    return static_cast<float>(v);
  } else if constexpr (std::is_same_v<T, Bool8>) {
    return v.bits != 0;
  } else {
    return v;
  }
}

// C's conversion; float to int saturates and takes NaN to 0.
template <class To, class From>
To convert(From from) {
  const auto v = widen(from);
  using V = decltype(widen(from));
  if constexpr (is_half_v<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, Bool8>) {
    return Bool8{static_cast<uint8_t>(v != 0)};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<V>) {
    constexpr V low = static_cast<V>(std::numeric_limits<To>::min());
    constexpr V high = static_cast<V>(std::numeric_limits<To>::max());
    if (!(v == v)) return 0;
    if (v <= low) return std::numeric_limits<To>::min();
    if (v >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

// Calls f(Type<T>{}) with the element type of a valid dtype.
template <class F>
auto dispatch_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat64:
      return f(Type<double>{});
    case DType::kFloat16:
      return f(Type<Half>{});
    case DType::kBFloat16:
      return f(Type<BFloat16>{});
    case DType::kInt64:
      return f(Type<int64_t>{});
    case DType::kInt32:
      return f(Type<int32_t>{});
    case DType::kInt16:
      return f(Type<int16_t>{});
    case DType::kInt8:
      return f(Type<int8_t>{});
    case DType::kUInt8:
      return f(Type<uint8_t>{});
    case DType::kBool:
      return f(Type<Bool8>{});
    default:
      return f(Type<float>{});
  }
}

// The same for kernels that only move elements: an unsigned integer of the dtype's size.
template <class F>
auto dispatch_size(DType dtype, F&& f) {
  switch (dtype_size(dtype)) {
    case 1:
      return f(Type<uint8_t>{});
    case 2:
      return f(Type<uint16_t>{});
    case 4:
      return f(Type<uint32_t>{});
    default:
      return f(Type<uint64_t>{});
  }
}

// An attribute of the call; None when it was not given.
inline const Attribute& attribute(const KernelCall& call, size_t i) {
  static const Attribute none;
  return i < call.attributes.size() ? call.attributes[i] : none;
}

// A number given as scalar 0 or, failing that, as attribute `i`.
inline ScalarValue number(const KernelCall& call, size_t i) {
  if (!call.scalars.empty()) return call.scalars[0];
  const Attribute& a = attribute(call, i);
  ScalarValue s;
  s.kind = a.is_float() ? ScalarValue::Kind::kFloat : ScalarValue::Kind::kInt;
  s.i = a.as_int();
  s.f = a.as_double();
  return s;
}

template <class T>
T number_as(const ScalarValue& s) {
  if (s.kind == ScalarValue::Kind::kFloat) return convert<T>(s.f);
  return convert<T>(s.i);
}

// The address of the element at `offset`.
inline void* address(const TensorView& view, int64_t offset) {
  return static_cast<char*>(view.data) + offset * static_cast<int64_t>(dtype_size(view.dtype));
}

}  // namespace gradwire::cpu
