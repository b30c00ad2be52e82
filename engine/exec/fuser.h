// Finds runs of pointwise tasks, and reductions over them, that can be one launch.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/exec/task.h"
#include "kernels/expr/expr.h"

namespace gradwire {

// A fused launch of the first `tasks` tasks of a queue.
struct FusionGroup {
  size_t tasks = 0;
  const expr::Program* program = nullptr;  // null: the group is a single task, run it as it is
  std::vector<const Operand*> inputs;      // by group input number
  std::vector<const Operand*> outputs;     // by group output number; none with a reduction
  std::vector<ScalarValue> scalars;
  // Set: the last task, a reduction over the program's only output, which is stored nowhere.
  const Task* reduction = nullptr;
  KernelId kernel = 0;  // the reduction's kernel over a program
};

// Which of a backend's reductions take a program: "sum_of_program" for "sum".
class FusedReductions {
 public:
  explicit FusedReductions(const Backend& backend) : backend_(backend) {}
  // 0 when the task is not such a reduction.
  KernelId find(const Task& task);

 private:
  struct Kernels {
    KernelId plain = 0;
    KernelId over_program = 0;
  };
  const Backend& backend_;
  absl::flat_hash_map<const OpDef*, Kernels> known_;
};

// The longest group at the head of `ready`, at least one task. A group is cut where a storage
// written in it would be accessed through another (offset, sizes, strides), where an input is
// poisoned, and at any task that is not pointwise or may fail on values. Values that nobody but
// the group can reach are not stored. A reduction joins when its input is the only value of the
// group that anybody can reach, and nobody but the reduction.
//
// A storage that only tasks of the group refer to cannot gain new references: others could only
// copy a reference they hold. So the counts read here are final where they matter.
FusionGroup find_group(const std::deque<std::unique_ptr<Task>>& ready, size_t limit,
                       FusedReductions& reductions);

}  // namespace gradwire
