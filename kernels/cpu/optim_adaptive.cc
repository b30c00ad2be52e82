// Adadelta, Adagrad and RMSprop: steps scaled by the gradients' squares.
#include "kernels/cpu/optim_rules.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Options: lr, rho, eps, weight_decay, maximize.
template <class C>
struct Adadelta {
  GradientRule<C> gradient;
  C lr, rho, fresh, eps;

  explicit Adadelta(const StepFacts& f)
      : gradient(f.options[3], f.options[4] != 0),
        lr(static_cast<C>(f.options[0])),
        rho(static_cast<C>(f.options[1])),
        fresh(static_cast<C>(1 - f.options[1])),
        eps(static_cast<C>(f.options[2])) {}

  void run(const std::array<C*, 4>& at, int64_t n) const {
    auto [p, grad, square, delta] = at;
    for (int64_t i = 0; i < n; ++i) {
      C g = gradient(p[i], grad[i]);
      C s = square[i] * rho + fresh * g * g;
      C d = std::sqrt(delta[i] + eps) / std::sqrt(s + eps) * g;
      square[i] = s;
      delta[i] = delta[i] * rho + fresh * d * d;
      p[i] -= lr * d;
    }
  }
};

// Options: lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize.
template <class C>
struct Adagrad {
  GradientRule<C> gradient;
  C lr, eps;

  explicit Adagrad(const StepFacts& f)
      : gradient(f.options[2], f.options[5] != 0),
        lr(static_cast<C>(f.options[0] / (1 + (f.step - 1) * f.options[1]))),
        eps(static_cast<C>(f.options[4])) {}

  void run(const std::array<C*, 3>& at, int64_t n) const {
    auto [p, grad, sum] = at;
    for (int64_t i = 0; i < n; ++i) {
      C g = gradient(p[i], grad[i]);
      sum[i] += g * g;
      p[i] -= lr * g / (std::sqrt(sum[i]) + eps);
    }
  }
};

// Options: lr, alpha, eps, weight_decay, momentum, centered, maximize.
template <class C>
struct RMSprop {
  GradientRule<C> gradient;
  C lr, alpha, fresh, eps, momentum;
  bool centered;

  explicit RMSprop(const StepFacts& f)
      : gradient(f.options[3], f.options[6] != 0),
        lr(static_cast<C>(f.options[0])),
        alpha(static_cast<C>(f.options[1])),
        fresh(static_cast<C>(1 - f.options[1])),
        eps(static_cast<C>(f.options[2])),
        momentum(static_cast<C>(f.options[4])),
        centered(f.options[5] != 0) {}

  void run(const std::array<C*, 5>& at, int64_t n) const {
    auto [p, grad, square, buffer, mean] = at;
    bool heavy = momentum > 0 && buffer, around = centered && mean;
    for (int64_t i = 0; i < n; ++i) {
      C g = gradient(p[i], grad[i]);
      C spread = square[i] * alpha + fresh * g * g;
      square[i] = spread;
      if (around) {
        C m = mean[i] + fresh * (g - mean[i]);
        mean[i] = m;
        spread -= m * m;
      }
      C change = g / (std::sqrt(spread) + eps);
      if (heavy) change = buffer[i] = buffer[i] * momentum + change;
      p[i] -= lr * change;
    }
  }
};

absl::Status adadelta_step(const KernelCall& call, Context& context) {
  return step_by_rule<Adadelta, 2, 5>("adadelta_step", call, context);
}
GW_CPU_KERNEL("adadelta_step", adadelta_step);

absl::Status adagrad_step(const KernelCall& call, Context& context) {
  return step_by_rule<Adagrad, 1, 6>("adagrad_step", call, context);
}
GW_CPU_KERNEL("adagrad_step", adagrad_step);

absl::Status rmsprop_step(const KernelCall& call, Context& context) {
  return step_by_rule<RMSprop, 3, 7>("rmsprop_step", call, context);
}
GW_CPU_KERNEL("rmsprop_step", rmsprop_step);

}  // namespace
}  // namespace gradwire::cpu
