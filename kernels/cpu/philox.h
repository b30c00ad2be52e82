// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): random words from a key and a counter, so that
// any part of a tensor can be made by itself.
#pragma once

#include <array>
#include <cstdint>

namespace gradwire::cpu {

// The four words of one counter; the counter's upper 64 bits are 0.
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter) {
  uint32_t x0 = static_cast<uint32_t>(counter), x1 = static_cast<uint32_t>(counter >> 32);
  uint32_t x2 = 0, x3 = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * x0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * x2;
    x0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<uint32_t>(p1);
    x2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {x0, x1, x2, x3};
}

// words[4 * i .. 4 * i + 3] = philox(seed, counter + i) for i < blocks. Vectorised.
void philox_fill(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t* words);

}  // namespace gradwire::cpu
