// Checks of index tensors, and index tensors as int64.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/registry.h"
#include "kernels/cpu/scratch.h"
#include "kernels/tensor_view.h"

namespace gradwire::cpu {

// The first value, in row-major order, outside [low, high).
std::optional<int64_t> first_outside(const TensorView& index, int64_t low, int64_t high,
                                     Context& context);

// An index tensor of any integral dtype seen as int64: the tensor itself, or a converted copy that
// lives as long as this object.
class Int64Index {
 public:
  Int64Index(const TensorView& index, Context& context);
  // False when there was no memory for the copy.
  bool ok() const { return scratch_.data() != nullptr; }
  const TensorView& view() const { return view_; }

 private:
  Scratch scratch_;
  TensorView view_;
};

// `view` with dense row-major strides over `data`.
TensorView dense_like(const TensorView& view, DType dtype, void* data);

// A 1-D index along `dim` of `like`: repeated over all other dims by strides of 0.
TensorView spread_index(const TensorView& index, const TensorView& like, int64_t dim);

}  // namespace gradwire::cpu
