// Eight floats or four doubles at a time (AVX2 and FMA, the baseline of the build), and the
// reductions of a row. A row's result depends on its length and values alone.
#pragma once

#include <immintrin.h>
#include <sleef.h>

#include <cstdint>
#include <cstring>

namespace gradwire::cpu {

template <class C>
struct Simd;

template <>
struct Simd<float> {
  using V = __m256;
  static constexpr int kLanes = 8;
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V set(float f) { return _mm256_set1_ps(f); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  // The second operand when either is NaN.
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  // NaN when either is.
  static V max_nan(V a, V b) {
    return _mm256_blendv_ps(max(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
  static V sqrt(V a) { return _mm256_sqrt_ps(a); }
  static V exp(V a) { return Sleef_expf8_u10avx2(a); }
  static V tanh(V a) { return Sleef_tanhf8_u10avx2(a); }
};

template <>
struct Simd<double> {
  using V = __m256d;
  static constexpr int kLanes = 4;
  static V load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  static V set(double f) { return _mm256_set1_pd(f); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static V max(V a, V b) { return _mm256_max_pd(a, b); }
  static V max_nan(V a, V b) {
    return _mm256_blendv_pd(max(a, b), a, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
  }
  static V sqrt(V a) { return _mm256_sqrt_pd(a); }
  static V exp(V a) { return Sleef_expd4_u10avx2(a); }
  static V tanh(V a) { return Sleef_tanhd4_u10avx2(a); }
};

// The first n lanes from p, the others `fill`.
template <class C>
typename Simd<C>::V load_part(const C* p, int64_t n, C fill) {
  C lanes[Simd<C>::kLanes];
  for (C& lane : lanes) lane = fill;
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(C));
  return Simd<C>::load(lanes);
}

template <class C>
void store_part(C* p, int64_t n, typename Simd<C>::V v) {
  C lanes[Simd<C>::kLanes];
  Simd<C>::store(lanes, v);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(C));
}

template <class C>
C sum_lanes(typename Simd<C>::V v) {
  C lanes[Simd<C>::kLanes];
  Simd<C>::store(lanes, v);
  for (int width = Simd<C>::kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

template <class C>
C max_lanes(typename Simd<C>::V v) {
  C lanes[Simd<C>::kLanes];
  Simd<C>::store(lanes, v);
  C best = lanes[0];
  for (C lane : lanes) best = lane > best ? lane : best;
  return best;
}

// Sums f(i, v...) over vectors of a row: f takes the index of the first lane and the lanes in use
// and returns a vector whose unused lanes are 0. Four partial sums, added in one order.
template <class C, class F>
C reduce_sum(int64_t n, F&& f) {
  constexpr int64_t kL = Simd<C>::kLanes;
  typename Simd<C>::V s[4] = {Simd<C>::set(0), Simd<C>::set(0), Simd<C>::set(0), Simd<C>::set(0)};
  int64_t i = 0;
  for (; i + 4 * kL <= n; i += 4 * kL) {
    for (int u = 0; u < 4; ++u) s[u] = s[u] + f(i + u * kL, kL);
  }
  for (; i + kL <= n; i += kL) s[0] = s[0] + f(i, kL);
  if (i < n) s[1] = s[1] + f(i, n - i);
  return sum_lanes<C>((s[0] + s[1]) + (s[2] + s[3]));
}

template <class C>
typename Simd<C>::V load_lanes(const C* p, int64_t lanes, C fill) {
  return lanes == Simd<C>::kLanes ? Simd<C>::load(p) : load_part<C>(p, lanes, fill);
}

template <class C>
void store_lanes(C* p, int64_t lanes, typename Simd<C>::V v) {
  if (lanes == Simd<C>::kLanes) {
    Simd<C>::store(p, v);
  } else {
    store_part<C>(p, lanes, v);
  }
}

// Calls f(i, lanes) over a row, `lanes` short only at the end.
template <class C, class F>
void for_lanes(int64_t n, F&& f) {
  constexpr int64_t kL = Simd<C>::kLanes;
  int64_t i = 0;
  for (; i + kL <= n; i += kL) f(i, kL);
  if (i < n) f(i, n - i);
}

// The greatest of n > 0 elements, NaN left out; -inf for a row of NaN.
template <class C>
C row_max(const C* p, int64_t n) {
  constexpr int64_t kL = Simd<C>::kLanes;
  const C low = -__builtin_inf();
  typename Simd<C>::V m[4] = {Simd<C>::set(low), Simd<C>::set(low), Simd<C>::set(low),
                              Simd<C>::set(low)};
  int64_t i = 0;
  for (; i + 4 * kL <= n; i += 4 * kL) {
    for (int u = 0; u < 4; ++u) m[u] = Simd<C>::max(Simd<C>::load(p + i + u * kL), m[u]);
  }
  for (; i < n; i += kL) {
    int64_t lanes = n - i < kL ? n - i : kL;
    m[0] = Simd<C>::max(load_lanes<C>(p + i, lanes, low), m[0]);
  }
  return max_lanes<C>(Simd<C>::max(Simd<C>::max(m[0], m[1]), Simd<C>::max(m[2], m[3])));
}

}  // namespace gradwire::cpu
