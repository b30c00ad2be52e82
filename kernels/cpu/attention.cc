// Attention a block of queries at a time: the scores of a block against all keys are the only
// memory beyond the results. Backward makes them again from the saved log-sum-exp (Dao et al. 2022,
// without their split of the keys).
#include <atomic>
#include <cmath>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/simd.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kBlock = 128;

// query [B, L, E], key [B, S, E], value [B, S, F]; attributes is_causal, scale.
struct Sizes {
  int64_t batch, queries, keys, width, values;
  bool causal;
  double scale;

  Sizes(const TensorView& q, const TensorView& v, const KernelCall& call)
      : batch(q.sizes[0]),
        queries(q.sizes[1]),
        keys(v.sizes[1]),
        width(q.sizes[2]),
        values(v.sizes[2]),
        causal(call.attributes[0].as_bool()),
        scale(call.attributes[1].as_double()) {}

  int64_t blocks() const { return (queries + kBlock - 1) / kBlock; }
  // How many keys the query sees.
  int64_t seen(int64_t query) const { return causal ? std::min(keys, query + 1) : keys; }
};

template <class C>
Matrix<const C> rows_of(const C* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, 1};
}

// x = exp(x - max), its sum and max.
template <class C>
C exp_row(C* x, int64_t n, C* max) {
  using S = Simd<C>;
  *max = row_max(x, n);
  auto shift = S::set(*max);
  return reduce_sum<C>(n, [&](int64_t i, int64_t lanes) {
    auto e = S::exp(load_lanes<C>(x + i, lanes, -__builtin_inf()) - shift);
    store_lanes<C>(x + i, lanes, e);
    return e;
  });
}

template <class C>
void scale_row(C* x, int64_t n, C factor) {
  auto f = Simd<C>::set(factor);
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    store_lanes<C>(x + i, lanes, load_lanes<C>(x + i, lanes, C(0)) * f);
  });
}

template <class T>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  Sizes n(call.inputs[0], call.inputs[2], call);
  DenseInput<C> query(call.inputs[0], pool), key(call.inputs[1], pool), value(call.inputs[2], pool);
  DenseOutput<C> out(call.outputs[0], pool), lse(call.outputs[1], pool);
  if (!query.ok() || !key.ok() || !value.ok() || !out.ok() || !lse.ok()) return scratch_error();
  std::atomic<bool> failed = false;
  pool.parallel_ranges(n.batch * n.blocks(), 1, [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(kBlock * n.keys + 16) * sizeof(C));
    C* scores = scratch.as<C>();
    if (!scores) {
      failed = true;
      return;
    }
    for (int64_t task = begin; task < end; ++task) {
      int64_t b = task / n.blocks(), first = task % n.blocks() * kBlock;
      int64_t rows = std::min(kBlock, n.queries - first), keys = n.seen(first + rows - 1);
      auto q = rows_of(query.data() + (b * n.queries + first) * n.width, rows, n.width);
      auto k = rows_of(key.data() + b * n.keys * n.width, keys, n.width);
      auto v = rows_of(value.data() + b * n.keys * n.values, keys, n.values);
      Matrix<C> s{scores, rows, keys, keys, 1};
      gemm(static_cast<C>(n.scale), q, k.transposed(), C(0), s);
      for (int64_t r = 0; r < rows; ++r) {
        int64_t seen = n.seen(first + r);
        C* row = s.at(r, 0);
        C max, sum = exp_row(row, seen, &max);
        scale_row(row, seen, C(1) / sum);
        std::fill(row + seen, row + keys, C(0));
        lse.data()[b * n.queries + first + r] = max + std::log(sum);
      }
      C* to = out.data() + (b * n.queries + first) * n.values;
      gemm(C(1), Matrix<const C>{scores, rows, keys, keys, 1}, v, C(0),
           Matrix<C>{to, rows, n.values, n.values, 1});
    }
  });
  if (failed) return scratch_error();
  out.store();
  lse.store();
  return absl::OkStatus();
}

// inputs grad [B, L, F], query, key, value, lse; outputs of query, key, value.
template <class T>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  Sizes n(call.inputs[1], call.inputs[3], call);
  DenseInput<C> grad(call.inputs[0], pool), query(call.inputs[1], pool), key(call.inputs[2], pool);
  DenseInput<C> value(call.inputs[3], pool), lse(call.inputs[4], pool);
  DenseOutput<C> dquery(call.outputs[0], pool), dkey(call.outputs[1], pool);
  DenseOutput<C> dvalue(call.outputs[2], pool);
  if (!grad.ok() || !query.ok() || !key.ok() || !value.ok() || !lse.ok() || !dquery.ok() ||
      !dkey.ok() || !dvalue.ok()) {
    return scratch_error();
  }
  std::atomic<bool> failed = false;
  pool.parallel_ranges(n.batch, 1, [&](int64_t begin, int64_t end) {
    Scratch scratch(static_cast<size_t>(2 * kBlock * n.keys + 32) * sizeof(C));
    C* weights = scratch.as<C>();
    if (!weights) {
      failed = true;
      return;
    }
    C* slopes = weights + kBlock * n.keys;
    for (int64_t b = begin; b < end; ++b) {
      C* dk = dkey.data() + b * n.keys * n.width;
      C* dv = dvalue.data() + b * n.keys * n.values;
      std::fill(dk, dk + n.keys * n.width, C(0));
      std::fill(dv, dv + n.keys * n.values, C(0));
      for (int64_t first = 0; first < n.queries; first += kBlock) {
        int64_t rows = std::min(kBlock, n.queries - first), keys = n.seen(first + rows - 1);
        int64_t at = b * n.queries + first;
        auto q = rows_of(query.data() + at * n.width, rows, n.width);
        auto k = rows_of(key.data() + b * n.keys * n.width, keys, n.width);
        auto v = rows_of(value.data() + b * n.keys * n.values, keys, n.values);
        auto g = rows_of(grad.data() + at * n.values, rows, n.values);
        Matrix<C> w{weights, rows, keys, keys, 1}, d{slopes, rows, keys, keys, 1};
        Matrix<const C> cw{weights, rows, keys, keys, 1}, cd{slopes, rows, keys, keys, 1};
        gemm(static_cast<C>(n.scale), q, k.transposed(), C(0), w);
        gemm(C(1), g, v.transposed(), C(0), d);
        for (int64_t r = 0; r < rows; ++r) {
          using S = Simd<C>;
          int64_t seen = n.seen(first + r);
          C *wr = w.at(r, 0), *dr = d.at(r, 0);
          auto shift = S::set(lse.data()[at + r]);
          // By the weights, not by the output: exact where one weight is 1.
          auto dot = S::set(reduce_sum<C>(seen, [&](int64_t i, int64_t lanes) {
            auto p = S::exp(load_lanes<C>(wr + i, lanes, -__builtin_inf()) - shift);
            store_lanes<C>(wr + i, lanes, p);
            return p * load_lanes<C>(dr + i, lanes, C(0));
          }));
          auto scale = S::set(static_cast<C>(n.scale));
          for_lanes<C>(seen, [&](int64_t i, int64_t lanes) {
            auto p = load_lanes<C>(wr + i, lanes, C(0));
            store_lanes<C>(dr + i, lanes, (load_lanes<C>(dr + i, lanes, C(0)) - dot) * p * scale);
          });
          std::fill(wr + seen, wr + keys, C(0));
          std::fill(dr + seen, dr + keys, C(0));
        }
        gemm(C(1), cw.transposed(), g, C(1), Matrix<C>{dv, keys, n.values, n.values, 1});
        gemm(C(1), cd.transposed(), q, C(1), Matrix<C>{dk, keys, n.width, n.width, 1});
        gemm(C(1), cd, k, C(0), Matrix<C>{dquery.data() + at * n.width, rows, n.width, n.width, 1});
      }
    }
  });
  if (failed) return scratch_error();
  dquery.store();
  dkey.store();
  dvalue.store();
  return absl::OkStatus();
}

absl::Status attention(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(
      call.inputs[0].dtype, [&](auto tag) { status = forward<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("attention", call.inputs[0].dtype);
}
GW_CPU_KERNEL("attention", attention);

absl::Status attention_backward(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[1].dtype, [&](auto tag) {
    status = backward<decltype(tag)>(call, context.pool);
  });
  return known ? status : dtype_error("attention_backward", call.inputs[1].dtype);
}
GW_CPU_KERNEL("attention_backward", attention_backward);

}  // namespace
}  // namespace gradwire::cpu
