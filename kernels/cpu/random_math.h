// Logarithm and sine pair on eight floats, for the distributions; the polynomials are Cephes'
// (Moshier), about 1 ulp. Every lane has the same bits on every machine: FMA is written out.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace gradwire::cpu {

// Natural logarithm of positive normal numbers.
inline __m256 log8(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2))
  const __m256i shifted = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3));
  const __m256 e = _mm256_cvtepi32_ps(_mm256_srai_epi32(shifted, 23));
  const __m256i mantissa = _mm256_sub_epi32(
      bits, _mm256_and_si256(shifted, _mm256_set1_epi32(static_cast<int>(0xff800000u))));
  const __m256 f = _mm256_sub_ps(_mm256_castsi256_ps(mantissa), _mm256_set1_ps(1.0f));
  const __m256 z = _mm256_mul_ps(f, f);
  __m256 p = _mm256_set1_ps(7.0376836292e-2f);
  for (float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                  -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(c));
  }
  p = _mm256_mul_ps(_mm256_mul_ps(p, z), f);
  p = _mm256_fmadd_ps(e, _mm256_set1_ps(-2.12194440e-4f), p);
  p = _mm256_fnmadd_ps(_mm256_set1_ps(0.5f), z, p);
  return _mm256_fmadd_ps(e, _mm256_set1_ps(0.693359375f), _mm256_add_ps(f, p));
}

// sin and cos of pi * t for t in [-1, 1].
inline void sincospi8(__m256 t, __m256* sine, __m256* cosine) {
  const __m256 twice = _mm256_add_ps(t, t);
  const __m256 q = _mm256_round_ps(twice, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256i quadrant = _mm256_cvtps_epi32(q);
  const __m256 x = _mm256_mul_ps(_mm256_fnmadd_ps(q, _mm256_set1_ps(0.5f), t),
                                 _mm256_set1_ps(3.14159265358979f));
  const __m256 z = _mm256_mul_ps(x, x);
  __m256 s = _mm256_set1_ps(-1.9515295891e-4f);
  s = _mm256_fmadd_ps(s, z, _mm256_set1_ps(8.3321608736e-3f));
  s = _mm256_fmadd_ps(s, z, _mm256_set1_ps(-1.6666654611e-1f));
  s = _mm256_fmadd_ps(_mm256_mul_ps(s, z), x, x);
  __m256 c = _mm256_set1_ps(2.443315711809948e-5f);
  c = _mm256_fmadd_ps(c, z, _mm256_set1_ps(-1.388731625493765e-3f));
  c = _mm256_fmadd_ps(c, z, _mm256_set1_ps(4.166664568298827e-2f));
  c = _mm256_fmadd_ps(_mm256_mul_ps(c, z), z,
                      _mm256_fnmadd_ps(_mm256_set1_ps(0.5f), z, _mm256_set1_ps(1.0f)));
  const __m256 swap = _mm256_castsi256_ps(_mm256_slli_epi32(quadrant, 31));
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i sign_s = _mm256_slli_epi32(_mm256_srli_epi32(quadrant, 1), 31);
  const __m256i sign_c =
      _mm256_slli_epi32(_mm256_srli_epi32(_mm256_add_epi32(quadrant, one), 1), 31);
  *sine = _mm256_xor_ps(_mm256_blendv_ps(s, c, swap), _mm256_castsi256_ps(sign_s));
  *cosine = _mm256_xor_ps(_mm256_blendv_ps(c, s, swap), _mm256_castsi256_ps(sign_c));
}

// (0, 1] from 32 random bits: multiples of 2^-31 plus half a step.
inline __m256 open_uniform8(__m256i words) {
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(words, 1)), _mm256_set1_ps(0x1p-31f),
                         _mm256_set1_ps(0x1p-32f));
}

// (0, 1] and [0, 1) from the two words of a 64-bit element.
inline uint64_t word64(const uint32_t* words) {
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}
inline double uniform64(const uint32_t* words) {
  return static_cast<double>(word64(words) >> 11) * 0x1p-53;
}
inline double open_uniform64(const uint32_t* words) {
  return static_cast<double>((word64(words) >> 11) + 1) * 0x1p-53;
}

}  // namespace gradwire::cpu
