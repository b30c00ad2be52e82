// The CPU as a Backend: launches run at once on the calling thread and its pool, events are
// complete when made, device memory is host memory.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace gradwire::cpu {

// `threads` counts the executor's own; 0 means one for each core this process may use.
// Memory that this process can still get without driving the machine out of memory: the machine's
// or, where there is one, the cgroup's.
uint64_t available_bytes();

std::unique_ptr<Backend> make_backend(int threads);

}  // namespace gradwire::cpu
