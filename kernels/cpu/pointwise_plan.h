// A Program made ready for the tile interpreter: functions looked up, tile buffers assigned.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/tile.h"
#include "kernels/expr/expr.h"

namespace gradwire::cpu {

// Buffers are numbered: first the loads' elements as stored, then the stores', then `slots` tile
// buffers of `slot_bytes` each.
struct Step {
  TileFn fn;
  uint16_t dst, a, b, c;
};

struct Plan {
  const expr::Program* program = nullptr;
  int loads = 0;
  int stores = 0;
  int slots = 0;
  int slot_bytes = 0;
  std::vector<Step> prologue;  // on values that are the same in every tile: once is enough
  std::vector<Step> steps;     // once for each tile

  // A scalar or constant and the buffer that it fills. Its slot is never used for anything else.
  struct Uniform {
    uint16_t buffer;
    int scalar;  // -1 for a constant
    double value;
    DType type;
  };
  std::vector<Uniform> uniforms;

  // A power whose exponent is a call scalar: a function of the exponent's value.
  struct ScalarPower {
    bool in_prologue;
    uint16_t step;
    int scalar;
    DType type;
  };
  std::vector<ScalarPower> powers;

  // Computes, without writing outputs, a bool that is true where an integer divisor is zero; null
  // for a Program that cannot fail. Its loads are of the Program's inputs.
  const Plan* divisors = nullptr;

  bool plain_copy = false;  // one load stored as it is
  int bytes = 0;            // loaded and stored for an element
  double cost = 0;          // estimated ns of an element on one core
  const TileOps* ops = nullptr;

  int buffers() const { return loads + stores + slots; }
};

// The Program's plan for the selected instruction set, made at the first use; lives for ever. Null
// when the Program holds a primitive that its type does not have. Thread safe.
const Plan* plan_of(const expr::Program& program);

// The function that raises to the power `exponent`, or null when only the general one does.
TileFn power_function(const TileOps& ops, DType type, double exponent);

}  // namespace gradwire::cpu
