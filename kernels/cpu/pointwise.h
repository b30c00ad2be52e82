// The kernel "pointwise": runs call.program over call.inputs and call.scalars.
#pragma once

#include "absl/status/status.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {

// Views have the outputs' sizes (inputs are broadcast by strides). An output may be the same view
// as an input; otherwise they do not overlap. Fails, before anything is written, when an integer
// is divided by zero.
absl::Status pointwise(const KernelCall& call, Context& context);

}  // namespace gradwire::cpu
