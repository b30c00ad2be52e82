// Convolution by its definition, for integers: wrapping sums, no matrix product. Tensors are dense
// and channels first.
#pragma once

#include "kernels/cpu/conv_shape.h"
#include "kernels/cpu/thread_pool.h"

namespace gradwire::cpu {

void conv_direct(const ConvShape& shape, const int64_t* x, const int64_t* w, const int64_t* bias,
                 int64_t* y, ThreadPool& pool);
void conv_direct_backward_input(const ConvShape& shape, const int64_t* grad, const int64_t* w,
                                int64_t* dx, ThreadPool& pool);

}  // namespace gradwire::cpu
