// Optimizers as server objects: a step is one small command for all their tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ops/op_def.h"
#include "engine/optim/kinds.h"

namespace gradwire {

// On its session's strand. The state tensors are ordinary tensors without history.
class Optimizer {
 public:
  // `row` is an optim.* row; options are its attributes as doubles, in order.
  explicit Optimizer(const OpDef& row);

  absl::Status add_group(const Tensors& params, FloatList options);
  absl::Status set_group(int64_t group, FloatList options);
  // Queues the step of every parameter that has a gradient. All or nothing: a poisoned gradient
  // anywhere refuses the whole step, and weights, state and step counts stay as they are.
  absl::Status step();
  void zero_grad(bool set_to_none);
  // State of parameter `index` in the order of the row's `outputs`; null where there is none yet.
  absl::StatusOr<Tensors> state(int64_t index);
  // `scalars` are the kind's numbers besides the step count; they may be left out at step 0.
  absl::Status load_state(int64_t index, int64_t step, const Tensors& state,
                          const FloatList& scalars);

 private:
  struct Parameter {
    Tensor tensor;
    Tensors buffers;  // by kind, null until made
  };
  struct Group {
    std::vector<int> members;
    FloatList options;
  };
  // Step counts, which only the executor changes: a refused step does not count.
  struct Counts {
    std::vector<int64_t> steps;
    std::vector<float> scalars;  // kind_.scalars for each parameter

    // The scalars that a step of parameter `member` starts from.
    std::vector<float> before(const OptimizerKind& kind, const FloatList& options,
                              int member) const;
  };

  void make_buffers(Parameter& parameter, const FloatList& options);
  bool uses(const Parameter& parameter, const FloatList& options, int buffer) const;
  Tensor number(int64_t index, int scalar);  // -1: the step count
  absl::Status queue_step(const Group& group, const std::vector<int>& members,
                          const std::vector<StorageRef>& guards);

  const OpDef& row_;
  const OptimizerKind& kind_;
  int buffers_ = 0;
  std::vector<Parameter> params_;
  std::vector<Group> groups_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace gradwire
