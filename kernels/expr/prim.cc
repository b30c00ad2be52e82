#include "kernels/expr/prim.h"

#include <array>

namespace gradwire::expr {
namespace {

struct Row {
  Prim prim;
  const char* name;
  int arity;
  bool gives_bool = false;
};

constexpr std::array<Row, kPrimCount> kRows{{
    {Prim::kOperand, "operand", 0},
    {Prim::kConstant, "constant", 0},
    {Prim::kAdd, "add", 2},
    {Prim::kSub, "sub", 2},
    {Prim::kMul, "mul", 2},
    {Prim::kDiv, "div", 2},
    {Prim::kFloorDiv, "floor_div", 2},
    {Prim::kRemainder, "remainder", 2},
    {Prim::kFmod, "fmod", 2},
    {Prim::kPow, "pow", 2},
    {Prim::kMinimum, "minimum", 2},
    {Prim::kMaximum, "maximum", 2},
    {Prim::kFmin, "fmin", 2},
    {Prim::kFmax, "fmax", 2},
    {Prim::kNeg, "neg", 1},
    {Prim::kAbs, "abs", 1},
    {Prim::kSign, "sign", 1},
    {Prim::kSquare, "square", 1},
    {Prim::kReciprocal, "reciprocal", 1},
    {Prim::kSqrt, "sqrt", 1},
    {Prim::kRsqrt, "rsqrt", 1},
    {Prim::kFma, "fma", 3},
    {Prim::kExp, "exp", 1},
    {Prim::kExp2, "exp2", 1},
    {Prim::kExpm1, "expm1", 1},
    {Prim::kLog, "log", 1},
    {Prim::kLog2, "log2", 1},
    {Prim::kLog10, "log10", 1},
    {Prim::kLog1p, "log1p", 1},
    {Prim::kSin, "sin", 1},
    {Prim::kCos, "cos", 1},
    {Prim::kTan, "tan", 1},
    {Prim::kAsin, "asin", 1},
    {Prim::kAcos, "acos", 1},
    {Prim::kAtan, "atan", 1},
    {Prim::kSinh, "sinh", 1},
    {Prim::kCosh, "cosh", 1},
    {Prim::kTanh, "tanh", 1},
    {Prim::kAsinh, "asinh", 1},
    {Prim::kAcosh, "acosh", 1},
    {Prim::kAtanh, "atanh", 1},
    {Prim::kAtan2, "atan2", 2},
    {Prim::kErf, "erf", 1},
    {Prim::kErfc, "erfc", 1},
    {Prim::kErfinv, "erfinv", 1},
    {Prim::kLgamma, "lgamma", 1},
    {Prim::kDigamma, "digamma", 1},
    {Prim::kSigmoid, "sigmoid", 1},
    {Prim::kPolygamma, "polygamma", 2},
    {Prim::kFloor, "floor", 1},
    {Prim::kCeil, "ceil", 1},
    {Prim::kTrunc, "trunc", 1},
    {Prim::kRound, "round", 1},
    {Prim::kEq, "eq", 2, true},
    {Prim::kNe, "ne", 2, true},
    {Prim::kLt, "lt", 2, true},
    {Prim::kLe, "le", 2, true},
    {Prim::kGt, "gt", 2, true},
    {Prim::kGe, "ge", 2, true},
    {Prim::kIsNan, "is_nan", 1, true},
    {Prim::kLogicalAnd, "logical_and", 2, true},
    {Prim::kLogicalOr, "logical_or", 2, true},
    {Prim::kLogicalXor, "logical_xor", 2, true},
    {Prim::kLogicalNot, "logical_not", 1, true},
    {Prim::kBitAnd, "bit_and", 2},
    {Prim::kBitOr, "bit_or", 2},
    {Prim::kBitXor, "bit_xor", 2},
    {Prim::kBitNot, "bit_not", 1},
    {Prim::kShiftLeft, "shift_left", 2},
    {Prim::kShiftRight, "shift_right", 2},
    {Prim::kSelect, "select", 3},
    {Prim::kToBool, "to_bool", 1, true},
    {Prim::kFromBool, "from_bool", 1},
    {Prim::kCast, "cast", 1},
    {Prim::kRoundTo16, "round_to_16", 1},
}};

constexpr bool in_order() {
  for (int i = 0; i < kPrimCount; ++i) {
    if (kRows[i].prim != static_cast<Prim>(i)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::string_view prim_name(Prim prim) {
  return kRows[static_cast<int>(prim)].name;
}
int arity(Prim prim) {
  return kRows[static_cast<int>(prim)].arity;
}
bool gives_bool(Prim prim) {
  return kRows[static_cast<int>(prim)].gives_bool;
}

}  // namespace gradwire::expr
