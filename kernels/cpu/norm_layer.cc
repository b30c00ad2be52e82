#include <atomic>
#include <limits>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/norm_rows.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrainElements = 1 << 14;

struct Rows {
  IndexMap outer, inner;

  Rows(const TensorView& view, int leading)
      : outer(map_dims(view, 0, leading)), inner(map_dims(view, leading, view.rank)) {}
};

int64_t padded(int64_t n) {
  return (n + 15) / 16 * 16;
}

template <class T>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView& x = call.inputs[0];
  const TensorView &y = call.outputs[0], &mean = call.outputs[1], &rstd = call.outputs[2];
  int leading = x.rank - static_cast<int>(call.attributes[0].as_int());
  double eps = call.attributes[1].as_double();
  Rows from(x, leading), to(y, leading);
  IndexMap means = map_dims(mean, 0, leading), rstds = map_dims(rstd, 0, leading);
  DenseInput<C> weight(call.inputs[1], pool), bias(call.inputs[2], pool);
  if (!weight.ok() || !bias.ok()) return scratch_error();
  int64_t n = from.inner.count;
  if (n == 0) {
    for (int64_t r = 0; r < from.outer.count; ++r) {
      write_element(mean, means.offset(r), std::numeric_limits<double>::quiet_NaN());
      write_element(rstd, rstds.offset(r), std::numeric_limits<double>::quiet_NaN());
    }
    return absl::OkStatus();
  }
  std::atomic<bool> failed = false;
  int64_t grain = std::max<int64_t>(1, kGrainElements / n);
  pool.parallel_ranges(from.outer.count, grain, [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(2 * padded(n)) * sizeof(C));
    C* buffer = scratch.as<C>();
    if (!buffer) {
      failed = true;
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      const C* row = read_row(x.as<const T>() + from.outer.offset(r), from.inner, n, buffer);
      T* at = y.as<T>() + to.outer.offset(r);
      C* out = row_target(at, to.inner, n, buffer + padded(n));
      RowStatistics<C> s = row_statistics(row, n, eps);
      write_element(mean, means.offset(r), s.mean);
      write_element(rstd, rstds.offset(r), s.rstd);
      auto m = Simd<C>::set(s.mean), k = Simd<C>::set(s.rstd);
      for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
        auto v = (load_lanes<C>(row + i, lanes, C(0)) - m) * k;
        if (weight.data()) v = v * load_lanes<C>(weight.data() + i, lanes, C(0));
        if (bias.data()) v = v + load_lanes<C>(bias.data() + i, lanes, C(0));
        store_lanes<C>(out + i, lanes, v);
      });
      write_row(out, buffer + padded(n), n, at, to.inner);
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

// One row's dx = rstd (g' - mean(g') - xhat mean(g' xhat)) with g' = g weight; adds the row's part
// to the weight's and the bias's gradients where they are wanted.
template <class C>
void backward_row(const C* g, const C* x, const C* weight, C mean, C rstd, C* dx, C* dweight,
                  C* dbias, int64_t n) {
  using S = Simd<C>;
  auto m = S::set(mean), k = S::set(rstd);
  auto scaled = [&](int64_t i, int64_t lanes) {
    auto v = load_lanes<C>(g + i, lanes, C(0));
    return weight ? v * load_lanes<C>(weight + i, lanes, C(0)) : v;
  };
  auto normal = [&](int64_t i, int64_t lanes) {
    return (load_lanes<C>(x + i, lanes, mean) - m) * k;
  };
  if (dweight || dbias) {
    for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
      auto v = load_lanes<C>(g + i, lanes, C(0));
      if (dweight) {
        auto sum = S::fma(v, normal(i, lanes), load_lanes<C>(dweight + i, lanes, C(0)));
        store_lanes<C>(dweight + i, lanes, sum);
      }
      if (dbias) store_lanes<C>(dbias + i, lanes, load_lanes<C>(dbias + i, lanes, C(0)) + v);
    });
  }
  if (!dx) return;
  C sum = reduce_sum<C>(n, scaled);
  C dot = reduce_sum<C>(
      n, [&](int64_t i, int64_t lanes) { return scaled(i, lanes) * normal(i, lanes); });
  auto c1 = S::set(sum / static_cast<C>(n)), c2 = S::set(dot / static_cast<C>(n));
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    store_lanes<C>(dx + i, lanes, ((scaled(i, lanes) - c1) - normal(i, lanes) * c2) * k);
  });
}

template <class T>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView &grad = call.inputs[0], &x = call.inputs[1];
  const TensorView &mean = call.inputs[3], &rstd = call.inputs[4];
  const TensorView &dx = call.outputs[0], &dw = call.outputs[1], &db = call.outputs[2];
  int leading = mean.rank;
  Rows from(x, leading), grads(grad, leading), to(dx, leading);
  IndexMap means = map_dims(mean, 0, leading), rstds = map_dims(rstd, 0, leading);
  DenseInput<C> weight(call.inputs[2], pool);
  DenseOutput<C> dweight(dw, pool), dbias(db, pool);
  int64_t n = from.inner.count;
  int64_t rows = from.outer.count;
  // Rows in one partial sum of the parameters' gradients: by shape alone, at most 64 of them.
  int64_t block =
      std::max<int64_t>({1, kGrainElements / std::max<int64_t>(n, 1), (rows + 63) / 64});
  int64_t blocks = (rows + block - 1) / block;
  bool parameters = dw.present() || db.present();
  Scratch partial(parameters ? static_cast<size_t>(blocks * 2 * padded(n) + 16) * sizeof(C) : 64);
  if (!weight.ok() || !dweight.ok() || !dbias.ok() || !partial.data()) return scratch_error();
  std::atomic<bool> failed = false;
  if (n > 0) {
    pool.parallel_for(blocks, [&](int64_t b) {
      Scratch scratch(static_cast<size_t>(3 * padded(n)) * sizeof(C));
      C* buffer = scratch.as<C>();
      if (!buffer) {
        failed = true;
        return;
      }
      C* sums = partial.as<C>() + b * 2 * padded(n);
      if (parameters) std::fill(sums, sums + 2 * padded(n), C(0));
      for (int64_t r = b * block; r < std::min(rows, (b + 1) * block); ++r) {
        const C* g = read_row(grad.as<const T>() + grads.outer.offset(r), grads.inner, n, buffer);
        const C* row =
            read_row(x.as<const T>() + from.outer.offset(r), from.inner, n, buffer + padded(n));
        T* at = dx.present() ? dx.as<T>() + to.outer.offset(r) : nullptr;
        C* out = at ? row_target(at, to.inner, n, buffer + 2 * padded(n)) : nullptr;
        backward_row(g, row, weight.data(), static_cast<C>(read_element(mean, means.offset(r))),
                     static_cast<C>(read_element(rstd, rstds.offset(r))), out,
                     dw.present() ? sums : nullptr, db.present() ? sums + padded(n) : nullptr, n);
        if (at) write_row(out, buffer + 2 * padded(n), n, at, to.inner);
      }
    });
  }
  if (failed) return scratch_error();
  for (int which = 0; which < 2; ++which) {
    C* total = which == 0 ? dweight.data() : dbias.data();
    if (!total) continue;
    std::fill(total, total + n, C(0));
    for (int64_t b = 0; b < blocks; ++b) {
      const C* sums = partial.as<C>() + (2 * b + which) * padded(n);
      for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
        store_lanes<C>(
            total + i, lanes,
            load_lanes<C>(total + i, lanes, C(0)) + load_lanes<C>(sums + i, lanes, C(0)));
      });
    }
  }
  dweight.store();
  dbias.store();
  return absl::OkStatus();
}

absl::Status layer_norm(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(
      call.inputs[0].dtype, [&](auto tag) { status = forward<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("layer_norm", call.inputs[0].dtype);
}
GW_CPU_KERNEL("layer_norm", layer_norm);

absl::Status layer_norm_backward(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[1].dtype, [&](auto tag) {
    status = backward<decltype(tag)>(call, context.pool);
  });
  return known ? status : dtype_error("layer_norm_backward", call.inputs[1].dtype);
}
GW_CPU_KERNEL("layer_norm_backward", layer_norm_backward);

}  // namespace
}  // namespace gradwire::cpu
