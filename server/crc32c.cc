#include "server/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace gradwire::server {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected
// The instruction takes three cycles but can start every cycle: three streams of this many bytes
// run side by side.
constexpr size_t kLane = 4096;

// Multiplies a CRC by x^(8 * kLane): what appending kLane zero bytes does to it, as four tables.
using Shift = std::array<std::array<uint32_t, 256>, 4>;

uint32_t times(const std::array<uint32_t, 32>& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (int i = 0; vector; ++i, vector >>= 1) {
    if (vector & 1) sum ^= matrix[i];
  }
  return sum;
}

Shift make_shift(size_t zero_bytes) {
  std::array<uint32_t, 32> power;  // appends one zero bit
  power[0] = kPolynomial;
  for (int i = 1; i < 32; ++i) power[i] = 1u << (i - 1);
  // kLane is a power of two: square until the matrix appends zero_bytes * 8 zero bits.
  for (size_t bits = 1; bits < zero_bytes * 8; bits *= 2) {
    std::array<uint32_t, 32> square;
    for (int i = 0; i < 32; ++i) square[i] = times(power, power[i]);
    power = square;
  }
  Shift shift;
  for (int byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value) {
      shift[byte][value] = times(power, value << (8 * byte));
    }
  }
  return shift;
}

uint32_t apply(const Shift& shift, uint64_t crc) {
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^
         shift[3][crc >> 24 & 0xff];
}

uint64_t load(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

uint32_t crc32c(uint32_t crc, const void* data, size_t bytes) {
  static const Shift shift = make_shift(kLane);
  const char* at = static_cast<const char*>(data);
  uint64_t sum = ~crc;
  while (bytes >= 3 * kLane) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      sum = _mm_crc32_u64(sum, load(at + i));
      second = _mm_crc32_u64(second, load(at + kLane + i));
      third = _mm_crc32_u64(third, load(at + 2 * kLane + i));
    }
    sum = apply(shift, sum) ^ second;
    sum = apply(shift, sum) ^ third;
    at += 3 * kLane;
    bytes -= 3 * kLane;
  }
  for (; bytes >= 8; at += 8, bytes -= 8) sum = _mm_crc32_u64(sum, load(at));
  uint32_t rest = static_cast<uint32_t>(sum);
  for (; bytes > 0; ++at, --bytes) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*at));
  return ~rest;
}

}  // namespace gradwire::server
