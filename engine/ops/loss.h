// What the loss rows share: the reduction, and the checks of their arguments.
#pragma once

#include <string>

#include "engine/ops/call.h"

namespace gradwire {

// Error: not "none", "mean" or "sum".
absl::Status check_reduction(const std::string& how);
// The mean or the sum of all elements, or the loss as it is.
Tensor reduce_loss(const Tensor& loss, const std::string& how);

// input itself (as a copy), with an error of `kind` ("RuntimeError" or "ValueError") and `message`
// when an element lies outside [low, high]. Passes the gradient through. nan lies outside when
// `nan_fails`.
Tensor checked_range(const Tensor& input, double low, double high, bool nan_fails,
                     const std::string& kind, const std::string& message);

// input, at least min; the gradient passes everywhere.
Tensor clamp_through(const Tensor& input, double min);

// Pointwise calls with numbers.
Tensor add(const Tensor& a, double b);
Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no);
Tensor equals(const Tensor& a, double b);
Tensor clamp_min(const Tensor& a, double min);
Tensor masked_fill(const Tensor& a, const Tensor& mask, double value);

// sum(|input|^p)^(1/p) over dims, in the rows of engine/ops/rows_norm_p.cc.
Tensor p_norm(const Tensor& input, double p, IntList dims, bool keepdim);
// p_norm(x1 - x2 + eps) along the last dim.
Tensor pair_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim);

}  // namespace gradwire
