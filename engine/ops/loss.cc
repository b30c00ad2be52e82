#include "engine/ops/loss.h"

namespace gradwire {

absl::Status check_reduction(const std::string& how) {
  if (how == "none" || how == "mean" || how == "sum") return absl::OkStatus();
  return value_error(how, " is not a valid value for reduction");
}

Tensor reduce_loss(const Tensor& loss, const std::string& how) {
  static const OpRef mean("mean");
  if (how == "mean") return call(mean, {loss});
  if (how == "sum") return sum(loss, {}, false);
  return loss;
}

Tensor checked_range(const Tensor& input, double low, double high, bool nan_fails,
                     const std::string& kind, const std::string& message) {
  static const OpRef op("checked_range");
  return call(op, {input}, {low, high, nan_fails, kind, message});
}

Tensor clamp_through(const Tensor& input, double min) {
  static const OpRef op("clamp_through");
  return call(op, {input}, {min});
}

Tensor add(const Tensor& a, double b) {
  static const OpRef op("add");
  return with_number(op, a, b, 1);
}

Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  static const OpRef op("where");
  return call(op, {condition, yes, no});
}

Tensor equals(const Tensor& a, double b) {
  static const OpRef op("eq");
  return with_number(op, a, b);
}

Tensor clamp_min(const Tensor& a, double min) {
  static const OpRef op("clamp_min");
  return call(op, {a, nullptr},
              {is_floating(a->dtype) ? Attribute(min) : Attribute(static_cast<int64_t>(min))});
}

Tensor masked_fill(const Tensor& a, const Tensor& mask, double value) {
  static const OpRef op("masked_fill");
  return call(op, {a, mask, nullptr}, {value});
}

Tensor p_norm(const Tensor& input, double p, IntList dims, bool keepdim) {
  static const OpRef op("p_norm");
  return call(op, {input}, {p, std::move(dims), keepdim});
}

Tensor pair_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  return p_norm(add(sub(x1, x2), eps), p, {-1}, keepdim);
}

}  // namespace gradwire
