// uniform, normal, exponential, randint, bernoulli, bernoulli_tensor.
#include <atomic>
#include <cmath>
#include <numbers>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/random_generate.h"
#include "kernels/cpu/random_math.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

__m256i load_words(const uint32_t* words) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
}

// The largest T below `high`, for results that rounded up to it.
float below(float high, DType dtype) {
  if (dtype == DType::kFloat32) return std::nextafter(high, -INFINITY);
  const int drop = dtype == DType::kFloat16 ? 13 : 16;
  const float ulp = std::ldexp(1.0f, std::ilogb(high == 0 ? 1e-7f : high) - 23 + drop);
  float candidate = high - 0.5f * ulp;
  auto rounded = [&] {
    return dtype == DType::kFloat16 ? static_cast<float>(Half(candidate))
                                    : static_cast<float>(BFloat16(candidate));
  };
  while (rounded() >= high) candidate -= 0.25f * ulp;
  return rounded();
}

absl::Status uniform(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  const double low = attribute(call, 0).as_double();
  const double high = attribute(call, 1).none() ? 1.0 : attribute(call, 1).as_double();
  if (!(low <= high)) {
    return runtime_error("[uniform_] expects to return a [from, to) range, but found from=", low,
                         " > to=", high);
  }
  if (out.dtype == DType::kFloat64) {
    const double last = low == high ? low : std::nextafter(high, low);
    generate<double, 2>(call, out, context, [=](const uint32_t* words, int64_t n, double* values) {
      for (int64_t i = 0; i < n; ++i) {
        values[i] = std::min(last, low + uniform64(words + 2 * i) * (high - low));
      }
    });
    return absl::OkStatus();
  }
  // As many bits as the dtype's mantissa holds.
  const int bits = out.dtype == DType::kFloat16 ? 11 : out.dtype == DType::kBFloat16 ? 8 : 24;
  const float from = static_cast<float>(low), to = static_cast<float>(high);
  const float last = low == high || !is_floating(out.dtype) ? to : below(to, out.dtype);
  const __m256 scale = _mm256_set1_ps(std::ldexp(static_cast<float>(high - low), -bits));
  const __m128i shift = _mm_cvtsi32_si128(32 - bits);
  generate<float, 1>(call, out, context, [=](const uint32_t* words, int64_t n, float* values) {
    for (int64_t i = 0; i < n; i += 8) {
      const __m256 u = _mm256_cvtepi32_ps(_mm256_srl_epi32(load_words(words + i), shift));
      const __m256 v = _mm256_fmadd_ps(u, scale, _mm256_set1_ps(from));
      _mm256_storeu_ps(values + i, _mm256_min_ps(v, _mm256_set1_ps(last)));
    }
  });
  return absl::OkStatus();
}

// Box and Muller: words (0, 1) make elements 0 and 1, words (2, 3) elements 2 and 3.
absl::Status normal(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  const double mean = attribute(call, 0).as_double();
  const double std = attribute(call, 1).none() ? 1.0 : attribute(call, 1).as_double();
  if (!(std >= 0)) return runtime_error("[normal_] expects std >= 0.0, but found std ", std);
  if (out.dtype == DType::kFloat64) {
    generate<double, 2>(call, out, context, [=](const uint32_t* words, int64_t n, double* values) {
      for (int64_t i = 0; i < n; i += 2) {
        const double r = std::sqrt(-2 * std::log(open_uniform64(words + 2 * i)));
        const double angle = 2 * std::numbers::pi * uniform64(words + 2 * i + 2);
        values[i] = mean + std * (r * std::cos(angle));
        values[i + 1] = mean + std * (r * std::sin(angle));
      }
    });
    return absl::OkStatus();
  }
  const __m256 shift = _mm256_set1_ps(static_cast<float>(mean));
  const __m256 scale = _mm256_set1_ps(static_cast<float>(std));
  generate<float, 1>(call, out, context, [=](const uint32_t* words, int64_t n, float* values) {
    for (int64_t i = 0; i < n; i += 16) {
      // Sixteen words as eight pairs, split within each half of the vectors.
      const __m256 a = _mm256_castsi256_ps(load_words(words + i));
      const __m256 b = _mm256_castsi256_ps(load_words(words + i + 8));
      const __m256i first = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
      const __m256i second = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD));
      const __m256 r =
          _mm256_sqrt_ps(_mm256_mul_ps(_mm256_set1_ps(-2.0f), log8(open_uniform8(first))));
      __m256 s, c;
      sincospi8(_mm256_mul_ps(_mm256_cvtepi32_ps(second), _mm256_set1_ps(0x1p-31f)), &s, &c);
      c = _mm256_fmadd_ps(_mm256_mul_ps(r, c), scale, shift);
      s = _mm256_fmadd_ps(_mm256_mul_ps(r, s), scale, shift);
      _mm256_storeu_ps(values + i, _mm256_unpacklo_ps(c, s));
      if (i + 8 < n) _mm256_storeu_ps(values + i + 8, _mm256_unpackhi_ps(c, s));
    }
  });
  return absl::OkStatus();
}

absl::Status exponential(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  const double lambd = attribute(call, 0).none() ? 1.0 : attribute(call, 0).as_double();
  if (!(lambd > 0)) {
    return runtime_error("[exponential_] expects lambda > 0.0, but found lambda=", lambd);
  }
  if (out.dtype == DType::kFloat64) {
    generate<double, 2>(call, out, context, [=](const uint32_t* words, int64_t n, double* values) {
      for (int64_t i = 0; i < n; ++i) values[i] = -std::log(open_uniform64(words + 2 * i)) / lambd;
    });
    return absl::OkStatus();
  }
  const __m256 scale = _mm256_set1_ps(static_cast<float>(-1.0 / lambd));
  generate<float, 1>(call, out, context, [=](const uint32_t* words, int64_t n, float* values) {
    for (int64_t i = 0; i < n; i += 8) {
      const __m256 v = _mm256_mul_ps(log8(open_uniform8(load_words(words + i))), scale);
      _mm256_storeu_ps(values + i, _mm256_max_ps(v, _mm256_setzero_ps()));
    }
  });
  return absl::OkStatus();
}

absl::Status randint(const KernelCall& call, Context& context) {
  const int64_t low = attribute(call, 0).as_int();
  const int64_t high = attribute(call, 1).as_int();
  if (low >= high) {
    return runtime_error("[random_] expects 'from' to be less than 'to', but got from=", low,
                         " >= to=", high);
  }
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  generate<int64_t, 2>(
      call, call.outputs[0], context, [=](const uint32_t* words, int64_t n, int64_t* values) {
        for (int64_t i = 0; i < n; ++i) {
          values[i] =
              static_cast<int64_t>(static_cast<uint64_t>(low) + word64(words + 2 * i) % range);
        }
      });
  return absl::OkStatus();
}

absl::Status bernoulli(const KernelCall& call, Context& context) {
  const double p = attribute(call, 0).none() ? 0.5 : attribute(call, 0).as_double();
  if (!(p >= 0 && p <= 1)) {
    return runtime_error("[bernoulli_] expects p to be in [0, 1], but got p=", p);
  }
  const uint64_t threshold = static_cast<uint64_t>(p * 0x1p32);
  generate<uint8_t, 1>(call, call.outputs[0], context,
                       [=](const uint32_t* words, int64_t n, uint8_t* values) {
                         for (int64_t i = 0; i < n; ++i) values[i] = words[i] < threshold;
                       });
  return absl::OkStatus();
}

absl::Status bernoulli_tensor(const KernelCall& call, Context& context) {
  constexpr int64_t kBlock = 512;
  const TensorView& p = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const int64_t n = out.numel();
  const Space<1> space = space_of<1>({&out});
  std::atomic<bool> bad{false};
  auto run = [&](bool write) {
    context.pool.parallel_ranges(n, kRandomGrain, [&](int64_t begin, int64_t end) {
      double chance[kBlock];
      uint32_t words[kBlock];
      uint8_t values[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t count = std::min(kBlock, end - i);
        convert_range(p, i, i + count, DType::kFloat64, chance);
        if (!write) {
          for (int64_t j = 0; j < count; ++j) {
            if (!(chance[j] >= 0 && chance[j] <= 1)) bad = true;
          }
          continue;
        }
        draw<1>(call, i, count, words);
        for (int64_t j = 0; j < count; ++j) values[j] = words[j] < chance[j] * 0x1p32;
        store_range(out, space, i, count, values);
      }
    });
  };
  run(false);
  if (bad) {
    return runtime_error("[bernoulli] Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  }
  run(true);
  return absl::OkStatus();
}

GW_CPU_KERNEL("uniform", uniform);
GW_CPU_KERNEL("normal", normal);
GW_CPU_KERNEL("exponential", exponential);
GW_CPU_KERNEL("randint", randint);
GW_CPU_KERNEL("bernoulli", bernoulli);
GW_CPU_KERNEL("bernoulli_tensor", bernoulli_tensor);

}  // namespace
}  // namespace gradwire::cpu
