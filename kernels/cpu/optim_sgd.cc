// g = grad (+ weight_decay p); buf = momentum buf + (1 - dampening) g, or g when the buffer is new;
// p -= lr (nesterov ? g + momentum buf : buf)
#include "kernels/cpu/optim_lists.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/simd.h"

namespace gradwire::cpu {
namespace {

template <class C>
struct Settings {
  C lr, momentum, damped, weight_decay;
  bool nesterov, maximize;

  explicit Settings(const AttributeList& a)
      : lr(static_cast<C>(-a[0].as_double())),
        momentum(static_cast<C>(a[1].as_double())),
        damped(static_cast<C>(1 - a[2].as_double())),
        weight_decay(static_cast<C>(a[3].as_double())),
        nesterov(a[4].as_bool()),
        maximize(a[5].as_bool()) {}
};

template <class C>
void update(const Settings<C>& s, bool first, C* p, const C* grad, C* buffer, int64_t n) {
  using S = Simd<C>;
  auto lr = S::set(s.lr), momentum = S::set(s.momentum), damped = S::set(s.damped);
  auto decay = S::set(s.weight_decay), sign = S::set(s.maximize ? C(-1) : C(1));
  for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
    auto w = load_lanes<C>(p + i, lanes, C(0));
    auto g = load_lanes<C>(grad + i, lanes, C(0)) * sign;
    if (s.weight_decay != 0) g = g + decay * w;
    if (s.momentum != 0 && buffer) {
      auto b = first ? g : load_lanes<C>(buffer + i, lanes, C(0)) * momentum + damped * g;
      store_lanes<C>(buffer + i, lanes, b);
      g = s.nesterov ? g + momentum * b : b;
    }
    store_lanes<C>(p + i, lanes, w + lr * g);
  });
}

absl::Status sgd_step(const KernelCall& call, Context& context) {
  GW_RETURN_IF_ERROR(check_step("sgd_step", call, 3));
  auto count = static_cast<int64_t>(call.inputs.size() / 3);
  const IntList& first = call.attributes[6].as_ints();
  auto run = [&](auto tag, const KernelCall& lists, const std::vector<int64_t>& members) {
    using T = decltype(tag);
    using C = ComputeOf<T>;
    Settings<C> settings(call.attributes);
    auto row = [&](int64_t p, const std::array<C*, 3>& at, int64_t n) {
      auto member = static_cast<size_t>(members[p]);
      bool fresh = member < first.size() && first[member] != 0;
      update<C>(settings, fresh, at[0], at[1], at[2], n);
    };
    return update_lists<T, 3>(lists, static_cast<int64_t>(members.size()), context.pool, row);
  };
  return by_dtype<3>(call, count, run);
}
GW_CPU_KERNEL("sgd_step", sgd_step);

}  // namespace
}  // namespace gradwire::cpu
