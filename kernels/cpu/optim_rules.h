// Optimizer steps that work element by element: a rule per parameter, made from the options, the
// number of the step and the parameter's scalars.
#pragma once

#include <cmath>

#include "kernels/cpu/optim_lists.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {

// The gradient as a step sees it: its sign turned to maximize, with the decay of the weight.
template <class C>
struct GradientRule {
  C sign = 1, decay = 0;

  GradientRule() = default;
  GradientRule(double weight_decay, bool maximize)
      : sign(maximize ? C(-1) : C(1)), decay(static_cast<C>(weight_decay)) {}
  C operator()(C weight, C gradient) const {
    C g = sign * gradient;
    return decay != 0 ? g + decay * weight : g;
  }
};

// What a rule is made from.
struct StepFacts {
  const FloatList& options;
  double step;
  const double* scalars;
};

// Attributes: options, steps (one a parameter), scalars (`kScalars` a parameter). Rule<C> has
// run(pointers, n), with pointers to the parameter, the gradient and `kState` buffers.
template <template <class> class Rule, size_t kState, size_t kOptions, size_t kScalars = 0>
absl::Status step_by_rule(const char* op, const KernelCall& call, Context& context) {
  constexpr size_t kGroups = 2 + kState;
  GW_RETURN_IF_ERROR(check_step(op, call, kGroups));
  size_t count = call.inputs.size() / kGroups;
  const FloatList& options = call.attributes[0].as_floats();
  const IntList& steps = call.attributes[1].as_ints();
  const FloatList& scalars = call.attributes[2].as_floats();
  if (options.size() != kOptions || steps.size() != count || scalars.size() != count * kScalars) {
    return internal_error("[", op, "] options or step numbers do not fit ", count, " parameters");
  }
  auto run = [&](auto tag, const KernelCall& lists, const std::vector<int64_t>& members) {
    using T = decltype(tag);
    using C = ComputeOf<T>;
    std::vector<Rule<C>> rules;
    for (int64_t member : members) {
      rules.emplace_back(StepFacts{options, static_cast<double>(steps[member]),
                                   scalars.data() + member * kScalars});
    }
    auto row = [&](int64_t p, const std::array<C*, kGroups>& at, int64_t n) {
      rules[p].run(at, n);
    };
    return update_lists<T, kGroups>(lists, static_cast<int64_t>(members.size()), context.pool, row);
  };
  return by_dtype<kGroups>(call, static_cast<int64_t>(count), run);
}

}  // namespace gradwire::cpu
