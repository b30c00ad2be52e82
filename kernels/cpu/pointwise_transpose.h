// Copies whose source and destination run along different dimensions.
#pragma once

#include "kernels/cpu/pointwise_geometry.h"
#include "kernels/cpu/thread_pool.h"

namespace gradwire::cpu {

// True when the operand is dense along another dimension than the innermost, and both are long.
bool transposed(const IndexSpace& space, const TileOperand& operand);

// Copies every element, block by block, when the destination is dense along the innermost
// dimension and the source is transposed; false, with nothing done, for any other pattern.
bool transpose_copy(const IndexSpace& space, const TileOperand& from, const TileOperand& to,
                    ThreadPool& pool);

}  // namespace gradwire::cpu
