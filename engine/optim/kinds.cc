#include "engine/optim/kinds.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gradwire {
namespace {

AttributeList sgd_attributes(const FloatList& o) {
  return {o[0], o[1], o[2], o[3], o[4] != 0, o[5] != 0};
}

template <bool kDecoupled>
AttributeList adam_attributes(const FloatList& o) {
  return {o[0], o[1], o[2], o[3], o[4], o[5] != 0, o[6] != 0, kDecoupled};
}

bool adam_uses(const FloatList& o, const Dims&, int buffer) {
  return buffer < 2 || o[5] != 0;  // amsgrad
}

bool has_momentum(const FloatList& o) {
  return o[1] != 0;
}

bool sgd_uses(const FloatList& o, const Dims&, int) {
  return has_momentum(o);
}

bool rmsprop_uses(const FloatList& o, const Dims&, int buffer) {
  return buffer == 0 || (buffer == 1 ? o[4] > 0 : o[5] != 0);  // momentum, centered
}

bool adafactor_uses(const FloatList&, const Dims& sizes, int buffer) {
  return (sizes.size() > 1) == (buffer < 2);
}

Dims adafactor_shape(const Dims& sizes, int buffer) {
  Dims out = sizes;
  if (buffer < 2 && out.size() > 1) out[out.size() - 1 - buffer] = 1;
  return out;
}

double adagrad_fills(const FloatList& o, int) {
  return o[3];
}

double rprop_fills(const FloatList& o, int buffer) {
  return buffer == 1 ? o[0] : 0;
}

void nadam_start(const FloatList&, float* scalars) {
  scalars[0] = 1;
}

void nadam_advance(const FloatList& o, int64_t step, float* scalars) {
  double mu = o[1] * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * o[5]));
  scalars[0] = static_cast<float>(scalars[0] * mu);
}

void asgd_start(const FloatList& o, float* scalars) {
  scalars[0] = static_cast<float>(o[0]);
  scalars[1] = 1;
}

void asgd_advance(const FloatList& o, int64_t step, float* scalars) {
  auto t = static_cast<double>(step);
  scalars[0] = static_cast<float>(o[0] / std::pow(1 + o[1] * o[0] * t, o[2]));
  scalars[1] = static_cast<float>(1 / std::max(1.0, t - o[3]));
}

const std::array kKinds = {
    OptimizerKind{.name = "optim.SGD",
                  .uses = sgd_uses,
                  .attributes = sgd_attributes,
                  .first_only = true,
                  .counts = has_momentum},
    OptimizerKind{.name = "optim.Adam", .uses = adam_uses, .attributes = adam_attributes<false>},
    OptimizerKind{.name = "optim.AdamW", .uses = adam_uses, .attributes = adam_attributes<true>},
    OptimizerKind{.name = "optim.Adagrad", .eager = true, .fills = adagrad_fills},
    OptimizerKind{.name = "optim.RMSprop", .uses = rmsprop_uses},
    OptimizerKind{.name = "optim.Rprop", .fills = rprop_fills},
    OptimizerKind{
        .name = "optim.NAdam", .scalars = 1, .start = nadam_start, .advance = nadam_advance},
    OptimizerKind{.name = "optim.ASGD", .scalars = 2, .start = asgd_start, .advance = asgd_advance},
    OptimizerKind{.name = "optim.Adafactor", .uses = adafactor_uses, .shape = adafactor_shape},
};

}  // namespace

const OptimizerKind& optimizer_kind(std::string_view row) {
  static const OptimizerKind plain;
  for (const OptimizerKind& kind : kKinds) {
    if (kind.name == row) return kind;
  }
  return plain;
}

}  // namespace gradwire
