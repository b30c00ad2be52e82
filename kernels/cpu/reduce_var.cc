// var: blocks take their own mean first, then the squares about it; parts are merged by the
// formula of Chan, Golub and LeVeque (1979). Everything in double.
#include <cmath>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduce_fold.h"

namespace gradwire::cpu {
namespace {

struct Moments {
  double n;
  double mean;
  double m2;  // sum of squared distances from the mean

  void add(double other_n, double other_mean, double other_m2) {
    if (other_n == 0) return;
    const double total = n + other_n;
    const double delta = other_mean - mean;
    if (n == 0) {
      mean = other_mean;
      m2 = other_m2;
    } else {
      mean += delta * (other_n / total);
      m2 += other_m2 + delta * delta * (n * other_n / total);
    }
    n = total;
  }
};

using D8 = V8<double>;

template <class T>
D8 load_doubles8(const T* p) {
  return __builtin_convertvector(load8(p), D8);
}

double total(D8 v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

template <class T>
struct Variance {
  static void init(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Moments*>(acc)[i] = {0, 0, 0};
  }

  static void merge(void* acc, const void* later, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const Moments& b = static_cast<const Moments*>(later)[i];
      static_cast<Moments*>(acc)[i].add(b.n, b.mean, b.m2);
    }
  }

  static void fold_block(Moments& acc, const T* p, int64_t stride, int64_t n) {
    D8 sum{}, sum2{};
    int64_t i = 0;
    if (stride == 1) {
      for (; i + 16 <= n; i += 16) {
        sum += load_doubles8(p + i);
        sum2 += load_doubles8(p + i + 8);
      }
    }
    const int64_t vectors = i;
    double mean = total(sum + sum2);
    for (; i < n; ++i) mean += static_cast<double>(widen(p[i * stride]));
    mean /= static_cast<double>(n);
    D8 square{}, square2{};
    for (i = 0; i < vectors; i += 16) {
      const D8 a = load_doubles8(p + i) - mean;
      const D8 b = load_doubles8(p + i + 8) - mean;
      square += a * a;
      square2 += b * b;
    }
    double m2 = total(square + square2);
    for (; i < n; ++i) {
      const double d = static_cast<double>(widen(p[i * stride])) - mean;
      m2 += d * d;
    }
    acc.add(static_cast<double>(n), mean, m2);
  }

  // Up to 16 rows of `kept` neighbours.
  static void fold_rows(Moments* acc, const T* p, int64_t kept, int64_t rows, int64_t stride) {
    int64_t k = 0;
    for (; k + 8 <= kept; k += 8) {
      D8 mean{};
      for (int64_t r = 0; r < rows; ++r) mean += load_doubles8(p + r * stride + k);
      mean /= static_cast<double>(rows);
      D8 m2{};
      for (int64_t r = 0; r < rows; ++r) {
        const D8 d = load_doubles8(p + r * stride + k) - mean;
        m2 += d * d;
      }
      for (int l = 0; l < 8; ++l) acc[k + l].add(static_cast<double>(rows), mean[l], m2[l]);
    }
    for (; k < kept; ++k) fold_block(acc[k], p + k, stride, rows);
  }

  static void fold(void* accs, const void* in, int64_t kept, int64_t kept_stride, int64_t reduced,
                   int64_t reduced_stride, int64_t) {
    Moments* acc = static_cast<Moments*>(accs);
    const T* p = static_cast<const T*>(in);
    if (kept_stride == 1 && reduced_stride > 1) {
      for (int64_t r = 0; r < reduced; r += 16) {
        fold_rows(acc, p + r * reduced_stride, kept, std::min<int64_t>(16, reduced - r),
                  reduced_stride);
      }
      return;
    }
    for (int64_t k = 0; k < kept; ++k) {
      for (int64_t r = 0; r < reduced; r += 2048) {
        fold_block(acc[k], p + k * kept_stride + r * reduced_stride, reduced_stride,
                   std::min<int64_t>(2048, reduced - r));
      }
    }
  }

  static constexpr Reducer table() { return {sizeof(Moments), init, fold, merge}; }
};

absl::Status var(const KernelCall& call, Context& context) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const uint32_t dims = reduced_dims(attribute(call, 0), in.rank);
  const Attribute& given = attribute(call, 1);
  const double correction = given.none() ? 1.0 : given.as_double();
  const Reducer reducer = dispatch_dtype(
      in.dtype, [](auto type) { return Variance<typename decltype(type)::type>::table(); });
  return reduce(
      in, out, nullptr, dims, false, reducer,
      [&](const void* acc, int64_t n, const auto& offsets, const auto& strides) {
        for (int64_t i = 0; i < n; ++i) {
          const Moments& m = static_cast<const Moments*>(acc)[i];
          const double value = m.m2 / std::max(0.0, m.n - correction);
          store_doubles(out.dtype, address(out, offsets[0] + i * strides[0]), 1, 1, &value);
        }
      },
      context);
}

GW_CPU_KERNEL("var", var);

}  // namespace
}  // namespace gradwire::cpu
