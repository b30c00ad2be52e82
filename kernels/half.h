// Storage-only 16-bit floats. Arithmetic is done in float32; rounding is to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace gradwire {

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float f) {
    uint32_t u = std::bit_cast<uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x0040u);  // a quiet NaN stays a NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit Half(float f) : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(f))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};

}  // namespace gradwire
