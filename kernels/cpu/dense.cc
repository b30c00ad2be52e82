#include "kernels/cpu/dense.h"

#include <immintrin.h>

#include <cstring>

namespace gradwire::cpu {
namespace {

constexpr int64_t kCopyGrain = 1 << 15;

}  // namespace

absl::Status scratch_error() {
  return make_error(ErrorKind::kOutOfMemory, "[cpu] no memory for a kernel's temporaries");
}

absl::Status dtype_error(const char* op, DType dtype) {
  return not_implemented_error("[", op, "] not implemented for ", std::string(dtype_name(dtype)));
}

void IndexMap::add(int64_t size, int64_t stride) {
  count *= size;
  if (size == 1) return;
  if (rank > 0 && strides[rank - 1] == size * stride) {
    sizes[rank - 1] *= size;
    strides[rank - 1] = stride;
    return;
  }
  sizes[rank] = size;
  strides[rank] = stride;
  ++rank;
}

IndexMap map_dims(const TensorView& view, int begin, int end) {
  IndexMap map;
  for (int d = begin; d < end; ++d) map.add(view.sizes[d], view.strides[d]);
  return map;
}

IndexMap map_without(const TensorView& view, int dim) {
  IndexMap map;
  for (int d = 0; d < view.rank; ++d) {
    if (d != dim) map.add(view.sizes[d], view.strides[d]);
  }
  return map;
}

void convert(const Half* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(h));
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

void convert(const float* from, Half* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m128i h =
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), h);
  }
  for (; i < n; ++i) to[i] = Half(from[i]);
}

void convert(const BFloat16* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    __m256i w = _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
    _mm256_storeu_ps(to + i, _mm256_castsi256_ps(w));
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

void convert(const float* from, BFloat16* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 f = _mm256_loadu_ps(from + i);
    __m256i u = _mm256_castps_si256(f);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x00400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q));
    __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_castsi256_si128(packed));
  }
  for (; i < n; ++i) to[i] = BFloat16(from[i]);
}

double read_element(const TensorView& view, int64_t offset) {
  double value = 0;
  auto read = [&](auto tag) {
    using T = decltype(tag);
    value = static_cast<double>(static_cast<ComputeOf<T>>(view.as<const T>()[offset]));
  };
  if (!visit_floating(view.dtype, read)) visit_integral(view.dtype, read);
  return value;
}

void write_element(const TensorView& view, int64_t offset, double value) {
  auto write = [&](auto tag) {
    using T = decltype(tag);
    view.as<T>()[offset] = static_cast<T>(static_cast<ComputeOf<T>>(value));
  };
  if (!visit_floating(view.dtype, write)) visit_integral(view.dtype, write);
}

template <class C>
void copy_in(const TensorView& view, C* dst, ThreadPool& pool) {
  IndexMap map = map_dims(view, 0, view.rank);
  auto copy = [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, C> ||
                  (!std::is_integral_v<C> && !std::is_integral_v<T> && !is_half_v<C> &&
                   !(is_half_v<T> && std::is_same_v<C, double>))) {
      pool.parallel_ranges(map.count, kCopyGrain, [&](int64_t begin, int64_t end) {
        gather(view.as<const T>(), map, begin, end - begin, dst + begin);
      });
    } else if constexpr (is_half_v<T> && std::is_same_v<C, double>) {
      for (int64_t i = 0; i < map.count; ++i) {
        dst[i] = static_cast<float>(view.as<const T>()[map.offset(i)]);
      }
    }
  };
  if (!visit_floating(view.dtype, copy)) visit_integral(view.dtype, copy);
}

template <class C>
void copy_out(const C* src, const TensorView& view, ThreadPool& pool) {
  IndexMap map = map_dims(view, 0, view.rank);
  auto copy = [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, C> ||
                  (!std::is_integral_v<C> && !std::is_integral_v<T> && !is_half_v<C> &&
                   !(is_half_v<T> && std::is_same_v<C, double>))) {
      pool.parallel_ranges(map.count, kCopyGrain, [&](int64_t begin, int64_t end) {
        scatter(src + begin, end - begin, view.as<T>(), map, begin);
      });
    } else if constexpr (is_half_v<T> && std::is_same_v<C, double>) {
      for (int64_t i = 0; i < map.count; ++i) {
        view.as<T>()[map.offset(i)] = T(static_cast<float>(src[i]));
      }
    }
  };
  if (!visit_floating(view.dtype, copy)) visit_integral(view.dtype, copy);
}

#define GW_COPIES(C)                                            \
  template void copy_in<C>(const TensorView&, C*, ThreadPool&); \
  template void copy_out<C>(const C*, const TensorView&, ThreadPool&)
GW_COPIES(float);
GW_COPIES(double);
GW_COPIES(BFloat16);
GW_COPIES(int64_t);
GW_COPIES(int32_t);
GW_COPIES(int16_t);
GW_COPIES(int8_t);
GW_COPIES(uint8_t);
#undef GW_COPIES

}  // namespace gradwire::cpu
