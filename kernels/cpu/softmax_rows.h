// Softmax over rows without gaps, in place or not, and the log of a row's sum of exponentials.
#pragma once

#include <cmath>

#include "kernels/cpu/simd.h"

namespace gradwire::cpu {

// max + log(sum of exp(x - max)); one pass over memory, a block at a time. n > 0. A row of -inf
// gives -inf, NaN anywhere or +inf with company gives what the formula gives.
template <class C>
C log_sum_exp(const C* x, int64_t n) {
  using S = Simd<C>;
  constexpr int64_t kBlock = 2048;
  C best = -__builtin_inf();
  C sum = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    int64_t m = n - first < kBlock ? n - first : kBlock;
    const C* p = x + first;
    C block_max = row_max(p, m);
    if (block_max > best) {
      sum *= std::exp(best - block_max);
      best = block_max;
    }
    // With best still -inf only NaN can add something.
    C shift = best == -static_cast<C>(__builtin_inf()) ? C(0) : best;
    auto vshift = S::set(shift);
    sum += reduce_sum<C>(m, [&](int64_t i, int64_t lanes) {
      return S::exp(load_lanes<C>(p + i, lanes, -__builtin_inf()) - vshift);
    });
  }
  if (best == -static_cast<C>(__builtin_inf())) return sum == 0 ? best : std::log(sum);
  return best + std::log(sum);
}

// A row whose elements are all -inf gives NaN.
template <class C>
void softmax_row(const C* x, C* y, int64_t n) {
  using S = Simd<C>;
  auto max = S::set(row_max(x, n));
  C sum = reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
    auto e = S::exp(load_lanes<C>(x + i, lanes, -__builtin_inf()) - max);
    store_lanes<C>(y + i, lanes, e);
    // A short vector's idle lanes are exp(-inf - max), which is NaN for a row of -inf: so is the
    // sum, as it must be.
    return e;
  });
  auto scale = S::set(C(1) / sum);
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    store_lanes<C>(y + i, lanes, load_lanes<C>(y + i, lanes, C(0)) * scale);
  });
}

template <class C>
void log_softmax_row(const C* x, C* y, int64_t n) {
  using S = Simd<C>;
  C best = row_max(x, n);
  auto max = S::set(best);
  C sum = reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
    return S::exp(load_lanes<C>(x + i, lanes, -__builtin_inf()) - max);
  });
  auto log_sum = S::set(std::log(sum));
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    store_lanes<C>(y + i, lanes, (load_lanes<C>(x + i, lanes, C(0)) - max) - log_sum);
  });
}

// dx = y (g - sum(g y))
template <class C>
void softmax_backward_row(const C* g, const C* y, C* dx, int64_t n) {
  using S = Simd<C>;
  auto dot = S::set(reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
    return load_lanes<C>(g + i, lanes, C(0)) * load_lanes<C>(y + i, lanes, C(0));
  }));
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    auto d = load_lanes<C>(y + i, lanes, C(0)) * (load_lanes<C>(g + i, lanes, C(0)) - dot);
    store_lanes<C>(dx + i, lanes, d);
  });
}

// dx = g - exp(y) sum(g)
template <class C>
void log_softmax_backward_row(const C* g, const C* y, C* dx, int64_t n) {
  using S = Simd<C>;
  auto total = S::set(reduce_sum<C>(
      n, [&](int64_t i, int64_t lanes) { return load_lanes<C>(g + i, lanes, C(0)); }));
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    auto d = load_lanes<C>(g + i, lanes, C(0)) - S::exp(load_lanes<C>(y + i, lanes, C(0))) * total;
    store_lanes<C>(dx + i, lanes, d);
  });
}

}  // namespace gradwire::cpu
