#include "kernels/cpu/loss_targets.h"

namespace gradwire::cpu {

Reduction reduction_of(const Attribute& attribute) {
  if (attribute.as_string() == "none") return Reduction::kNone;
  if (attribute.as_string() == "sum") return Reduction::kSum;
  return Reduction::kMean;
}

ClassRows::ClassRows(const TensorView& scores) {
  int dim = scores.rank == 1 ? 0 : 1;
  outer = map_without(scores, dim);
  inner.add(scores.sizes[dim], scores.strides[dim]);
  rows = outer.count;
  classes = scores.sizes[dim];
}

absl::Status Targets::check(const char* op, int64_t classes) const {
  for (int64_t r = 0; r < map_.count; ++r) {
    int64_t t = data_[map_.offset(r)];
    if (t == ignore_index_ || (t >= 0 && t < classes)) continue;
    return index_error("[", op, "] Target ", t, " is out of bounds.");
  }
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
