// Convolution by copying windows to columns and multiplying matrices: general in everything, used
// where oneDNN has no fast primitive. Tensors are dense and channels first; C is float or double.
#pragma once

#include "absl/status/status.h"
#include "kernels/cpu/conv_shape.h"
#include "kernels/cpu/thread_pool.h"

namespace gradwire::cpu {

template <class C>
absl::Status conv_columns(const ConvShape& shape, const C* x, const C* w, const C* bias, C* y,
                          ThreadPool& pool);
template <class C>
absl::Status conv_columns_backward_input(const ConvShape& shape, const C* grad, const C* w, C* dx,
                                         ThreadPool& pool);
template <class C>
absl::Status conv_columns_backward_weight(const ConvShape& shape, const C* grad, const C* x, C* dw,
                                          ThreadPool& pool);

}  // namespace gradwire::cpu
