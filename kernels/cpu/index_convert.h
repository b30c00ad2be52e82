// Runs of elements of any dtype to and from double or int64 buffers.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

// `stride` is in elements. Float to int saturates; int to int wraps; bool is 0 or 1, and nonzero
// stores true.
void load_doubles(DType dtype, const void* from, int64_t stride, int64_t n, double* to);
void load_ints(DType dtype, const void* from, int64_t stride, int64_t n, int64_t* to);
void store_doubles(DType dtype, void* to, int64_t stride, int64_t n, const double* from);
void store_ints(DType dtype, void* to, int64_t stride, int64_t n, const int64_t* from);

// Copies the elements [begin, end), in row-major order, into a dense buffer of dtype `to_dtype`.
void convert_range(const TensorView& from, int64_t begin, int64_t end, DType to_dtype, void* to);

}  // namespace gradwire::cpu
