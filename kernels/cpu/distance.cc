// p-norm distances between rows: cdist of two batches of rows, pdist within one, and their
// gradients. Sums run in double.
#include <cmath>
#include <limits>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class C, class Term>
double sum_of(const C* a, const C* b, int64_t n, Term term) {
  double lanes[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int l = 0; l < 4; ++l) lanes[l] += term(std::abs(double(a[i + l]) - double(b[i + l])));
  }
  for (; i < n; ++i) lanes[0] += term(std::abs(double(a[i]) - double(b[i])));
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

template <class C>
double distance(double p, const C* a, const C* b, int64_t n) {
  if (p == 0) return sum_of(a, b, n, [](double d) { return d != 0 ? 1.0 : 0.0; });
  if (p == 1) return sum_of(a, b, n, [](double d) { return d; });
  if (p == 2) return std::sqrt(sum_of(a, b, n, [](double d) { return d * d; }));
  if (p == kInfinity) {
    double most = 0;
    for (int64_t i = 0; i < n; ++i) {
      double d = std::abs(double(a[i]) - double(b[i]));
      most = d > most || std::isnan(d) ? d : most;
      if (std::isnan(d)) break;
    }
    return most;
  }
  return std::pow(sum_of(a, b, n, [p](double d) { return std::pow(d, p); }), 1 / p);
}

// d distance / d a_i for difference d = a_i - b_i.
double slope(double p, double d, double whole) {
  double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
  if (p == 0) return 0;
  if (p == 1) return sign;
  if (p == kInfinity) return std::abs(d) == whole ? sign : 0;
  if (whole == 0 || (p < 1 && d == 0)) return 0;
  if (p == 2) return d / whole;
  return sign * std::pow(std::abs(d), p - 1) / std::pow(whole, p - 1);
}

// x1 [B, P, M], x2 [B, R, M] -> [B, P, R]; attribute p.
template <class C>
absl::Status between(const KernelCall& call, ThreadPool& pool) {
  DenseInput<C> x1(call.inputs[0], pool), x2(call.inputs[1], pool);
  DenseOutput<C> out(call.outputs[0], pool);
  if (!x1.ok() || !x2.ok() || !out.ok()) return scratch_error();
  const auto& sizes = call.outputs[0].sizes;
  int64_t rows = sizes[1], others = sizes[2], m = call.inputs[0].sizes[2];
  double p = call.attributes[0].as_double();
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, others * (m + 1)));
  pool.parallel_ranges(sizes[0] * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C* b = x2.data() + i / rows * others * m;
      for (int64_t r = 0; r < others; ++r) {
        out.data()[i * others + r] = static_cast<C>(distance(p, x1.data() + i * m, b + r * m, m));
      }
    }
  });
  out.store();
  return absl::OkStatus();
}

// grad [B, P, R], x1, x2, distances -> the gradient of x1; attribute p.
template <class C>
absl::Status between_backward(const KernelCall& call, ThreadPool& pool) {
  DenseInput<C> grad(call.inputs[0], pool), x1(call.inputs[1], pool), x2(call.inputs[2], pool);
  DenseInput<C> whole(call.inputs[3], pool);
  DenseOutput<C> out(call.outputs[0], pool);
  if (!grad.ok() || !x1.ok() || !x2.ok() || !whole.ok() || !out.ok()) return scratch_error();
  int64_t rows = call.inputs[0].sizes[1], others = call.inputs[0].sizes[2];
  int64_t m = call.inputs[1].sizes[2];
  double p = call.attributes[0].as_double();
  int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, others * (m + 1)));
  pool.parallel_ranges(call.inputs[0].sizes[0] * rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(m);
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      const C* a = x1.data() + i * m;
      for (int64_t r = 0; r < others; ++r) {
        const C* b = x2.data() + (i / rows * others + r) * m;
        double g = grad.data()[i * others + r], d = whole.data()[i * others + r];
        for (int64_t k = 0; k < m; ++k) {
          sums[k] += g * slope(p, static_cast<double>(static_cast<C>(a[k] - b[k])), d);
        }
      }
      for (int64_t k = 0; k < m; ++k) out.data()[i * m + k] = static_cast<C>(sums[k]);
    }
  });
  out.store();
  return absl::OkStatus();
}

// Where pair (i, i + 1) stands among all pairs i < j of n rows.
int64_t first_pair(int64_t i, int64_t n) {
  return i * n - i * (i + 1) / 2;
}

// x [N, M] -> [N (N - 1) / 2]; attribute p.
template <class C>
absl::Status within(const KernelCall& call, ThreadPool& pool) {
  DenseInput<C> x(call.inputs[0], pool);
  DenseOutput<C> out(call.outputs[0], pool);
  if (!x.ok() || !out.ok()) return scratch_error();
  int64_t n = call.inputs[0].sizes[0], m = call.inputs[0].sizes[1];
  double p = call.attributes[0].as_double();
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n * (m + 1)));
  pool.parallel_ranges(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C* to = out.data() + first_pair(i, n);
      for (int64_t j = i + 1; j < n; ++j) {
        *to++ = static_cast<C>(distance(p, x.data() + i * m, x.data() + j * m, m));
      }
    }
  });
  out.store();
  return absl::OkStatus();
}

// grad of the pairs, x, distances -> the gradient of x; attribute p.
template <class C>
absl::Status within_backward(const KernelCall& call, ThreadPool& pool) {
  DenseInput<C> grad(call.inputs[0], pool), x(call.inputs[1], pool), whole(call.inputs[2], pool);
  DenseOutput<C> out(call.outputs[0], pool);
  if (!grad.ok() || !x.ok() || !whole.ok() || !out.ok()) return scratch_error();
  int64_t n = call.inputs[1].sizes[0], m = call.inputs[1].sizes[1];
  double p = call.attributes[0].as_double();
  int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n * (m + 1)));
  pool.parallel_ranges(n, grain, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(m);
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      const C* a = x.data() + i * m;
      for (int64_t j = 0; j < n; ++j) {
        if (j == i) continue;
        int64_t low = std::min(i, j), at = first_pair(low, n) + std::max(i, j) - low - 1;
        const C* b = x.data() + j * m;
        double g = grad.data()[at], d = whole.data()[at];
        for (int64_t k = 0; k < m; ++k) {
          sums[k] += g * slope(p, static_cast<double>(static_cast<C>(a[k] - b[k])), d);
        }
      }
      for (int64_t k = 0; k < m; ++k) out.data()[i * m + k] = static_cast<C>(sums[k]);
    }
  });
  out.store();
  return absl::OkStatus();
}

#define GW_DISTANCE(name, function, op)                                        \
  absl::Status name(const KernelCall& call, Context& context) {                \
    DType dtype = call.inputs[0].dtype;                                        \
    if (call.outputs[0].numel() == 0) return absl::OkStatus();                 \
    if (dtype == DType::kFloat32) return function<float>(call, context.pool);  \
    if (dtype == DType::kFloat64) return function<double>(call, context.pool); \
    return dtype_error(op, dtype);                                             \
  }                                                                            \
  GW_CPU_KERNEL(#name, name)

GW_DISTANCE(cdist_rows, between, "cdist");
GW_DISTANCE(cdist_backward, between_backward, "cdist_backward");
GW_DISTANCE(pdist_rows, within, "pdist");
GW_DISTANCE(pdist_backward, within_backward, "pdist_backward");
#undef GW_DISTANCE

}  // namespace
}  // namespace gradwire::cpu
