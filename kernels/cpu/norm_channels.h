// Per-channel sums and maps over tensors [N, C, ...]: the two halves of batch norm. Work is cut by
// shape alone; sums over blocks are added in double, in order.
#pragma once

#include "absl/status/status.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

enum class ChannelSum {
  kValue,      // sums[c] = sum of x
  kDeviation,  // sums[c] = sum of (x - center[c])^2
  kGradient,   // sums[c] = sum of g, dots[c] = sum of g (x - center[c])
};

// T is the element type of g and x; g and dots are for kGradient alone.
template <class T>
absl::Status channel_sums(ChannelSum what, const TensorView& g, const TensorView& x,
                          const double* center, double* sums, double* dots, ThreadPool& pool);

// out = (x - mean[c]) a[c] + c0[c]
template <class T>
absl::Status channel_affine(const TensorView& x, const double* mean, const double* a,
                            const double* c0, const TensorView& out, ThreadPool& pool);

// out = a[c] g - b[c] (x - mean[c]) - c0[c]
template <class T>
absl::Status channel_gradient(const TensorView& g, const TensorView& x, const double* mean,
                              const double* a, const double* b, const double* c0,
                              const TensorView& out, ThreadPool& pool);

}  // namespace gradwire::cpu
