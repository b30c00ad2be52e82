// Adamax, NAdam and RAdam: Adam's moments with other scales.
#include "kernels/cpu/optim_rules.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// m + w (g - m), from the nearer end.
template <class C>
C mix(C m, C g, C w) {
  return w < C(0.5) ? m + w * (g - m) : g - (C(1) - w) * (g - m);
}

// Options: lr, beta1, beta2, eps, weight_decay, maximize.
template <class C>
struct Adamax {
  GradientRule<C> gradient;
  C lr, fresh, beta2, eps;

  explicit Adamax(const StepFacts& f)
      : gradient(f.options[4], f.options[5] != 0),
        lr(static_cast<C>(f.options[0] / (1 - std::pow(f.options[1], f.step)))),
        fresh(static_cast<C>(1 - f.options[1])),
        beta2(static_cast<C>(f.options[2])),
        eps(static_cast<C>(f.options[3])) {}

  void run(const std::array<C*, 4>& at, int64_t n) const {
    auto [p, grad, average, greatest] = at;
    for (int64_t i = 0; i < n; ++i) {
      C g = gradient(p[i], grad[i]);
      C m = mix(average[i], g, fresh);
      C old = greatest[i] * beta2, now = std::abs(g) + eps;
      C u = old > now || old != old ? old : now;  // NaN when either is
      average[i] = m;
      greatest[i] = u;
      p[i] -= lr * m / u;
    }
  }
};

// Options: lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled, maximize. Scalar: the
// product of all mu so far.
template <class C>
struct NAdam {
  GradientRule<C> gradient;
  C shrink, fresh, beta2, fresh2, correction, eps, by_gradient, by_average;

  explicit NAdam(const StepFacts& f) {
    const FloatList& o = f.options;
    bool decoupled = o[6] != 0;
    gradient = GradientRule<C>(decoupled ? 0 : o[4], o[7] != 0);
    shrink = static_cast<C>(decoupled ? 1 - o[0] * o[4] : 1);
    fresh = static_cast<C>(1 - o[1]);
    beta2 = static_cast<C>(o[2]);
    fresh2 = static_cast<C>(1 - o[2]);
    correction = static_cast<C>(1 - std::pow(o[2], f.step));
    eps = static_cast<C>(o[3]);
    auto mu = [&](double step) { return o[1] * (1 - 0.5 * std::pow(0.96, step * o[5])); };
    double now = mu(f.step), next = mu(f.step + 1);
    double product = static_cast<float>(f.scalars[0] * now);  // as it is kept
    by_gradient = static_cast<C>(o[0] * (1 - now) / (1 - product));
    by_average = static_cast<C>(o[0] * next / (1 - product * next));
  }

  void run(const std::array<C*, 4>& at, int64_t n) const {
    auto [p, grad, average, square] = at;
    for (int64_t i = 0; i < n; ++i) {
      C w = p[i] * shrink;
      C g = gradient(p[i], grad[i]);
      C m = mix(average[i], g, fresh);
      C v = square[i] * beta2 + fresh2 * g * g;
      C denominator = std::sqrt(v / correction) + eps;
      average[i] = m;
      square[i] = v;
      p[i] = w - by_gradient * g / denominator - by_average * m / denominator;
    }
  }
};

// Options: lr, beta1, beta2, eps, weight_decay, decoupled, maximize.
template <class C>
struct RAdam {
  GradientRule<C> gradient;
  C shrink, fresh, beta2, fresh2, eps, lr, scale;
  bool rectified;

  explicit RAdam(const StepFacts& f) {
    const FloatList& o = f.options;
    bool decoupled = o[5] != 0;
    gradient = GradientRule<C>(decoupled ? 0 : o[4], o[6] != 0);
    shrink = static_cast<C>(decoupled ? 1 - o[0] * o[4] : 1);
    fresh = static_cast<C>(1 - o[1]);
    beta2 = static_cast<C>(o[2]);
    fresh2 = static_cast<C>(1 - o[2]);
    eps = static_cast<C>(o[3]);
    lr = static_cast<C>(o[0] / (1 - std::pow(o[1], f.step)));
    double power = std::pow(o[2], f.step), correction = 1 - power;
    double limit = 2 / (1 - o[2]) - 1;
    double length = limit - 2 * f.step * power / correction;
    rectified = length > 5;
    double rect = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length);
    scale = rectified ? static_cast<C>(std::sqrt(rect) * std::sqrt(correction)) : C(1);
  }

  void run(const std::array<C*, 4>& at, int64_t n) const {
    auto [p, grad, average, square] = at;
    for (int64_t i = 0; i < n; ++i) {
      C w = p[i] * shrink;
      C g = gradient(p[i], grad[i]);
      C m = mix(average[i], g, fresh);
      C v = square[i] * beta2 + fresh2 * g * g;
      average[i] = m;
      square[i] = v;
      p[i] = w - (rectified ? lr * m * (scale / (std::sqrt(v) + eps)) : lr * m);
    }
  }
};

absl::Status adamax_step(const KernelCall& call, Context& context) {
  return step_by_rule<Adamax, 2, 6>("adamax_step", call, context);
}
GW_CPU_KERNEL("adamax_step", adamax_step);

absl::Status nadam_step(const KernelCall& call, Context& context) {
  return step_by_rule<NAdam, 2, 8, 1>("nadam_step", call, context);
}
GW_CPU_KERNEL("nadam_step", nadam_step);

absl::Status radam_step(const KernelCall& call, Context& context) {
  return step_by_rule<RAdam, 2, 7>("radam_step", call, context);
}
GW_CPU_KERNEL("radam_step", radam_step);

}  // namespace
}  // namespace gradwire::cpu
