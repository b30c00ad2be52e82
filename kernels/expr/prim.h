// Facts about single primitives.
#pragma once

#include <string_view>

#include "kernels/expr/expr.h"

namespace gradwire::expr {

// The primitive's name in listings: "floor_div" for kFloorDiv.
std::string_view prim_name(Prim prim);

// How many of a, b, c an instruction reads.
int arity(Prim prim);

// True when the result is bool whatever the arguments' type.
bool gives_bool(Prim prim);

}  // namespace gradwire::expr
