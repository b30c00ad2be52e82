// What the normalisation rows share.
#pragma once

#include "engine/ops/call.h"

namespace gradwire {

// Statistics of 16-bit floats are float32.
DType statistics_dtype(DType t);

// "not implemented" for a dtype that is no floating one.
absl::Status check_floating(const Call& call, const Tensor& x);

// The gradients of y = xhat * weight + bias, xhat = (x - mean(x)) / sqrt(var(x) + eps) over `dims`,
// composed of rows that can be differentiated again. In the statistics' dtype.
struct NormGradients {
  Tensor dx;
  Tensor dxhat_weight;  // g * xhat, to be summed to the weight's sizes
  Tensor g;             // to be summed to the bias's sizes
};
// weight: null or broadcastable against x.
NormGradients norm_gradients(const Tensor& g, const Tensor& x, const Tensor& weight, IntList dims,
                             double eps);

// t of one element per channel, to broadcast against [N, C, ...] of that rank.
Tensor per_channel(const Tensor& t, int rank);

}  // namespace gradwire
