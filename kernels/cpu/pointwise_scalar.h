// Numbers of a call and constants of a Program as elements of a tile.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace gradwire::cpu {

// The value converted to a register type, in the low bytes. Python's int wraps, a float given to
// an integer type truncates and saturates.
uint64_t scalar_bits(const ScalarValue& scalar, DType type);
uint64_t constant_bits(double value, DType type);

}  // namespace gradwire::cpu
