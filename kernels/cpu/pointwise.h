// The kernel "pointwise": runs call.program over call.inputs and call.scalars.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/cpu/element_source.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {

// Views have the outputs' sizes (inputs are broadcast by strides). An output may be the same view
// as an input; otherwise they do not overlap. Fails, before anything is written, when an integer
// is divided by zero.
absl::Status pointwise(const KernelCall& call, Context& context);

// Calls `body` with call.program's only output as a source: the program's inputs are call.inputs
// from number 1 on, and call.inputs[0] is the output's geometry, dense, without memory. The program
// must be one that cannot fail.
absl::Status with_program_source(const KernelCall& call, Context& context,
                                 absl::FunctionRef<absl::Status(const ElementSource&)> body);

}  // namespace gradwire::cpu
