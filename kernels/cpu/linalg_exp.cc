// The matrix exponential by scaling and squaring with the Pade approximant of degree 13 (Higham,
// The Scaling and Squaring Method for the Matrix Exponential Revisited, 2005).
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/linalg_batch.h"

namespace gradwire::cpu {
namespace {

constexpr double kPade[] = {64764752532480000.,
                            32382376266240000.,
                            7771770303897600.,
                            1187353796428800.,
                            129060195264000.,
                            10559470521600.,
                            670442572800.,
                            33522128640.,
                            1323241920.,
                            40840800.,
                            960960.,
                            16380.,
                            182.,
                            1.};
constexpr double kLargestNorm = 5.371920351148152;

void multiply(const double* a, const double* b, double* c, int64_t n) {
  gemm(1.0, {a, n, n, 1, n}, {b, n, n, 1, n}, 0.0, Matrix<double>{c, n, n, 1, n});
}

// a becomes exp(a); `work` has room for 6 n n numbers. Returns LAPACK's info.
int exponential(double* a, int64_t n, double* work) {
  const int64_t nn = n * n;
  double norm = 0;
  for (int64_t c = 0; c < n; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < n; ++r) sum += std::abs(a[c * n + r]);
    norm = std::isnan(sum) ? sum : std::max(norm, sum);
    if (std::isnan(sum)) break;
  }
  if (!std::isfinite(norm)) {
    std::fill_n(a, nn, std::nan(""));
    return 0;
  }
  int squarings = norm > kLargestNorm ? std::max(0, std::ilogb(norm / kLargestNorm) + 1) : 0;
  for (int64_t i = 0; i < nn; ++i) a[i] = std::ldexp(a[i], -squarings);
  double *a2 = work, *a4 = work + nn, *a6 = work + 2 * nn, *u = work + 3 * nn, *v = work + 4 * nn;
  double* t = work + 5 * nn;
  multiply(a, a, a2, n);
  multiply(a2, a2, a4, n);
  multiply(a4, a2, a6, n);
  auto add_identity = [&](double* p, double value) {
    for (int64_t i = 0; i < n; ++i) p[i * n + i] += value;
  };
  for (int64_t i = 0; i < nn; ++i) t[i] = kPade[13] * a6[i] + kPade[11] * a4[i] + kPade[9] * a2[i];
  multiply(a6, t, v, n);
  for (int64_t i = 0; i < nn; ++i) {
    v[i] += kPade[7] * a6[i] + kPade[5] * a4[i] + kPade[3] * a2[i];
  }
  add_identity(v, kPade[1]);
  multiply(a, v, u, n);
  for (int64_t i = 0; i < nn; ++i) t[i] = kPade[12] * a6[i] + kPade[10] * a4[i] + kPade[8] * a2[i];
  multiply(a6, t, v, n);
  for (int64_t i = 0; i < nn; ++i) {
    v[i] += kPade[6] * a6[i] + kPade[4] * a4[i] + kPade[2] * a2[i];
  }
  add_identity(v, kPade[0]);
  for (int64_t i = 0; i < nn; ++i) {
    a[i] = v[i] + u[i];
    t[i] = v[i] - u[i];
  }
  std::vector<int> pivots(n);
  int size = static_cast<int>(n);
  int info = lapack::getrf(size, size, t, size, pivots.data());
  if (info < 0) return info;
  info = lapack::getrs('N', size, size, t, size, pivots.data(), a, size);
  if (info) return info;
  for (int k = 0; k < squarings; ++k) {
    multiply(a, a, t, n);
    std::copy_n(t, nn, a);
  }
  return 0;
}

// Computed in float64 whatever the dtype.
absl::Status matrix_exp(const KernelCall& call, Context& context) {
  if (all_empty(call)) return absl::OkStatus();
  const TensorView& in = call.inputs[0];
  DenseInput<double> source(in, context.pool);
  DenseOutput<double> target(call.outputs[0], context.pool);
  if (!source.ok() || !target.ok()) return scratch_error();
  int64_t n = in.sizes[in.rank - 1], count = 1;
  for (int d = 0; d < in.rank - 2; ++d) count *= in.sizes[d];
  GW_RETURN_IF_ERROR(check_size(Matrices(in)));
  auto infos = for_matrices(count, 40.0 * n * n * n, context.pool, [&](int64_t i) {
    if (n == 0) return 0;
    Block<double> work(7 * n * n);
    if (!work.ok()) return lapack::kNoMemory;
    // Row-major is the transpose, and so is its exponential.
    std::copy_n(source.data() + i * n * n, n * n, work.data());
    int info = exponential(work.data(), n, work.data() + n * n);
    std::copy_n(work.data(), n * n, target.data() + i * n * n);
    return info;
  });
  GW_RETURN_IF_ERROR(check_infos(infos, "", in.rank > 2));
  target.store();
  return absl::OkStatus();
}
GW_CPU_KERNEL("matrix_exp", matrix_exp);

}  // namespace
}  // namespace gradwire::cpu
