// Adam and AdamW: m = lerp(m, g, 1 - beta1), v = beta2 v + (1 - beta2) g g,
// p -= lr / c1 * m / (sqrt(v) / sqrt(c2) + eps) with c = 1 - beta^step, computed in double.
#include <cmath>

#include "kernels/cpu/optim_lists.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/simd.h"

namespace gradwire::cpu {
namespace {

struct Settings {
  double lr, beta1, beta2, eps, weight_decay;
  bool amsgrad, maximize, decoupled;

  explicit Settings(const AttributeList& a)
      : lr(a[0].as_double()),
        beta1(a[1].as_double()),
        beta2(a[2].as_double()),
        eps(a[3].as_double()),
        weight_decay(a[4].as_double()),
        amsgrad(a[5].as_bool()),
        maximize(a[6].as_bool()),
        decoupled(a[7].as_bool()) {}
};

// What differs between parameters.
struct Correction {
  double step_size = 0;
  double root = 1;
};

template <class C>
void update(const Settings& s, const Correction& correction, C* p, const C* grad, C* average,
            C* square, C* greatest, int64_t n) {
  using S = Simd<C>;
  auto set = [](double x) { return S::set(static_cast<C>(x)); };
  auto lerp = set(1 - s.beta1), beta2 = set(s.beta2), fresh = set(1 - s.beta2);
  auto lerp_back = set((1 - s.beta1) - 1), eps = set(s.eps), root = set(correction.root);
  auto step = set(-correction.step_size), decay = set(s.weight_decay);
  auto shrink = set(1 - s.lr * s.weight_decay), sign = set(s.maximize ? -1 : 1);
  bool from_average = std::abs(1 - s.beta1) < 0.5;
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    auto w = load_lanes<C>(p + i, lanes, C(0));
    auto g = load_lanes<C>(grad + i, lanes, C(0)) * sign;
    if (s.weight_decay != 0) {
      if (s.decoupled) {
        w = w * shrink;
      } else {
        g = g + decay * w;
      }
    }
    auto m = load_lanes<C>(average + i, lanes, C(0));
    m = from_average ? S::fma(lerp, g - m, m) : S::fma(lerp_back, g - m, g);
    auto v = load_lanes<C>(square + i, lanes, C(0)) * beta2 + (fresh * g) * g;
    store_lanes<C>(average + i, lanes, m);
    store_lanes<C>(square + i, lanes, v);
    if (greatest) {
      v = S::max_nan(v, load_lanes<C>(greatest + i, lanes, C(0)));
      store_lanes<C>(greatest + i, lanes, v);
    }
    auto denominator = S::sqrt(v) / root + eps;
    store_lanes<C>(p + i, lanes, w + step * m / denominator);
  });
}

absl::Status adam_step(const KernelCall& call, Context& context) {
  GW_RETURN_IF_ERROR(check_step("adam_step", call, 5));
  auto count = static_cast<int64_t>(call.inputs.size() / 5);
  Settings settings(call.attributes);
  const IntList& steps = call.attributes[8].as_ints();
  if (static_cast<int64_t>(steps.size()) != count) {
    return internal_error("[adam_step] ", steps.size(), " step numbers for ", count, " parameters");
  }
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t group : {2, 3, 4}) {
      if (call.inputs[group * count + p].present() || (group == 4 && !settings.amsgrad)) continue;
      return internal_error("[adam_step] parameter ", p, " lacks its state");
    }
  }
  std::vector<Correction> corrections(steps.size());
  for (size_t p = 0; p < steps.size(); ++p) {
    auto step = static_cast<double>(steps[p]);
    corrections[p].step_size = settings.lr / (1 - std::pow(settings.beta1, step));
    corrections[p].root = std::sqrt(1 - std::pow(settings.beta2, step));
  }
  auto run = [&](auto tag, const KernelCall& lists, const std::vector<int64_t>& members) {
    using T = decltype(tag);
    using C = ComputeOf<T>;
    auto row = [&](int64_t p, const std::array<C*, 5>& at, int64_t n) {
      update<C>(settings, corrections[members[p]], at[0], at[1], at[2], at[3],
                settings.amsgrad ? at[4] : nullptr, n);
    };
    return update_lists<T, 5>(lists, static_cast<int64_t>(members.size()), context.pool, row);
  };
  return by_dtype<5>(call, count, run);
}
GW_CPU_KERNEL("adam_step", adam_step);

}  // namespace
}  // namespace gradwire::cpu
