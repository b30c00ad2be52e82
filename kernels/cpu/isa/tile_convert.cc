// Casts between register types, 16-bit floats, plain copies.
#include <immintrin.h>

#include "kernels/cpu/isa/tile_loop.h"
#include "kernels/cpu/isa/tile_set.h"

namespace gradwire::cpu {
namespace GW_ISA {
namespace {

template <class T>
constexpr bool kFloating = T(0.5) != T(0);

// C's conversion, with the values x86 gives where C leaves it undefined.
template <class From, class To>
struct Cast {
  To operator()(From v) const {
    if constexpr (!kFloating<From> || kFloating<To>) {
      return static_cast<To>(v);
    } else if constexpr (sizeof(To) == 8) {
      return v >= From(-0x1p63) && v < From(0x1p63) ? static_cast<To>(v) : INT64_MIN;
    } else {
      bool fits = v > From(-0x1p31 - (sizeof(From) == 8)) && v < From(0x1p31);
      return static_cast<To>(fits ? static_cast<int32_t>(v) : INT32_MIN);
    }
  }
};
template <class From>
struct ToBool {
  uint8_t operator()(From v) const { return v != From(0); }
};
template <class To>
struct FromBool {
  To operator()(uint8_t v) const { return static_cast<To>(v != 0); }
};
template <class T>
struct Same {
  T operator()(T v) const { return v; }
};

template <DType From, DType To>
void fill_cast(TileOps& ops) {
  using F = RegisterT<From>;
  using T = RegisterT<To>;
  TileFn& slot = ops.cast[static_cast<int>(From)][static_cast<int>(To)];
  if constexpr (To == DType::kBool) {
    slot = loop1<ToBool<F>, uint8_t, F>;
  } else if constexpr (From == DType::kBool) {
    slot = loop1<FromBool<T>, T, uint8_t>;
  } else {
    slot = loop1<Cast<F, T>, T, F>;
  }
}

template <DType From>
void fill_from(TileOps& ops) {
  fill_cast<From, DType::kFloat32>(ops);
  fill_cast<From, DType::kFloat64>(ops);
  fill_cast<From, DType::kInt64>(ops);
  fill_cast<From, DType::kInt32>(ops);
  fill_cast<From, DType::kInt16>(ops);
  fill_cast<From, DType::kInt8>(ops);
  fill_cast<From, DType::kUInt8>(ops);
  fill_cast<From, DType::kBool>(ops);
}

struct WidenBFloat16 {
  uint32_t operator()(uint16_t v) const { return static_cast<uint32_t>(v) << 16; }
};
inline uint32_t bfloat16_bits(uint32_t u) {
  uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  uint32_t nan = (u >> 16) | 0x40u;
  return (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
}
struct NarrowBFloat16 {
  uint16_t operator()(uint32_t v) const { return static_cast<uint16_t>(bfloat16_bits(v)); }
};
struct RoundBFloat16 {
  uint32_t operator()(uint32_t v) const { return bfloat16_bits(v) << 16; }
};

constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

void widen_float16(void* dst, const void* a, const void*, const void*, int64_t n) {
  float* d = static_cast<float*>(dst);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  for (int64_t i = 0; i < n; i += 8) {
    _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(x + i))));
  }
}
void narrow_float16(void* dst, const void* a, const void*, const void*, int64_t n) {
  uint16_t* d = static_cast<uint16_t*>(dst);
  const float* x = static_cast<const float*>(a);
  for (int64_t i = 0; i < n; i += 8) {
    _mm_storeu_si128((__m128i*)(d + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), kNearest));
  }
}
void round_float16(void* dst, const void* a, const void*, const void*, int64_t n) {
  float* d = static_cast<float*>(dst);
  const float* x = static_cast<const float*>(a);
  for (int64_t i = 0; i < n; i += 8) {
    __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), kNearest);
    _mm256_storeu_ps(d + i, _mm256_cvtph_ps(half));
  }
}

template <int kSize>
void stream(void* dst, const void* a, const void*, const void*, int64_t n) {
  char* d = static_cast<char*>(dst);
  const char* x = static_cast<const char*>(a);
  for (int64_t i = 0; i < n * kSize; i += 32) {
    _mm256_stream_si256((__m256i*)(d + i), _mm256_loadu_si256((const __m256i*)(x + i)));
  }
}

void fence() {
  _mm_sfence();
}

}  // namespace

void fill_convert(TileOps& ops) {
  fill_from<DType::kFloat32>(ops);
  fill_from<DType::kFloat64>(ops);
  fill_from<DType::kInt64>(ops);
  fill_from<DType::kInt32>(ops);
  fill_from<DType::kInt16>(ops);
  fill_from<DType::kInt8>(ops);
  fill_from<DType::kUInt8>(ops);
  fill_from<DType::kBool>(ops);
  constexpr int kHalf = static_cast<int>(DType::kFloat16);
  constexpr int kBrain = static_cast<int>(DType::kBFloat16);
  ops.widen[kHalf] = widen_float16;
  ops.narrow[kHalf] = narrow_float16;
  ops.round16[kHalf] = round_float16;
  ops.widen[kBrain] = loop1<WidenBFloat16, uint32_t, uint16_t>;
  ops.narrow[kBrain] = loop1<NarrowBFloat16, uint16_t, uint32_t>;
  ops.round16[kBrain] = loop1<RoundBFloat16, uint32_t, uint32_t>;
  ops.copy[1] = loop1<Same<uint8_t>, uint8_t, uint8_t>;
  ops.copy[2] = loop1<Same<uint16_t>, uint16_t, uint16_t>;
  ops.copy[4] = loop1<Same<uint32_t>, uint32_t, uint32_t>;
  ops.copy[8] = loop1<Same<uint64_t>, uint64_t, uint64_t>;
  ops.stream[1] = stream<1>;
  ops.stream[2] = stream<2>;
  ops.stream[4] = stream<4>;
  ops.stream[8] = stream<8>;
  ops.stream_fence = fence;
}

}  // namespace GW_ISA
}  // namespace gradwire::cpu
