#include "engine/core/promotion.h"

#include <algorithm>

namespace gradwire {
namespace {

int category(DType t) {
  if (is_floating(t)) return 3;
  if (is_integral(t)) return 2;
  return t == DType::kBool ? 1 : 0;
}

DType combine(DType high, DType low) {
  return category(low) > category(high) ? low : high;
}

}  // namespace

bool can_cast(DType from, DType to) {
  if (is_floating(from) && !is_floating(to)) return false;
  return from == DType::kBool || to != DType::kBool;
}

DType promote(DType a, DType b) {
  if (a == b || b == DType::kNone) return a;
  if (a == DType::kNone) return b;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (is_floating(a)) {
    if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
    return DType::kFloat32;  // float32 with a 16-bit float, or float16 with bfloat16
  }
  auto width = [](DType t) { return static_cast<int>(dtype_size(t)); };
  if (a == DType::kUInt8 || b == DType::kUInt8) {
    DType other = a == DType::kUInt8 ? b : a;
    return other == DType::kInt8 ? DType::kInt16 : other;
  }
  return width(a) > width(b) ? a : b;
}

void PromotionState::add_tensor(DType dtype, bool zero_dim) {
  DType& slot = zero_dim ? zero_dim_ : dims_;
  slot = promote(slot, dtype);
}
void PromotionState::add_scalar_bool() {
  wrapped_ = promote(wrapped_, DType::kBool);
}
void PromotionState::add_scalar_int() {
  wrapped_ = promote(wrapped_, DType::kInt64);
}
void PromotionState::add_scalar_float(DType default_float) {
  wrapped_ = is_floating(wrapped_) ? promote(wrapped_, default_float) : default_float;
}

DType PromotionState::result() const {
  return combine(combine(dims_, zero_dim_), wrapped_);
}

}  // namespace gradwire
