// Advanced indexing: where the indexed elements of a tensor lie.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/attribute.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/scratch.h"

namespace gradwire::cpu {

// For each entry of the broadcast index tensors, the sum of index * stride in x. The r dims of the
// index tensors stand at `position` among x's remaining dims, in x's order.
class IndexPlan {
 public:
  explicit IndexPlan(int64_t entries) : scratch_(8 * static_cast<size_t>(entries) + 1) {}

  // How faults are reported: "index 7 is out of bounds ..." with negative indices counted from the
  // end, or "index out of range in self" with none allowed.
  enum class Bounds { kWrap, kInSelf };

  absl::Status init(std::string_view op, const TensorView& x, const TensorView& indexed,
                    absl::Span<const TensorView> indices, const IntList& dims, int64_t position,
                    Bounds bounds, Context& context);

  const int64_t* offsets() const { return scratch_.as<int64_t>(); }
  // Over `indexed`'s shape: its own offset, x's, and the position in offsets().
  const Space<3>& space() const { return space_; }
  // The same shape in two parts: the remaining dims (indexed, x) and the index dims (indexed).
  const Space<2>& rest() const { return rest_; }
  const Space<1>& entries() const { return entries_; }

 private:
  Scratch scratch_;
  Space<3> space_;
  Space<2> rest_;
  Space<1> entries_;
};

}  // namespace gradwire::cpu
