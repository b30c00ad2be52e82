// Rprop, which follows the gradient's signs, and ASGD, which averages the weights.
#include <algorithm>

#include "kernels/cpu/optim_rules.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Options: lr, etaminus, etaplus, step_min, step_max, maximize.
template <class C>
struct Rprop {
  GradientRule<C> gradient;
  C less, more, least, most;

  explicit Rprop(const StepFacts& f)
      : gradient(0, f.options[5] != 0),
        less(static_cast<C>(f.options[1])),
        more(static_cast<C>(f.options[2])),
        least(static_cast<C>(f.options[3])),
        most(static_cast<C>(f.options[4])) {}

  void run(const std::array<C*, 4>& at, int64_t n) const {
    auto [p, grad, before, size] = at;
    for (int64_t i = 0; i < n; ++i) {
      C g = gradient(p[i], grad[i]);
      C agreement = g * before[i];
      C factor = agreement > 0 ? more : agreement < 0 ? less : agreement == 0 ? C(1) : agreement;
      C s = size[i] * factor;
      s = s < least ? least : s;
      s = s > most ? most : s;
      if (agreement < 0) g = 0;
      C sign = g > 0 ? C(1) : g < 0 ? C(-1) : g;
      size[i] = s;
      before[i] = g;
      p[i] -= sign * s;
    }
  }
};

// Options: lr, lambd, alpha, t0, weight_decay, maximize. Scalars: eta, mu.
template <class C>
struct ASGD {
  GradientRule<C> gradient;
  C shrink, eta, mu;

  explicit ASGD(const StepFacts& f)
      : gradient(f.options[4], f.options[5] != 0),
        shrink(static_cast<C>(1 - f.options[1] * f.scalars[0])),
        eta(static_cast<C>(f.scalars[0])),
        mu(static_cast<C>(f.scalars[1])) {}

  void run(const std::array<C*, 3>& at, int64_t n) const {
    auto [p, grad, average] = at;
    for (int64_t i = 0; i < n; ++i) {
      C w = p[i] * shrink - eta * gradient(p[i], grad[i]);
      p[i] = w;
      average[i] = mu == C(1) ? w : average[i] + (w - average[i]) * mu;
    }
  }
};

absl::Status rprop_step(const KernelCall& call, Context& context) {
  return step_by_rule<Rprop, 2, 6>("rprop_step", call, context);
}
GW_CPU_KERNEL("rprop_step", rprop_step);

absl::Status asgd_step(const KernelCall& call, Context& context) {
  return step_by_rule<ASGD, 1, 6, 2>("asgd_step", call, context);
}
GW_CPU_KERNEL("asgd_step", asgd_step);

}  // namespace
}  // namespace gradwire::cpu
