// logsumexp: a running maximum and the sum of exponentials about it.
#include <cmath>
#include <limits>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduce_fold.h"

namespace gradwire::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct LogSum {
  double max;
  double sum;  // of exp(x - max)

  // The terms of infinite maxima are 1 each, so that inf gives inf and -inf alone gives -inf.
  void add(double other_max, double other_sum) {
    if (other_sum == 0) return;
    if (other_max <= max) {
      sum += other_max == max ? other_sum : other_sum * std::exp(other_max - max);
    } else {
      sum = other_sum + (sum == 0 ? 0 : sum * std::exp(max - other_max));
      max = other_max;
    }
  }
};

template <class T>
struct LogSumExp {
  using Value = Wide<T>;

  static void init(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<LogSum*>(acc)[i] = {-kInfinity, 0};
  }

  static void merge(void* acc, const void* later, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const LogSum& b = static_cast<const LogSum*>(later)[i];
      static_cast<LogSum*>(acc)[i].add(b.max, b.sum);
    }
  }

  static void fold_block(LogSum& acc, const T* p, int64_t stride, int64_t n) {
    using Real = std::conditional_t<std::is_same_v<Value, float>, float, double>;
    Real max = -std::numeric_limits<Real>::infinity();
    for (int64_t i = 0; i < n; ++i) {
      const Real x = static_cast<Real>(widen(p[i * stride]));
      max = x > max || x != x ? x : max;
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Real x = static_cast<Real>(widen(p[i * stride]));
      sum += x == max ? Real(1) : std::exp(x - max);
    }
    if (max == -std::numeric_limits<Real>::infinity()) return;
    acc.add(max, sum);
  }

  static void fold(void* accs, const void* in, int64_t kept, int64_t kept_stride, int64_t reduced,
                   int64_t reduced_stride, int64_t) {
    LogSum* acc = static_cast<LogSum*>(accs);
    const T* p = static_cast<const T*>(in);
    const int64_t block = reduced_stride <= kept_stride ? 2048 : 16;
    for (int64_t r = 0; r < reduced; r += block) {
      for (int64_t k = 0; k < kept; ++k) {
        fold_block(acc[k], p + k * kept_stride + r * reduced_stride, reduced_stride,
                   std::min(block, reduced - r));
      }
    }
  }

  static constexpr Reducer table() { return {sizeof(LogSum), init, fold, merge}; }
};

absl::Status logsumexp(const KernelCall& call, Context& context) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const uint32_t dims = reduced_dims(attribute(call, 0), in.rank);
  const Reducer reducer = dispatch_dtype(
      in.dtype, [](auto type) { return LogSumExp<typename decltype(type)::type>::table(); });
  return reduce(
      in, out, nullptr, dims, false, reducer,
      [&](const void* acc, int64_t n, const auto& offsets, const auto& strides) {
        for (int64_t i = 0; i < n; ++i) {
          const LogSum& s = static_cast<const LogSum*>(acc)[i];
          const double value = s.sum == 0 ? -kInfinity : s.max + std::log(s.sum);
          store_doubles(out.dtype, address(out, offsets[0] + i * strides[0]), 1, 1, &value);
        }
      },
      context);
}

GW_CPU_KERNEL("logsumexp", logsumexp);

}  // namespace
}  // namespace gradwire::cpu
