#include "kernels/cpu/linalg_batch.h"

#include <limits>

namespace gradwire::cpu {

Matrices::Matrices(const TensorView& view, Kind kind) : data_(view.data) {
  int inner = kind == Kind::kMatrices ? 2 : 1;
  int outer = view.rank - inner;
  map_ = map_dims(view, 0, outer);
  batched = outer > 0;
  count = 1;
  for (int d = 0; d < outer; ++d) count *= view.sizes[d];
  rows = view.sizes[outer];
  row_stride_ = view.strides[outer];
  cols = kind == Kind::kMatrices ? view.sizes[outer + 1] : 1;
  col_stride_ = kind == Kind::kMatrices ? view.strides[outer + 1] : 0;
}

bool all_empty(const KernelCall& call) {
  for (const TensorView& out : call.outputs) {
    if (out.numel() > 0) return false;
  }
  return true;
}

absl::Status check_size(const Matrices& m) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (m.rows <= kMost && m.cols <= kMost &&
      m.rows <= (int64_t{1} << 56) / std::max<int64_t>(m.cols, 1)) {
    return absl::OkStatus();
  }
  return runtime_error("a matrix of ", m.rows, " by ", m.cols, " is too big for LAPACK");
}

std::vector<int> for_matrices(int64_t count, double work, ThreadPool& pool,
                              const std::function<int(int64_t)>& solve) {
  std::vector<int> infos(count, 0);
  auto grain = static_cast<int64_t>(std::max(1.0, 1e5 / (work + 1)));
  pool.parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) infos[i] = solve(i);
  });
  return infos;
}

absl::Status check_infos(const std::vector<int>& infos, std::string_view name, bool batched) {
  for (size_t i = 0; i < infos.size(); ++i) {
    int info = infos[i];
    if (info == 0 || (info > 0 && name.empty())) continue;
    if (info == lapack::kNoMemory) return scratch_error();
    auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    std::string text(name);
    text += batched ? absl::StrCat(": (Batch element ", i, "): ") : ": ";
    if (info == kNotFinite) {
      text +=
          "The algorithm failed to converge because the input matrix contained non-finite values.";
    } else if (info < 0) {
      return internal_error(text, "LAPACK refused argument ", -info);
    } else if (has("inv")) {
      absl::StrAppend(&text, "The diagonal element ", info,
                      " is zero, the inversion could not be completed because the input matrix is "
                      "singular.");
    } else if (has("solve")) {
      text += "The solver failed because the input matrix is singular.";
    } else if (has("cholesky")) {
      absl::StrAppend(&text,
                      "The factorization could not be completed because the input is not "
                      "positive-definite (the leading minor of order ",
                      info, " is not positive-definite).");
    } else if (has("svd") || has("pinv")) {
      absl::StrAppend(&text,
                      "The algorithm failed to converge because the input matrix is "
                      "ill-conditioned or has too many repeated singular values (error code: ",
                      info, ").");
    } else if (has("eig")) {
      absl::StrAppend(&text,
                      "The algorithm failed to converge because the input matrix is "
                      "ill-conditioned or has too many repeated eigenvalues (error code: ",
                      info, ").");
    } else if (has("lstsq")) {
      absl::StrAppend(&text,
                      "The least squares solution could not be computed because the input matrix "
                      "does not have full rank (error code: ",
                      info, ").");
    } else {
      absl::StrAppend(&text, "U[", info, ",", info,
                      "] is zero and using it on lu_solve would result in a division by zero. If "
                      "you still want to perform the factorization, consider calling linalg.lu(A, "
                      "pivot) or linalg.lu_factor_ex(A, pivot)");
    }
    bool linalg = !has("lu_factor");
    return make_error(linalg ? ErrorKind::kLinAlg : ErrorKind::kRuntime, text);
  }
  return absl::OkStatus();
}

void store_infos(const std::vector<int>& infos, const TensorView& out) {
  IndexMap map = map_dims(out, 0, out.rank);
  for (size_t i = 0; i < infos.size(); ++i) {
    out.as<int32_t>()[map.offset(static_cast<int64_t>(i))] = infos[i];
  }
}

}  // namespace gradwire::cpu
