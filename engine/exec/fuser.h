// Finds runs of pointwise tasks that can be one launch.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "engine/exec/task.h"
#include "kernels/expr/expr.h"

namespace gradwire {

// A fused launch of the first `tasks` tasks of a queue.
struct FusionGroup {
  size_t tasks = 0;
  const expr::Program* program = nullptr;  // null: the group is a single task, run it as it is
  std::vector<const Operand*> inputs;      // by group input number
  std::vector<const Operand*> outputs;     // by group output number
  std::vector<ScalarValue> scalars;
};

// The longest group at the head of `ready`, at least one task. A group is cut where a storage
// written in it would be accessed through another (offset, sizes, strides), where an input is
// poisoned, and at any task that is not pointwise or may fail on values. Values that nobody but
// the group can reach are not stored.
//
// A storage that only tasks of the group refer to cannot gain new references: others could only
// copy a reference they hold. So the counts read here are final where they matter.
FusionGroup find_group(const std::deque<std::unique_ptr<Task>>& ready, size_t limit);

}  // namespace gradwire
