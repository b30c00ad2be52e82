// Eigenvalues and singular values of batches of matrices, and what is made of them.
#include <limits>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/linalg_batch.h"

namespace gradwire::cpu {
namespace {

using Kind = Matrices::Kind;

// A -> values, vectors; attributes upper, vectors.
template <class C>
absl::Status eigh(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), values(call.outputs[0], Kind::kVectors), vectors(call.outputs[1]);
  GW_RETURN_IF_ERROR(check_size(a));
  bool upper = call.attributes[0].as_bool(), wants = call.attributes[1].as_bool();
  int n = static_cast<int>(a.rows);
  auto infos = for_matrices(a.count, 9.0 * n * n * n, context.pool, [&](int64_t i) {
    Block<C> block(a.rows * a.cols), found(n);
    if (!block.ok() || !found.ok()) return lapack::kNoMemory;
    a.load(i, block.data(), n);
    if (!all_finite(block.data(), a.rows * a.cols)) {
      // LAPACK might not end; torch's results are nan.
      std::fill_n(block.data(), a.rows * a.cols, std::numeric_limits<C>::quiet_NaN());
      values.store(i, block.data(), n);
      if (wants) vectors.store(i, block.data(), n);
      return 0;
    }
    int info = n ? lapack::syevd(wants, upper ? 'U' : 'L', n, block.data(), n, found.data()) : 0;
    if (info) return info;
    values.store(i, found.data(), n);
    if (wants) vectors.store(i, block.data(), n);
    return 0;
  });
  return check_infos(infos, call.attributes[2].as_string(), a.batched);
}

absl::Status linalg_eigh(const KernelCall& call, Context& context) {
  return visit_real("eigh", call, [&](auto tag) { return eigh<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_eigh", linalg_eigh);

template <class C>
void identity(C* p, int64_t n) {
  std::fill_n(p, n * n, C(0));
  for (int64_t i = 0; i < n; ++i) p[i * n + i] = 1;
}

// A -> U, S, Vh; attributes full_matrices, vectors.
template <class C>
absl::Status svd(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), u(call.outputs[0]), s(call.outputs[1], Kind::kVectors);
  Matrices vh(call.outputs[2]);
  GW_RETURN_IF_ERROR(check_size(a));
  bool full = call.attributes[0].as_bool(), wants = call.attributes[1].as_bool();
  int m = static_cast<int>(a.rows), n = static_cast<int>(a.cols), k = std::min(m, n);
  char job = !wants ? 'N' : full ? 'A' : 'S';
  int u_cols = full ? m : k, v_rows = full ? n : k;
  auto infos = for_matrices(a.count, 20.0 * m * n * k, context.pool, [&](int64_t i) {
    Block<C> block(a.rows * a.cols), values(k);
    Block<C> left(wants ? int64_t{m} * u_cols : 0), right(wants ? int64_t{n} * v_rows : 0);
    if (!block.ok() || !values.ok() || !left.ok() || !right.ok()) return lapack::kNoMemory;
    a.load(i, block.data(), m);
    if (!all_finite(block.data(), a.rows * a.cols)) return kNotFinite;
    int info = 0;
    if (k) {
      info = lapack::gesdd(job, m, n, block.data(), m, values.data(), left.data(), std::max(m, 1),
                           right.data(), std::max(v_rows, 1));
    } else if (wants) {
      if (u_cols) identity(left.data(), m);
      if (v_rows) identity(right.data(), n);
    }
    if (info) return info;
    s.store(i, values.data(), k);
    if (wants) {
      u.store(i, left.data(), m);
      vh.store(i, right.data(), v_rows);
    }
    return 0;
  });
  return check_infos(infos, call.attributes[2].as_string(), a.batched);
}

absl::Status linalg_svd(const KernelCall& call, Context& context) {
  return visit_real("svd", call, [&](auto tag) { return svd<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_svd", linalg_svd);

// The tolerance of one matrix: numbers, or tensors over the batch.
class Tolerance {
 public:
  Tolerance(const TensorView& tensor, const Attribute& number)
      : tensor_(tensor), number_(number), map_(map_dims(tensor, 0, tensor.rank)) {}
  bool given() const { return tensor_.present() || !number_.none(); }
  double at(int64_t i) const {
    return tensor_.present() ? read_element(tensor_, map_.offset(i)) : number_.as_double();
  }

 private:
  const TensorView& tensor_;
  const Attribute& number_;
  IndexMap map_;
};

// A -> its pseudo-inverse V S^-1 U^T without the singular values at or under
// max(atol, rtol * largest). Inputs A, atol, rtol; attributes atol, rtol, hermitian.
template <class C>
absl::Status pinv(const KernelCall& call, Context& context) {
  Matrices a(call.inputs[0]), out(call.outputs[0]);
  GW_RETURN_IF_ERROR(check_size(a));
  Tolerance atol(call.inputs[1], call.attributes[0]), rtol(call.inputs[2], call.attributes[1]);
  bool hermitian = call.attributes[2].as_bool();
  int m = static_cast<int>(a.rows), n = static_cast<int>(a.cols), k = std::min(m, n);
  double usual = static_cast<double>(std::numeric_limits<C>::epsilon()) * std::max(m, n);
  auto infos = for_matrices(a.count, 24.0 * m * n * k, context.pool, [&](int64_t i) {
    Block<C> u(int64_t{m} * std::max(k, n)), s(k), vt(int64_t{n} * k), block(a.rows * a.cols);
    Block<C> result(a.rows * a.cols);
    if (!u.ok() || !s.ok() || !vt.ok() || !block.ok() || !result.ok()) return lapack::kNoMemory;
    a.load(i, block.data(), m);
    if (!all_finite(block.data(), a.rows * a.cols)) return kNotFinite;
    if (k == 0) return 0;
    C *left = u.data(), *right = vt.data();
    int info;
    if (hermitian) {
      info = lapack::syevd(true, 'L', n, block.data(), n, s.data());
      left = block.data();
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t r = 0; r < n; ++r) right[r * k + c] = left[c * n + r];
      }
    } else {
      info = lapack::gesdd('S', m, n, block.data(), m, s.data(), left, m, right, k);
    }
    if (info) return info;
    double largest = 0;
    for (int j = 0; j < k; ++j) largest = std::max(largest, std::abs(double(s.data()[j])));
    double least = atol.given() ? atol.at(i) : 0;
    double relative = rtol.given() ? rtol.at(i) : least > 0 ? 0 : usual;
    double limit = std::max(least, relative * largest);
    for (int64_t j = 0; j < k; ++j) {
      double value = s.data()[j];
      C inverse = std::abs(value) > limit ? C(1) / s.data()[j] : C(0);
      for (int64_t c = 0; c < n; ++c) right[c * k + j] *= inverse;
    }
    // n x m = (k x n)^T (m x k)^T, column-major.
    Matrix<const C> v{right, n, k, k, 1}, ut{left, k, m, m, 1};
    gemm(C(1), v, ut, C(0), Matrix<C>{result.data(), n, m, 1, n});
    out.store(i, result.data(), n);
    return 0;
  });
  return check_infos(infos, hermitian ? "linalg.eigh" : "linalg.svd", a.batched);
}

absl::Status linalg_pinv(const KernelCall& call, Context& context) {
  return visit_real("pinv", call, [&](auto tag) { return pinv<decltype(tag)>(call, context); });
}
GW_CPU_KERNEL("linalg_pinv", linalg_pinv);

}  // namespace
}  // namespace gradwire::cpu
