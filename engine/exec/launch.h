// Runs one task, or one fused group, on a backend. Executor's thread only.
#pragma once

#include <span>

#include "engine/exec/fuser.h"
#include "engine/exec/task.h"
#include "kernels/backend.h"

namespace gradwire {

struct LaunchResult {
  uint32_t kernels = 0;
  ErrorRef failure;  // a root cause found by this launch
};

// Runs the task and tells its callbacks; poisons outputs when it fails. Uploads must be ready.
LaunchResult run_task(Backend& backend, Task& task);

// Runs tasks.size() pointwise tasks as one launch.
LaunchResult run_group(Backend& backend, const FusionGroup& group,
                       std::span<const std::unique_ptr<Task>*> tasks);

// Ends a task that will not run: poisons its outputs (a committing task's are left alone) and
// tells its callbacks.
void skip_task(Task& task, ErrorRef error);

// An error record in the name of the task's command.
ErrorRef error_of(const Task& task, const absl::Status& status);

}  // namespace gradwire
