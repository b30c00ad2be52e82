#include "kernels/cpu/philox.h"

#include <immintrin.h>

#include <cstring>

namespace gradwire::cpu {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;

void fill_scalar(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t* words) {
  for (int64_t i = 0; i < blocks; ++i) {
    const auto w = philox(seed, counter + static_cast<uint64_t>(i));
    std::memcpy(words + 4 * i, w.data(), sizeof w);
  }
}

// Each 64-bit lane holds one word of one block in its low half. The upper halves fill with
// garbage, which the 32 x 32 -> 64 multiplication ignores.
struct Block4 {
  __m256i x0, x1, x2, x3;
};

inline void round4(Block4& b, __m256i m0, __m256i m1, __m256i k0, __m256i k1) {
  const __m256i p0 = _mm256_mul_epu32(b.x0, m0);
  const __m256i p1 = _mm256_mul_epu32(b.x2, m1);
  b.x0 = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(b.x1, k0));
  b.x2 = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(b.x3, k1));
  b.x1 = p1;
  b.x3 = p0;
}

inline void store4(const Block4& b, uint32_t* words) {
  const __m256i w01 = _mm256_blend_epi32(b.x0, _mm256_slli_epi64(b.x1, 32), 0xAA);
  const __m256i w23 = _mm256_blend_epi32(b.x2, _mm256_slli_epi64(b.x3, 32), 0xAA);
  const __m256i even = _mm256_unpacklo_epi64(w01, w23);
  const __m256i odd = _mm256_unpackhi_epi64(w01, w23);
  __m256i* out = reinterpret_cast<__m256i*>(words);
  _mm256_storeu_si256(out, _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

int64_t fill_avx2(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t* words) {
  const __m256i m0 = _mm256_set1_epi64x(kMultiplier0), m1 = _mm256_set1_epi64x(kMultiplier1);
  const __m256i zero = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 8 <= blocks; i += 8) {
    const long long at = static_cast<long long>(counter + static_cast<uint64_t>(i));
    const __m256i c = _mm256_add_epi64(_mm256_set1_epi64x(at), _mm256_setr_epi64x(0, 1, 2, 3));
    const __m256i d = _mm256_add_epi64(c, _mm256_set1_epi64x(4));
    Block4 a{c, _mm256_srli_epi64(c, 32), zero, zero};
    Block4 b{d, _mm256_srli_epi64(d, 32), zero, zero};
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
      round4(a, m0, m1, key0, key1);
      round4(b, m0, m1, key0, key1);
      k0 += kWeyl0;
      k1 += kWeyl1;
    }
    store4(a, words + 4 * i);
    store4(b, words + 4 * i + 16);
  }
  return i;
}

// GCC 12 warns of its own header's deliberately undefined pass-through operands.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define GW_AVX512 __attribute__((target("avx512f")))

struct Block8 {
  __m512i x0, x1, x2, x3;
};

GW_AVX512 inline void round8(Block8& b, __m512i m0, __m512i m1, __m512i k0, __m512i k1) {
  const __m512i p0 = _mm512_mul_epu32(b.x0, m0);
  const __m512i p1 = _mm512_mul_epu32(b.x2, m1);
  b.x0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), b.x1, k0, 0x96);
  b.x2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), b.x3, k1, 0x96);
  b.x1 = p1;
  b.x3 = p0;
}

GW_AVX512 inline void store8(const Block8& b, uint32_t* words) {
  const __m512i w01 = _mm512_mask_blend_epi32(0xAAAA, b.x0, _mm512_slli_epi64(b.x1, 32));
  const __m512i w23 = _mm512_mask_blend_epi32(0xAAAA, b.x2, _mm512_slli_epi64(b.x3, 32));
  const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  _mm512_storeu_si512(words, _mm512_permutex2var_epi64(w01, low, w23));
  _mm512_storeu_si512(words + 16, _mm512_permutex2var_epi64(w01, high, w23));
}

GW_AVX512 int64_t fill_avx512(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t* words) {
  const __m512i m0 = _mm512_set1_epi64(kMultiplier0), m1 = _mm512_set1_epi64(kMultiplier1);
  const __m512i zero = _mm512_setzero_si512();
  int64_t i = 0;
  for (; i + 16 <= blocks; i += 16) {
    const long long at = static_cast<long long>(counter + static_cast<uint64_t>(i));
    const __m512i c =
        _mm512_add_epi64(_mm512_set1_epi64(at), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    const __m512i d = _mm512_add_epi64(c, _mm512_set1_epi64(8));
    Block8 a{c, _mm512_srli_epi64(c, 32), zero, zero};
    Block8 b{d, _mm512_srli_epi64(d, 32), zero, zero};
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m512i key0 = _mm512_set1_epi64(k0), key1 = _mm512_set1_epi64(k1);
      round8(a, m0, m1, key0, key1);
      round8(b, m0, m1, key0, key1);
      k0 += kWeyl0;
      k1 += kWeyl1;
    }
    store8(a, words + 4 * i);
    store8(b, words + 4 * i + 32);
  }
  return i;
}

}  // namespace

void philox_fill(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t* words) {
  static const bool avx512 = __builtin_cpu_supports("avx512f");
  const int64_t done =
      avx512 ? fill_avx512(seed, counter, blocks, words) : fill_avx2(seed, counter, blocks, words);
  fill_scalar(seed, counter + static_cast<uint64_t>(done), blocks - done, words + 4 * done);
}

}  // namespace gradwire::cpu
