// The CPU backend's kernels by name. A kernel file defines functions and registers them with
// GW_CPU_KERNEL at namespace scope; the library is linked whole, so registration always happens.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cpu/thread_pool.h"

namespace gradwire::cpu {

class ElementSource;

struct Context {
  ThreadPool& pool;
  // Set while a reduction runs over a program: inputs[0] has geometry but no memory, its elements
  // come from here. Only reduce() looks at it.
  const ElementSource* source = nullptr;
};

// Runs to completion. Reads call.inputs and call.attributes, writes call.outputs. Must be correct
// for every stride pattern, zero-size and 0-dim tensors, and every dtype that the op's signature
// admits; returns an error Status (error.h) for values it cannot take, before writing anything.
using Kernel = absl::Status (*)(const KernelCall& call, Context& context);

// Returns 0 for an unknown name.
KernelId find_kernel(std::string_view name);
Kernel kernel_at(KernelId id);

struct Registration {
  Registration(std::string_view name, Kernel kernel);
};

}  // namespace gradwire::cpu

#define GW_CPU_KERNEL(name, function)                               \
  static const ::gradwire::cpu::Registration gw_kernel_##function { \
    name, function                                                  \
  }
