// torch's dtype promotion.
#pragma once

#include "kernels/dtype.h"

namespace gradwire {

// The common dtype of two tensors of dims >= 1: bool < ints < floats; bfloat16 + float16 is
// float32; uint8 + int8 is int16.
DType promote(DType a, DType b);

// Whether a result may be written to a tensor of that dtype: never to a lower category.
bool can_cast(DType from, DType to);

// torch's three-category promotion: operands of higher category win, and within a category
// tensors with dims beat 0-dim tensors beat Python scalars.
class PromotionState {
 public:
  void add_tensor(DType dtype, bool zero_dim);
  void add_scalar_bool();
  void add_scalar_int();
  void add_scalar_float(DType default_float);
  DType result() const;  // kNone when nothing was added

 private:
  DType dims_ = DType::kNone;
  DType zero_dim_ = DType::kNone;
  DType wrapped_ = DType::kNone;
};

}  // namespace gradwire
