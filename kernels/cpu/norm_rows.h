// Statistics and normalisation of rows without gaps.
#pragma once

#include <cmath>

#include "kernels/cpu/simd.h"

namespace gradwire::cpu {

template <class C>
C row_sum(const C* x, int64_t n) {
  return reduce_sum<C>(n,
                       [&](int64_t i, int64_t lanes) { return load_lanes<C>(x + i, lanes, C(0)); });
}

// sum of (x - center)^2
template <class C>
C row_deviation(const C* x, int64_t n, C center) {
  auto c = Simd<C>::set(center);
  return reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
    auto d = load_lanes<C>(x + i, lanes, center) - c;
    return d * d;
  });
}

// sum of g x
template <class C>
C row_dot(const C* g, const C* x, int64_t n) {
  return reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
    return load_lanes<C>(g + i, lanes, C(0)) * load_lanes<C>(x + i, lanes, C(0));
  });
}

// sum of g (x - center)
template <class C>
C row_centered_dot(const C* g, const C* x, int64_t n, C center) {
  auto c = Simd<C>::set(center);
  return reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
    return load_lanes<C>(g + i, lanes, C(0)) * (load_lanes<C>(x + i, lanes, center) - c);
  });
}

// y = (x - mean) scale + shift
template <class C>
void row_affine(const C* x, C* y, int64_t n, C mean, C scale, C shift) {
  auto m = Simd<C>::set(mean), a = Simd<C>::set(scale), b = Simd<C>::set(shift);
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    store_lanes<C>(y + i, lanes, Simd<C>::fma(load_lanes<C>(x + i, lanes, C(0)) - m, a, b));
  });
}

// dx = a g - b (x - mean) - c
template <class C>
void row_gradient(const C* g, const C* x, C* dx, int64_t n, C mean, C a, C b, C c) {
  using S = Simd<C>;
  auto vm = S::set(mean), va = S::set(a), vb = S::set(b), vc = S::set(c);
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    auto d = (load_lanes<C>(x + i, lanes, C(0)) - vm) * vb;
    store_lanes<C>(dx + i, lanes, (load_lanes<C>(g + i, lanes, C(0)) * va - d) - vc);
  });
}

template <class C>
struct RowStatistics {
  C mean;
  C rstd;
};

// Two passes: the mean, then the biased variance around it. n > 0.
template <class C>
RowStatistics<C> row_statistics(const C* x, int64_t n, double eps) {
  C mean = row_sum(x, n) / static_cast<C>(n);
  C variance = row_deviation(x, n, mean) / static_cast<C>(n);
  return {mean, C(1) / std::sqrt(variance + static_cast<C>(eps))};
}

}  // namespace gradwire::cpu
