// Linear systems: by LU, by substitution, and least squares.
#include <numeric>

#include "kernels/cpu/linalg_batch.h"

namespace gradwire::cpu {
namespace {

// A, B -> X with A X = B (left) or X A = B, and A's LU, pivots, info. A singular A gives X as
// getrs would with its factors: inf or nan.
template <class C>
absl::Status solve(const KernelCall& call, Context& context) {
  bool left = call.attributes[0].as_bool();
  Matrices a(call.inputs[0]), lu(call.outputs[1]), b(call.inputs[1]), x(call.outputs[0]);
  GW_RETURN_IF_ERROR(check_size(a));
  GW_RETURN_IF_ERROR(check_size(b));
  Matrices pivots(call.outputs[2], Matrices::Kind::kVectors);
  if (!left) {
    b = b.transposed();
    x = x.transposed();
  }
  int n = static_cast<int>(a.rows), columns = static_cast<int>(b.cols);
  auto infos = for_matrices(a.count, double(n) * n * (n + columns), context.pool, [&](int64_t i) {
    Block<C> factors(a.rows * a.cols), values(b.rows * b.cols);
    Block<int> order(n);
    if (!factors.ok() || !values.ok() || !order.ok()) return lapack::kNoMemory;
    a.load(i, factors.data(), n);
    b.load(i, values.data(), n);
    if (n == 0) return 0;
    int info = lapack::getrf(n, n, factors.data(), n, order.data());
    if (info < 0) return info;
    lu.store(i, factors.data(), n);
    pivots.store(i, order.data(), n);
    if (columns) {
      int code = lapack::getrs(left ? 'N' : 'T', n, columns, factors.data(), n, order.data(),
                               values.data(), n);
      if (code < 0) return code;
    }
    x.store(i, values.data(), n);
    return info;
  });
  GW_RETURN_IF_ERROR(check_infos(infos, call.attributes[1].as_string(), a.batched));
  store_infos(infos, call.outputs[3]);
  return absl::OkStatus();
}

absl::Status linalg_solve(const KernelCall& call, Context& context) {
  return visit_real("solve", call, [&](auto tag) { return solve<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_solve", linalg_solve);

// A, B -> X with one triangle of A; attributes upper, left, unitriangular.
template <class C>
absl::Status substitute(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), b(call.inputs[1]), x(call.outputs[0]);
  GW_RETURN_IF_ERROR(check_size(a));
  GW_RETURN_IF_ERROR(check_size(b));
  bool upper = call.attributes[0].as_bool(), left = call.attributes[1].as_bool();
  bool unit = call.attributes[2].as_bool();
  int n = static_cast<int>(a.rows), m = static_cast<int>(b.rows), c = static_cast<int>(b.cols);
  auto infos = for_matrices(b.count, double(n) * m * c, context.pool, [&](int64_t i) {
    Block<C> factor(a.rows * a.cols), values(b.rows * b.cols);
    if (!factor.ok() || !values.ok()) return lapack::kNoMemory;
    a.load(i, factor.data(), n);
    b.load(i, values.data(), m);
    if (m && c) lapack::trsm(left, upper, false, unit, m, c, factor.data(), n, values.data(), m);
    x.store(i, values.data(), m);
    return 0;
  });
  return check_infos(infos, "", b.batched);
}

absl::Status linalg_substitute(const KernelCall& call, Context& context) {
  return visit_real("solve_triangular", call,
                    [&](auto tag) { return substitute<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_solve_triangular", linalg_substitute);

// B, L -> X with L L^T X = B; attribute upper: the factor is L^T.
template <class C>
absl::Status substitute_twice(const KernelCall& call, Context& context) {
  Matrices b(call.inputs[0]), l(call.inputs[1]), x(call.outputs[0]);
  GW_RETURN_IF_ERROR(check_size(l));
  GW_RETURN_IF_ERROR(check_size(b));
  bool upper = call.attributes[0].as_bool();
  int n = static_cast<int>(b.rows), c = static_cast<int>(b.cols);
  auto infos = for_matrices(b.count, 2.0 * n * n * c, context.pool, [&](int64_t i) {
    Block<C> factor(l.rows * l.cols), values(b.rows * b.cols);
    if (!factor.ok() || !values.ok()) return lapack::kNoMemory;
    l.load(i, factor.data(), n);
    b.load(i, values.data(), n);
    if (n && c) {
      for (bool transposed : {upper, !upper}) {
        lapack::trsm(true, upper, transposed, false, n, c, factor.data(), n, values.data(), n);
      }
    }
    x.store(i, values.data(), n);
    return 0;
  });
  return check_infos(infos, "", b.batched);
}

absl::Status linalg_substitute_twice(const KernelCall& call, Context& context) {
  return visit_real("cholesky_solve", call,
                    [&](auto tag) { return substitute_twice<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_cholesky_solve", linalg_substitute_twice);

// LAPACK's row exchanges as a permutation: row i of P^T B is row order[i] of B. With `inverse` the
// other way.
absl::Status lu_order(const KernelCall& call, Context& context) {
  const TensorView& in = call.inputs[0];
  if (in.dtype != DType::kInt32) return dtype_error("lu_unpack", in.dtype);
  if (all_empty(call)) return absl::OkStatus();
  Matrices pivots(in, Matrices::Kind::kVectors);
  Matrices out(call.outputs[0], Matrices::Kind::kVectors);
  bool inverse = call.attributes[1].as_bool();
  std::atomic<bool> bad = false;
  auto infos = for_matrices(out.count, 4.0 * out.rows, context.pool, [&](int64_t i) {
    std::vector<int64_t> order(out.rows), result(out.rows);
    std::vector<int32_t> swaps(pivots.rows);
    std::iota(order.begin(), order.end(), 0);
    pivots.load(i, swaps.data(), pivots.rows);
    for (int64_t k = 0; k < pivots.rows; ++k) {
      if (swaps[k] < 1 || swaps[k] > out.rows || k >= out.rows) {
        bad = true;
        return 0;
      }
      std::swap(order[k], order[swaps[k] - 1]);
    }
    for (int64_t k = 0; k < out.rows; ++k) {
      if (inverse) {
        result[order[k]] = k;
      } else {
        result[k] = order[k];
      }
    }
    out.store(i, result.data(), out.rows);
    return 0;
  });
  if (bad) {
    return runtime_error(
        "pivots passed to lu_solve must be between 1 and the number of rows of the matrix");
  }
  return absl::OkStatus();
}
GW_CPU_KERNEL("linalg_lu_order", lu_order);

// A, B -> solution, residuals, rank, singular values; attributes rcond, driver.
template <class C>
absl::Status least_squares(const KernelCall& call, Context& context) {
  using Kind = Matrices::Kind;
  Matrices a(call.inputs[0]), b(call.inputs[1]), x(call.outputs[0]);
  GW_RETURN_IF_ERROR(check_size(a));
  GW_RETURN_IF_ERROR(check_size(b));
  const std::string& name = call.attributes[1].as_string();
  char driver = name == "gels" ? 'g' : name.back();
  int m = static_cast<int>(a.rows), n = static_cast<int>(a.cols), k = std::min(m, n);
  int columns = static_cast<int>(b.cols), ld = std::max({m, n, 1});
  bool residual = m > n && driver != 'y';
  auto rcond = static_cast<C>(call.attributes[0].as_double());
  TensorView ranks = call.outputs[2];
  IndexMap rank_map = map_dims(ranks, 0, ranks.rank);
  auto infos = for_matrices(x.count, 4.0 * m * n * (k + columns), context.pool, [&](int64_t i) {
    Block<C> matrix(a.rows * a.cols), values(int64_t{ld} * columns), s(k), sums(columns);
    if (!matrix.ok() || !values.ok() || !s.ok() || !sums.ok()) return lapack::kNoMemory;
    std::fill_n(values.data(), int64_t{ld} * columns, C(0));
    a.load(i, matrix.data(), m);
    b.load(i, values.data(), ld);
    if (!all_finite(matrix.data(), a.rows * a.cols) ||
        !all_finite(values.data(), int64_t{ld} * columns)) {
      return kNotFinite;
    }
    int rank = 0, info = 0;
    if (k && columns) {
      info = lapack::gels(driver, m, n, columns, matrix.data(), m, values.data(), ld, rcond,
                          s.data(), &rank);
    }
    if (info) return info;
    x.store(i, values.data(), ld);
    if (residual) {
      for (int64_t c = 0; c < columns; ++c) {
        C sum = 0;
        for (int64_t r = n; r < m; ++r)
          sum += values.data()[c * ld + r] * values.data()[c * ld + r];
        sums.data()[c] = sum;
      }
      Matrices(call.outputs[1], Kind::kVectors).store(i, sums.data(), columns);
    }
    if (driver != 'g') ranks.as<int64_t>()[rank_map.offset(i)] = rank;
    if (driver == 'd' || driver == 's') {
      Matrices(call.outputs[3], Kind::kVectors).store(i, s.data(), k);
    }
    return 0;
  });
  return check_infos(infos, "torch.linalg.lstsq", a.batched);
}

absl::Status linalg_lstsq(const KernelCall& call, Context& context) {
  return visit_real("lstsq", call,
                    [&](auto tag) { return least_squares<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_lstsq", linalg_lstsq);

}  // namespace
}  // namespace gradwire::cpu
