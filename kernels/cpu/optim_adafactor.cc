// Adafactor (Shazeer and Stern 2018): the squares' running means as a row and a column for each
// matrix of a parameter, as they are for vectors; the update's size is clipped.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/optim_lists.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kChunk = 1 << 14;

// Options: lr, beta2_decay, eps1 (negative: the dtype's epsilon), eps2, d, weight_decay, maximize.
struct Settings {
  double lr, decay, eps1, eps2, d, weight_decay;
  bool maximize;

  explicit Settings(const FloatList& o)
      : lr(o[0]),
        decay(o[1]),
        eps1(o[2]),
        eps2(o[3]),
        d(o[4]),
        weight_decay(o[5]),
        maximize(o[6] != 0) {}
};

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return std::numeric_limits<double>::epsilon();
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

// The sum of squares, in chunks whose number depends on n alone.
template <class C>
double squares(ThreadPool& pool, const C* x, int64_t n) {
  std::vector<double> parts((n + kChunk - 1) / kChunk);
  pool.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t c) {
    double sum = 0;
    for (int64_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) {
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    parts[c] = sum;
  });
  double sum = 0;
  for (double part : parts) sum += part;
  return sum;
}

// A parameter's tensors, gap-free in the compute type.
template <class C>
struct Dense {
  C *p, *grad, *row, *col, *variance;
  double* sums;                  // a column's length for each matrix
  int64_t matrices, rows, cols;  // of a vector: 1, 1, its length
};

// grad becomes the estimate's inverse root times the gradient.
template <class C>
void scale_matrices(ThreadPool& pool, const Dense<C>& t, C fresh, C eps1, double floor) {
  pool.parallel_for(t.matrices, [&](int64_t b) {
    C* g = t.grad + b * t.rows * t.cols;
    C *row = t.row + b * t.rows, *col = t.col + b * t.cols;
    double* sums = t.sums + b * t.cols;
    std::fill(sums, sums + t.cols, 0.0);
    double mean = 0;
    for (int64_t r = 0; r < t.rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < t.cols; ++c) {
        double square = static_cast<double>(g[r * t.cols + c]) * g[r * t.cols + c];
        sum += square;
        sums[c] += square;
      }
      row[r] += fresh * (static_cast<C>(sum / static_cast<double>(t.cols)) - row[r]);
      mean += row[r];
    }
    for (int64_t c = 0; c < t.cols; ++c) {
      col[c] += fresh * (static_cast<C>(sums[c] / static_cast<double>(t.rows)) - col[c]);
    }
    C whole = static_cast<C>(mean / static_cast<double>(t.rows));
    whole = whole < eps1 ? eps1 : whole;
    for (int64_t r = 0; r < t.rows; ++r) {
      for (int64_t c = 0; c < t.cols; ++c) {
        C estimate = row[r] * col[c] / whole;
        estimate = estimate < static_cast<C>(floor) ? static_cast<C>(floor) : estimate;
        g[r * t.cols + c] /= std::sqrt(estimate);
      }
    }
  });
}

template <class C>
void update(const Settings& s, double step, double eps1, ThreadPool& pool, const Dense<C>& t,
            int64_t n) {
  double fresh = std::pow(step, s.decay), count = static_cast<double>(n);
  double rho = std::min(s.lr, 1 / std::sqrt(step));
  double alpha = std::max(s.eps2, std::sqrt(squares(pool, t.p, n)) / std::sqrt(count)) * rho;
  double floor = eps1 * eps1;
  if (s.maximize) {
    for (int64_t i = 0; i < n; ++i) t.grad[i] = -t.grad[i];
  }
  if (t.row) {
    scale_matrices<C>(pool, t, static_cast<C>(fresh), static_cast<C>(eps1), floor);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      C g = t.grad[i], w = static_cast<C>(fresh);
      C v = t.variance[i] + w * (g * g - t.variance[i]);
      t.variance[i] = v;
      t.grad[i] = g / std::sqrt(v < static_cast<C>(floor) ? static_cast<C>(floor) : v);
    }
  }
  double size = std::sqrt(squares(pool, t.grad, n)) / (std::sqrt(count) * s.d);
  auto by = static_cast<C>(alpha / std::max(1.0, size));
  auto shrink = static_cast<C>(1 - s.lr * s.weight_decay);
  pool.parallel_for((n + kChunk - 1) / kChunk, [&](int64_t c) {
    for (int64_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) {
      t.p[i] = t.p[i] * shrink - by * t.grad[i];
    }
  });
}

struct Sizes {
  int64_t matrices = 1, rows = 1, cols = 1;
};

Sizes sizes_of(const TensorView& p) {
  Sizes out;
  for (int d = 0; d + 2 < p.rank; ++d) out.matrices *= p.sizes[d];
  if (p.rank > 1) out.rows = p.sizes[p.rank - 2];
  if (p.rank > 0) out.cols = p.sizes[p.rank - 1];
  return out;
}

absl::Status check(const KernelCall& call, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const TensorView& p = call.inputs[i];
    if (!is_floating(p.dtype)) return dtype_error("adafactor_step", p.dtype);
    Sizes s = sizes_of(p);
    bool matrix = p.rank > 1;
    int64_t want[5] = {p.numel(), p.numel(), matrix ? s.matrices * s.rows : -1,
                       matrix ? s.matrices * s.cols : -1, matrix ? -1 : p.numel()};
    for (int64_t g = 1; g < 5; ++g) {
      const TensorView& other = call.inputs[g * count + i];
      if (want[g] < 0) continue;
      if (!other.present() || other.dtype != p.dtype || other.numel() != want[g]) {
        return runtime_error("[adafactor_step] parameter ", i,
                             " and its gradient or state differ in shape or dtype");
      }
    }
  }
  return absl::OkStatus();
}

template <class T>
void step_one(const KernelCall& call, int64_t count, int64_t i, const Settings& s, double step,
              ThreadPool& pool, double* sums, ComputeOf<T>* scratch) {
  using C = ComputeOf<T>;
  const TensorView& p = call.inputs[i];
  int64_t n = p.numel();
  if (n == 0) return;
  C* at[5] = {};
  C* free = scratch;
  for (int64_t g = 0; g < 5; ++g) {
    const TensorView& view = call.inputs[g * count + i];
    if (!view.present() || (g > 1 && (p.rank > 1) != (g < 4))) continue;
    at[g] = free;
    free += view.numel();
    gather(view.as<const T>(), map_dims(view, 0, view.rank), 0, view.numel(), at[g]);
  }
  Sizes z = sizes_of(p);
  Dense<C> dense{at[0], at[1], at[2], at[3], at[4], sums, z.matrices, z.rows, z.cols};
  update<C>(s, step, s.eps1 < 0 ? epsilon_of(p.dtype) : s.eps1, pool, dense, n);
  for (int64_t g = 0; g < 5; ++g) {
    const TensorView& view = call.inputs[g * count + i];
    if (g == 1 || !at[g]) continue;
    scatter(at[g], view.numel(), view.as<T>(), map_dims(view, 0, view.rank), 0);
  }
}

absl::Status adafactor_step(const KernelCall& call, Context& context) {
  auto count = static_cast<int64_t>(call.inputs.size() / 5);
  const FloatList& options = call.attributes[0].as_floats();
  const IntList& steps = call.attributes[1].as_ints();
  if (call.inputs.size() % 5 != 0 || options.size() != 7 ||
      static_cast<int64_t>(steps.size()) != count) {
    return internal_error("[adafactor_step] options or lists do not fit");
  }
  GW_RETURN_IF_ERROR(check(call, count));
  int64_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, call.inputs[i].numel());
  // Asked for once, before anything is written: parameter, gradient, at most two state tensors
  // and sums.
  Scratch scratch(static_cast<size_t>(5 * most) * sizeof(double));
  if (most > 0 && !scratch.data()) return scratch_error();
  Settings settings(options);
  for (int64_t i = 0; i < count; ++i) {
    visit_floating(call.inputs[i].dtype, [&](auto tag) {
      using T = decltype(tag);
      constexpr int64_t kWords = sizeof(double) / sizeof(ComputeOf<T>);
      step_one<T>(call, count, i, settings, static_cast<double>(steps[i]), context.pool,
                  scratch.as<double>(), scratch.as<ComputeOf<T>>() + most * kWords);
    });
  }
  return absl::OkStatus();
}
GW_CPU_KERNEL("adafactor_step", adafactor_step);

}  // namespace
}  // namespace gradwire::cpu
