// What differs between the kinds of optimizers: their state, and what a step's kernel is told.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/tensor.h"
#include "kernels/attribute.h"

namespace gradwire {

// Options are a group's, in the order of the row's keywords; buffers are counted as in the row's
// outputs, after the step count and the scalars.
struct OptimizerKind {
  std::string_view name;
  // Numbers kept per parameter besides the step count.
  int scalars = 0;
  // The buffers exist from the start, not from the first step.
  bool eager = false;
  // Null: every buffer is used.
  bool (*uses)(const FloatList& options, const Dims& sizes, int buffer) = nullptr;
  // Null: zero.
  double (*fills)(const FloatList& options, int buffer) = nullptr;
  // Null: the parameter's.
  Dims (*shape)(const Dims& sizes, int buffer) = nullptr;
  // The scalars before the first step.
  void (*start)(const FloatList& options, float* scalars) = nullptr;
  // The scalars after step number `step`.
  void (*advance)(const FloatList& options, int64_t step, float* scalars) = nullptr;
  // Attributes of the kernel before the step counts; null: the options as one list.
  AttributeList (*attributes)(const FloatList& options) = nullptr;
  // What the kernel is given for a parameter with `done` steps behind it; false: the number of this
  // step, true: whether it is the first one.
  bool first_only = false;
  // Whether a step with these options counts; null: always.
  bool (*counts)(const FloatList& options) = nullptr;
};

// Of an optim.* row. Lives for ever.
const OptimizerKind& optimizer_kind(std::string_view row);

}  // namespace gradwire
