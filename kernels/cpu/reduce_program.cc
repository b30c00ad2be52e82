// Reductions over a program: the chain that makes the input is computed a cache-sized piece at a
// time and folded at once, with the bits of the two launches one after the other.
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

absl::Status over_program(const KernelCall& call, Context& context, const char* reduction) {
  if (call.program == nullptr || call.inputs.empty()) {
    return internal_error("[", reduction, "] launched without a program");
  }
  return with_program_source(call, context, [&](const ElementSource& source) {
    KernelCall inner;
    inner.inputs.push_back(call.inputs[0]);
    inner.outputs = call.outputs;
    inner.attributes = call.attributes;
    Context with_source{context.pool, &source};
    return kernel_at(find_kernel(reduction))(inner, with_source);
  });
}

#define GW_OVER_PROGRAM(name)                                                \
  absl::Status name##_of_program(const KernelCall& call, Context& context) { \
    return over_program(call, context, #name);                               \
  }                                                                          \
  GW_CPU_KERNEL(#name "_of_program", name##_of_program)

GW_OVER_PROGRAM(sum);
GW_OVER_PROGRAM(mean);
GW_OVER_PROGRAM(prod);
GW_OVER_PROGRAM(count_nonzero);
GW_OVER_PROGRAM(amax);
GW_OVER_PROGRAM(amin);
GW_OVER_PROGRAM(any);
GW_OVER_PROGRAM(all);
GW_OVER_PROGRAM(var);
GW_OVER_PROGRAM(logsumexp);

}  // namespace
}  // namespace gradwire::cpu
