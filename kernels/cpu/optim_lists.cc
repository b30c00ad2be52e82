#include "kernels/cpu/optim_lists.h"

namespace gradwire::cpu {

namespace {

constexpr int64_t kPiece = 1 << 15;

bool same_sizes(const TensorView& a, const TensorView& b) {
  return a.rank == b.rank && std::equal(a.sizes.begin(), a.sizes.begin() + a.rank, b.sizes.begin());
}

}  // namespace

Pieces cut_parameters(const TensorView* parameters, int64_t count) {
  Pieces out;
  out.starts.push_back(0);
  int64_t filled = 0;
  for (int64_t p = 0; p < count; ++p) {
    int64_t n = parameters[p].numel();
    for (int64_t begin = 0; begin < n;) {
      int64_t end = std::min(n, begin + kPiece - filled);
      out.pieces.push_back({p, begin, end});
      filled += end - begin;
      begin = end;
      if (filled < kPiece) continue;
      out.starts.push_back(static_cast<int64_t>(out.pieces.size()));
      filled = 0;
    }
  }
  if (filled > 0) out.starts.push_back(static_cast<int64_t>(out.pieces.size()));
  return out;
}

absl::Status check_step(const char* op, const KernelCall& call, int64_t groups) {
  auto inputs = static_cast<int64_t>(call.inputs.size());
  if (inputs % groups != 0) {
    return internal_error("[", op, "] ", inputs, " tensors do not form ", groups, " lists");
  }
  int64_t count = inputs / groups;
  for (int64_t p = 0; p < count; ++p) {
    const TensorView& parameter = call.inputs[p];
    if (!is_floating(parameter.dtype)) return dtype_error(op, parameter.dtype);
    for (int64_t g = 1; g < groups; ++g) {
      const TensorView& other = call.inputs[g * count + p];
      if (!other.present() && g > 1) continue;
      if (other.dtype != parameter.dtype) {
        return runtime_error(
            "[", op, "] parameter ", p, " has dtype ", std::string(dtype_name(parameter.dtype)),
            " but its gradient or state has ", std::string(dtype_name(other.dtype)));
      }
      if (!same_sizes(parameter, other)) {
        return runtime_error("[", op, "] parameter ", p,
                             " and its gradient or state differ in shape");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
