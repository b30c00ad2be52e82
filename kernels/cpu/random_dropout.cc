// dropout: y = x * mask / (1 - p) and the mask, in one pass.
#include <immintrin.h>

#include "kernels/cpu/random_generate.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

// mask[i] = words[i] < threshold and factor[i] = scale there, else 0. n is a multiple of 32.
void make_mask(const uint32_t* words, int64_t n, uint64_t threshold, uint8_t* mask) {
  if (threshold == 0 || threshold >> 32 != 0) {
    std::memset(mask, threshold != 0, static_cast<size_t>(n));
    return;
  }
  const __m256i flip = _mm256_set1_epi32(static_cast<int>(0x80000000u));
  const __m256i limit =
      _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(threshold) ^ 0x80000000u));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t i = 0; i < n; i += 32) {
    __m256i keep[4];
    for (int v = 0; v < 4; ++v) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + i + 8 * v));
      keep[v] = _mm256_cmpgt_epi32(limit, _mm256_xor_si256(w, flip));
    }
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(keep[0], keep[1]),
                                             _mm256_packs_epi32(keep[2], keep[3]));
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(mask + i),
        _mm256_and_si256(_mm256_permutevar8x32_epi32(bytes, order), _mm256_set1_epi8(1)));
  }
}

void apply_floats(const float* x, const uint8_t* mask, float scale, int64_t n, float* y) {
  int64_t i = 0;
  const __m256 factor = _mm256_set1_ps(scale);
  for (; i + 8 <= n; i += 8) {
    const __m256i m =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(mask + i)));
    const __m256 kept = _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_setzero_si256(), m));
    _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_and_ps(kept, factor)));
  }
  for (; i < n; ++i) y[i] = x[i] * (mask[i] ? scale : 0.0f);
}

absl::Status dropout(const KernelCall& call, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  const TensorView& mask = call.outputs[1];
  const double p = attribute(call, 0).none() ? 0.5 : attribute(call, 0).as_double();
  if (!(p >= 0 && p <= 1)) {
    return value_error("[dropout] dropout probability has to be between 0 and 1, but got ", p);
  }
  const uint64_t threshold = static_cast<uint64_t>((1 - p) * 0x1p32);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  const Space<3> space = space_of<3>({&x, &y, &mask});
  const bool dense =
      x.dtype == DType::kFloat32 && x.contiguous() && y.contiguous() && mask.contiguous();
  context.pool.parallel_ranges(space.numel, kRandomGrain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kRandomBlock];
    alignas(64) uint8_t kept[kRandomBlock];
    for (int64_t i = begin; i < end; i += kRandomBlock) {
      const int64_t n = std::min(kRandomBlock, end - i);
      draw<1>(call, i, n, words);
      if (dense) {
        const int64_t whole = n & ~int64_t{31};
        make_mask(words, whole, threshold, mask.as<uint8_t>() + i);
        for (int64_t j = whole; j < n; ++j) mask.as<uint8_t>()[i + j] = words[j] < threshold;
        apply_floats(x.as<float>() + i, mask.as<uint8_t>() + i, static_cast<float>(scale), n,
                     y.as<float>() + i);
        continue;
      }
      make_mask(words, (n + 31) & ~int64_t{31}, threshold, kept);
      dispatch_dtype(x.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
        const Real factor = static_cast<Real>(scale);
        for_runs(space, i, i + n, [&](const auto& offsets, int64_t count, int64_t linear) {
          for (int64_t j = 0; j < count; ++j) {
            const bool keep = kept[linear - i + j];
            const T v = x.as<T>()[offsets[0] + j * space.inner_stride(0)];
            y.as<T>()[offsets[1] + j * space.inner_stride(1)] =
                convert<T>(convert<Real>(v) * (keep ? factor : Real(0)));
            mask.as<uint8_t>()[offsets[2] + j * space.inner_stride(2)] = keep;
          }
        });
      });
    }
  });
  return absl::OkStatus();
}

GW_CPU_KERNEL("dropout", dropout);

}  // namespace
}  // namespace gradwire::cpu
