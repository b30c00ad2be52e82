// Factorisations of batches of matrices: LU, Cholesky, QR.
#include "kernels/cpu/linalg_batch.h"

namespace gradwire::cpu {
namespace {

// A -> LU, pivots, info.
template <class C>
absl::Status lu(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), out(call.outputs[0]);
  GW_RETURN_IF_ERROR(check_size(a));
  Matrices pivots(call.outputs[1], Matrices::Kind::kVectors);
  int m = static_cast<int>(a.rows), n = static_cast<int>(a.cols), k = std::min(m, n);
  auto infos = for_matrices(a.count, double(m) * n * k, context.pool, [&](int64_t i) {
    Block<C> block(a.rows * a.cols);
    Block<int> order(k);
    if (!block.ok() || !order.ok()) return lapack::kNoMemory;
    a.load(i, block.data(), m);
    int info = k ? lapack::getrf(m, n, block.data(), m, order.data()) : 0;
    out.store(i, block.data(), m);
    pivots.store(i, order.data(), k);
    return info;
  });
  GW_RETURN_IF_ERROR(check_infos(infos, call.attributes[0].as_string(), a.batched));
  store_infos(infos, call.outputs[2]);
  return absl::OkStatus();
}

absl::Status linalg_lu(const KernelCall& call, Context& context) {
  return visit_real("lu", call, [&](auto tag) { return lu<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_lu", linalg_lu);

// A -> det, its sign and log |det|, LU, pivots, the sign of the row exchanges.
template <class C>
absl::Status det(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), out(call.outputs[3]);
  GW_RETURN_IF_ERROR(check_size(a));
  Matrices pivots(call.outputs[4], Matrices::Kind::kVectors);
  const TensorView *value = &call.outputs[0], *sign = &call.outputs[1], *log = &call.outputs[2];
  const TensorView* parity = &call.outputs[5];
  IndexMap map = map_dims(*value, 0, value->rank);
  int n = static_cast<int>(a.rows);
  auto infos = for_matrices(a.count, double(n) * n * n, context.pool, [&](int64_t i) {
    Block<C> block(a.rows * a.cols);
    Block<int> order(n);
    if (!block.ok() || !order.ok()) return lapack::kNoMemory;
    a.load(i, block.data(), n);
    int info = n ? lapack::getrf(n, n, block.data(), n, order.data()) : 0;
    if (info < 0) return info;
    out.store(i, block.data(), n);
    pivots.store(i, order.data(), n);
    C exchanges = 1, logs = 0;
    for (int64_t k = 0; k < n; ++k) exchanges = order.data()[k] != k + 1 ? -exchanges : exchanges;
    C product = exchanges, signs = exchanges;
    for (int64_t k = 0; k < n; ++k) {
      C d = block.data()[k * n + k];
      product *= d;
      signs *= d > 0 ? C(1) : d < 0 ? C(-1) : d;
      logs += std::log(std::abs(d));
    }
    int64_t at = map.offset(i);
    value->as<C>()[at] = product;
    sign->as<C>()[at] = signs;
    log->as<C>()[at] = logs;
    parity->as<C>()[at] = exchanges;
    return 0;
  });
  return check_infos(infos, "", a.batched);
}

absl::Status linalg_det(const KernelCall& call, Context& context) {
  return visit_real("lu", call, [&](auto tag) { return det<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_det", linalg_det);

// A -> its factor, info. Only one triangle of A is read.
template <class C>
absl::Status cholesky(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), out(call.outputs[0]);
  GW_RETURN_IF_ERROR(check_size(a));
  bool upper = call.attributes[0].as_bool();
  int n = static_cast<int>(a.rows);
  auto infos = for_matrices(a.count, double(n) * n * n / 3, context.pool, [&](int64_t i) {
    Block<C> block(a.rows * a.cols);
    if (!block.ok()) return lapack::kNoMemory;
    C* p = block.data();
    a.load(i, p, n);
    int info = n ? lapack::potrf(upper ? 'U' : 'L', n, p, n) : 0;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = upper ? c + 1 : 0; r < (upper ? n : c); ++r) p[c * n + r] = 0;
    }
    out.store(i, p, n);
    return info;
  });
  GW_RETURN_IF_ERROR(check_infos(infos, call.attributes[1].as_string(), a.batched));
  store_infos(infos, call.outputs[1]);
  return absl::OkStatus();
}

absl::Status linalg_cholesky(const KernelCall& call, Context& context) {
  return visit_real("cholesky", call,
                    [&](auto tag) { return cholesky<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_cholesky", linalg_cholesky);

// A -> Q, R; an empty Q is not computed.
template <class C>
absl::Status qr(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), q(call.outputs[0]), r(call.outputs[1]);
  GW_RETURN_IF_ERROR(check_size(a));
  GW_RETURN_IF_ERROR(check_size(q));
  bool wants_q = call.attributes[0].as_string() != "r";
  int m = static_cast<int>(a.rows), n = static_cast<int>(a.cols), k = std::min(m, n);
  int q_cols = static_cast<int>(q.cols), r_rows = static_cast<int>(r.rows);
  auto infos = for_matrices(a.count, 4.0 * m * n * k, context.pool, [&](int64_t i) {
    Block<C> block(int64_t{m} * std::max(n, q_cols));
    Block<C> tau(k), upper(int64_t{r_rows} * n);
    if (!block.ok() || !tau.ok() || !upper.ok()) return lapack::kNoMemory;
    C* p = block.data();
    a.load(i, p, m);
    int info = k ? lapack::geqrf(m, n, p, m, tau.data()) : 0;
    if (info) return info;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t row = 0; row < r_rows; ++row) {
        upper.data()[c * r_rows + row] = row <= c ? p[c * m + row] : C(0);
      }
    }
    r.store(i, upper.data(), r_rows);
    if (!wants_q || m == 0 || q_cols == 0) return 0;
    info = lapack::orgqr(m, q_cols, k, p, m, tau.data());
    q.store(i, p, m);
    return info;
  });
  return check_infos(infos, "linalg.qr", a.batched);
}

absl::Status linalg_qr(const KernelCall& call, Context& context) {
  return visit_real("qr", call, [&](auto tag) { return qr<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_qr", linalg_qr);

}  // namespace
}  // namespace gradwire::cpu
