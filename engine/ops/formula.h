// Gradients of compositions that write memory by hand.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/ops/call.h"

namespace gradwire {

// The gradient of one input, made of ops from the gradient of the output. Holds attributes and
// sizes, never tensors: those need the version checks of SavedTensor.
using Formula = std::function<Tensor(const Tensor& grad)>;

// Gives `out`, made with recording off, a node named `name` whose inputs are `inputs`, each with
// its formula. Nothing happens when no input wants a gradient. Returns `out`.
Tensor with_gradient(const std::string& name, Tensor out, std::initializer_list<Tensor> inputs,
                     std::vector<Formula> formulas);

// A copy of `base` in which the view that `cut` makes of it holds `src`; both get gradients. `cut`
// may be called any number of times, later too. Error: src has other sizes than the view.
Tensor put_in(const std::string& name, const Tensor& base, const Tensor& src, const Formula& cut);

// The order of a dense tensor's dimensions in memory, the slowest first; row-major when it is not
// dense.
IntList layout_of(const Tensor& tensor);

// Refuses a call that would give more outputs than anyone asked for, before they are made.
absl::Status check_outputs(const Call& call, int64_t outputs);

}  // namespace gradwire
