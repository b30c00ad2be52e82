// A Reducer from an operation on eight lanes.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/index_types.h"
#include "kernels/cpu/reduce.h"

namespace gradwire::cpu {

template <class T>
struct Lanes8 {
  typedef T type __attribute__((vector_size(8 * sizeof(T))));
};
template <class T>
using V8 = typename Lanes8<T>::type;

// Eight neighbours, widened.
template <class T>
inline V8<Wide<T>> load8(const T* p) {
  V8<Wide<T>> v;
  if constexpr (std::is_same_v<T, Half>) {
    const __m256 f = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    std::memcpy(&v, &f, sizeof v);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const __m256i u = _mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16);
    std::memcpy(&v, &u, sizeof v);
  } else {
    std::memcpy(&v, p, sizeof v);
    if constexpr (std::is_same_v<T, Bool8>) v = reinterpret_cast<V8<uint8_t>>(v != 0) & 1;
  }
  return v;
}

// Op has In (the stored type), Acc, identity(), step(Acc&, Wide<In>), the same on eight lanes, and
// merge(Acc&, Acc); it must be associative and commutative up to rounding.
template <class Op>
struct LaneReducer {
  using In = typename Op::In;
  using Acc = typename Op::Acc;
  using VAcc = V8<Acc>;

  static VAcc identity8() {
    VAcc v;
    for (int l = 0; l < 8; ++l) v[l] = Op::identity();
    return v;
  }

  static void init(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = Op::identity();
  }

  static void merge(void* acc, const void* later, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      Op::merge(static_cast<Acc*>(acc)[i], static_cast<const Acc*>(later)[i]);
    }
  }

  // Blocks of 4096 keep the sequences of additions short.
  static void fold_contiguous(Acc& acc, const In* p, int64_t n) {
    while (n >= 8) {
      const int64_t block = n < 4096 ? n & ~int64_t{7} : 4096;
      VAcc a = identity8(), b = a, c = a, d = a;
      int64_t i = 0;
      for (; i + 32 <= block; i += 32) {
        Op::step(a, load8(p + i));
        Op::step(b, load8(p + i + 8));
        Op::step(c, load8(p + i + 16));
        Op::step(d, load8(p + i + 24));
      }
      for (; i < block; i += 8) Op::step(a, load8(p + i));
      for (int l = 0; l < 8; ++l) {
        Acc x = a[l], y = c[l];
        Op::merge(x, Acc(b[l]));
        Op::merge(y, Acc(d[l]));
        Op::merge(x, y);
        Op::merge(acc, x);
      }
      p += block;
      n -= block;
    }
    for (int64_t i = 0; i < n; ++i) Op::step(acc, widen(p[i]));
  }

  static void fold_rows(Acc* acc, const In* p, int64_t kept, int64_t rows, int64_t stride) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, p += 4 * stride) {
      int64_t k = 0;
      for (; k + 8 <= kept; k += 8) {
        VAcc a;
        std::memcpy(&a, acc + k, sizeof a);
        for (int u = 0; u < 4; ++u) Op::step(a, load8(p + u * stride + k));
        std::memcpy(acc + k, &a, sizeof a);
      }
      for (; k < kept; ++k) {
        for (int u = 0; u < 4; ++u) Op::step(acc[k], widen(p[u * stride + k]));
      }
    }
    for (; r < rows; ++r, p += stride) {
      int64_t k = 0;
      for (; k + 8 <= kept; k += 8) {
        VAcc a;
        std::memcpy(&a, acc + k, sizeof a);
        Op::step(a, load8(p + k));
        std::memcpy(acc + k, &a, sizeof a);
      }
      for (; k < kept; ++k) Op::step(acc[k], widen(p[k]));
    }
  }

  static void fold(void* accs, const void* in, int64_t kept, int64_t kept_stride, int64_t reduced,
                   int64_t reduced_stride, int64_t) {
    Acc* acc = static_cast<Acc*>(accs);
    const In* p = static_cast<const In*>(in);
    if (reduced_stride == 1 && reduced >= 8) {
      for (int64_t k = 0; k < kept; ++k) fold_contiguous(acc[k], p + k * kept_stride, reduced);
    } else if (kept_stride == 1) {
      fold_rows(acc, p, kept, reduced, reduced_stride);
    } else {
      for (int64_t k = 0; k < kept; ++k) {
        Acc a = acc[k];
        const In* q = p + k * kept_stride;
        for (int64_t r = 0; r < reduced; ++r) Op::step(a, widen(q[r * reduced_stride]));
        acc[k] = a;
      }
    }
  }

  static constexpr Reducer table() { return {sizeof(Acc), init, fold, merge}; }
};

}  // namespace gradwire::cpu
