#include "engine/ops/normalisation.h"

namespace gradwire {

DType statistics_dtype(DType t) {
  return t == DType::kFloat64 ? t : DType::kFloat32;
}

absl::Status check_floating(const Call& call, const Tensor& x) {
  if (is_floating(x->dtype)) return absl::OkStatus();
  return not_implemented_error("\"", call.op->name, "\" not implemented for '",
                               std::string(dtype_name(x->dtype)), "'");
}

NormGradients norm_gradients(const Tensor& grad, const Tensor& input, const Tensor& weight,
                             IntList dims, double eps) {
  static const OpRef mean_op("mean"), rsqrt("rsqrt"), square("square"), add_op("add");
  if (grad->poison || input->poison) {
    Tensor bad = grad->poison ? grad : input;
    return {bad, bad, bad};
  }
  auto mean = [&](const Tensor& t) { return call(mean_op, {t}, {dims, true}); };
  DType dtype = statistics_dtype(input->dtype);
  Tensor x = cast(input, dtype), g = cast(grad, dtype);
  Tensor centered = sub(x, mean(x));
  Tensor variance = mean(call(square, {centered}));
  Tensor rstd = call(rsqrt, {with_number(add_op, variance, eps, 1)});
  Tensor xhat = mul(centered, rstd);
  Tensor down = weight ? mul(g, cast(weight, dtype)) : g;
  Tensor dx = mul(rstd, sub(sub(down, mean(down)), mul(xhat, mean(mul(down, xhat)))));
  return {dx, mul(g, xhat), g};
}

Tensor per_channel(const Tensor& t, int rank) {
  Dims sizes(rank, 1);
  sizes[1] = -1;
  return reshape(t, sizes);
}

}  // namespace gradwire
