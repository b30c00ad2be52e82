// How the operands of a pointwise launch lie in memory, and moving tiles of them.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/tensor_view.h"

namespace gradwire::cpu {

// The index space of a launch after dropping dimensions of size 1, ordering the others by the
// output's strides and joining those that every operand walks evenly. Innermost last.
struct IndexSpace {
  int rank = 0;
  int64_t numel = 1;
  std::array<int64_t, kMaxRank> sizes;
};

struct TileOperand {
  enum class Layout : uint8_t {
    kDense,    // one run of adjacent elements
    kFixed,    // the same element everywhere
    kStrided,  // anything else
  };
  char* data;
  Layout layout;
  int size;                               // bytes of an element
  std::array<int64_t, kMaxRank> strides;  // in elements, by the IndexSpace's dimensions
};

// Fills `space` and, per view, layout and strides. All views have the sizes of views[0], which is
// an output. `operands` must hold data and size.
void make_space(const TensorView* const* views, int count, IndexSpace& space,
                TileOperand* operands);

// A place in an IndexSpace.
struct Cursor {
  std::array<int64_t, kMaxRank> at;

  void seek(const IndexSpace& space, int64_t index);
  void advance(const IndexSpace& space, int64_t count);
};

// The elements from `cursor` on when `count` of them are adjacent in memory, else null.
char* run_at(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor,
             int64_t count);

// Copies `count` elements from `cursor` on into the buffer, or back. A gather may run past the end
// of the space when the operand has a period.
void gather(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor,
            int64_t count, void* buffer);
void scatter(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor,
             int64_t count, const void* buffer);

// The number of elements after which a strided operand repeats, when outer dimensions only repeat
// it and that number is at most `most`; else 0.
int64_t period_of(const IndexSpace& space, const TileOperand& operand, int64_t most);

// Writes the element at `element` of the given size `count` times.
void splat(void* buffer, const void* element, int size, int64_t count);

}  // namespace gradwire::cpu
