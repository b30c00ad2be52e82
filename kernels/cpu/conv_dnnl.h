// Convolution by oneDNN: float32, and bfloat16 where the processor has its products.
#pragma once

#include "absl/status/status.h"
#include "kernels/cpu/conv_shape.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/dtype.h"

namespace gradwire::cpu {

enum class ConvKind : uint8_t { kForward, kBackwardInput, kBackwardWeight };

// One image tensor in dense memory, channels first or channels last.
struct ConvImages {
  void* data = nullptr;
  bool channels_last = false;
};

// Runs one of the three. `a` and `b` are, in this order, x and w; grad and w; x and grad. The
// weight is dense. Images are float32 or bfloat16 (`dtype`), so is the weight; the weight's
// gradient is float32 always. Sets `done` to false and writes nothing when oneDNN has no fast
// primitive for the shape.
absl::Status conv_dnnl(ConvKind kind, DType dtype, const ConvShape& shape, const ConvImages& a,
                       const ConvImages& b, const void* bias, const ConvImages& out,
                       ThreadPool& pool, bool& done);

}  // namespace gradwire::cpu
