// Pointwise ops as typed expressions.
//
// A catalog row writes its op once, as a Graph over named operands; from that one Graph come the
// CPU kernel (a Program for the tile interpreter), the CUDA kernel, the fused kernels and, by
// default, the gradient. A Graph is polymorphic: its arithmetic happens in one *compute type* T,
// chosen per call by promotion; `instantiate` makes the typed Program for one choice of dtypes.
//
// Rounding: a Program converts each operand from its stored dtype to T's *register* type (float16
// and bfloat16 compute in float32), runs the primitives, and rounds once at the output's dtype.
// Merged Programs round every inner value to the dtype its op would have stored, so a merged
// Program gives the same bits as its parts one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace gradwire::expr {

// Primitives. Unless said otherwise: operands and result have the node's type T, floating ones
// follow IEEE, integer ones wrap, comparisons give bool. No contraction to FMA except kFma.
enum class Prim : uint8_t {
  kOperand,   // operand `index`, converted to T
  kConstant,  // `value`, converted to T
  // arithmetic
  kAdd,
  kSub,
  kMul,
  kDiv,        // floating only
  kFloorDiv,   // Python's //: floor; integers by zero fail the launch
  kRemainder,  // Python's %: the divisor's sign; integers by zero fail the launch
  kFmod,       // C's fmod: the dividend's sign; integers by zero fail the launch
  kPow,        // integers: by squaring, exponent >= 0 (the caller checks scalars)
  kMinimum,
  kMaximum,  // NaN wins
  kFmin,
  kFmax,  // NaN loses
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kReciprocal,
  kSqrt,
  kRsqrt,
  kFma,  // a * b + c with one rounding; floating only
  // transcendental, floating only
  kExp,
  kExp2,
  kExpm1,
  kLog,
  kLog2,
  kLog10,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kAtan2,
  kErf,
  kErfc,
  kErfinv,
  kLgamma,
  kDigamma,
  kSigmoid,
  kPolygamma,  // order a (a whole number >= 0) of b, as torch's polygamma(n, x)
  // rounding
  kFloor,
  kCeil,
  kTrunc,
  kRound,  // kRound is half to even; all are the identity on integers
  // comparison: T, T -> bool
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIsNan,  // T -> bool
  // logic: bool, bool -> bool
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kLogicalNot,
  // bits: integers and bool
  kBitAnd,
  kBitOr,
  kBitXor,
  kBitNot,
  kShiftLeft,
  kShiftRight,
  kSelect,    // bool, T, T -> T: b where a, else c
  kToBool,    // T -> bool: not equal to zero
  kFromBool,  // bool -> T
  // only in Programs:
  kCast,  // from `from` to the instruction's type. Float -> int truncates by way of int32 (int64
          // for int64): what that cannot hold, and NaN, gives its least value; narrower ones wrap.
  kRoundTo16,  // float32 register rounded through float16 or bfloat16 (`from` says which)
};

inline constexpr int kPrimCount = static_cast<int>(Prim::kRoundTo16) + 1;

struct Node {
  Prim prim = Prim::kConstant;
  bool is_bool = false;        // the node's type is bool instead of T
  int a = -1, b = -1, c = -1;  // argument nodes
  int index = 0;               // kOperand
  double value = 0;            // kConstant
};

// A DAG of nodes in topological order; the last word of an op's meaning.
struct Graph {
  std::vector<Node> nodes;
  int result = -1;
  int operands = 0;  // how many operands it reads: indices 0 .. operands-1
};

// Handle used to write a Graph: `[](E x, E y) { return x * sigmoid(y); }`. Mixing handles of two
// builders is a bug.
class Builder;
struct E {
  Builder* builder = nullptr;
  int node = -1;
};

class Builder {
 public:
  // An operand converted to T, or, when `boolean`, kept as bool (nonzero is true): where's
  // condition, masked_fill's mask.
  E operand(int index, bool boolean = false);
  E constant(double value);
  E apply(Prim prim, E a);
  E apply(Prim prim, E a, E b);
  E apply(Prim prim, E a, E b, E c);
  Graph finish(E result);

 private:
  E push(Node node);
  Graph graph_;
};

E operator+(E a, E b);
E operator-(E a, E b);
E operator*(E a, E b);
E operator/(E a, E b);
E operator-(E a);
E operator+(E a, double b);
E operator+(double a, E b);
E operator-(E a, double b);
E operator-(double a, E b);
E operator*(E a, double b);
E operator*(double a, E b);
E operator/(E a, double b);
E operator/(double a, E b);
E operator<(E a, E b);
E operator<=(E a, E b);
E operator>(E a, E b);
E operator>=(E a, E b);
E operator<(E a, double b);
E operator<=(E a, double b);
E operator>(E a, double b);
E operator>=(E a, double b);
E equal(E a, E b);
E equal(E a, double b);
E not_equal(E a, E b);
E logical_and(E a, E b);
E logical_or(E a, E b);
E logical_xor(E a, E b);
E logical_not(E a);
E select(E condition, E yes, E no);
E select(E condition, E yes, double no);
E select(E condition, double yes, E no);
E select(E condition, double yes, double no);
E to_bool(E a);
E from_bool(E a);
E is_nan(E a);
E minimum(E a, E b);
E maximum(E a, E b);
// The unary and binary primitives under their own names, in namespace expr: exp(x), log(x),
// tanh(x), sigmoid(x), erf(x), sqrt(x), rsqrt(x), square(x), abs(x), sign(x), floor(x), pow(x, y),
// reciprocal(x), ... (one function for each floating and rounding Prim above).
E exp(E a);
E exp2(E a);
E expm1(E a);
E log(E a);
E log2(E a);
E log10(E a);
E log1p(E a);
E sin(E a);
E cos(E a);
E tan(E a);
E asin(E a);
E acos(E a);
E atan(E a);
E sinh(E a);
E cosh(E a);
E tanh(E a);
E asinh(E a);
E acosh(E a);
E atanh(E a);
E atan2(E a, E b);
E erf(E a);
E erfc(E a);
E erfinv(E a);
E lgamma(E a);
E digamma(E a);
E sigmoid(E a);
E floor(E a);
E ceil(E a);
E trunc(E a);
E round(E a);
E abs(E a);
E sign(E a);
E square(E a);
E reciprocal(E a);
E sqrt(E a);
E rsqrt(E a);
E polygamma(E order, E x);
E pow(E a, E b);
E floor_divide(E a, E b);
E remainder(E a, E b);
E fmod(E a, E b);
E fmin(E a, E b);
E fmax(E a, E b);
E fma(E a, E b, E c);

// d f / d operand `wrt`, times g, by the chain rule. The result's operands are: those of f, then y
// (f's own value, index f.operands), then g (index f.operands + 1). The rules have torch's values
// at kinks: abs 0 at 0, sqrt inf at 0, minimum/maximum 0.5 each on ties, pow safe at base 0;
// comparisons, rounding and sign give 0. A graph that does not depend on `wrt` gives constant 0.
Graph derivative(const Graph& f, int wrt);

// Which operands the graph really reads (for saving only what a backward needs).
std::vector<bool> reads(const Graph& graph);

// The graph with operand i renamed to map[i]; `operands` is the new count.
Graph rename_operands(const Graph& graph, std::span<const int> map, int operands);

// ---------------------------------------------------------------------------------------------

// How operand i arrives in a call.
struct OperandType {
  bool scalar = false;         // a ScalarValue instead of a tensor
  DType dtype = DType::kNone;  // the tensor's dtype; unused for scalars
};

using Register = uint16_t;

struct Instruction {
  Prim prim;
  DType type;                 // type of the arguments' registers (and of the result, unless bool)
  DType from = DType::kNone;  // kCast: source type; kRoundTo16: which 16-bit type
  Register dst = 0, a = 0, b = 0, c = 0;
};

// Loads tensor input `input` (stored as `stored`) into a register of register_type(stored):
// no conversion happens in a load except 16-bit -> float32.
struct LoadSlot {
  uint16_t input;
  DType stored;
  Register reg;
};
// Call scalar `scalar`, converted to `type`, in every lane.
struct ScalarSlot {
  uint16_t scalar;
  DType type;
  Register reg;
};
struct ConstantSlot {
  double value;
  DType type;
  Register reg;
};
// Writes a register of register_type(stored) as output `output`, stored as `stored`.
struct StoreSlot {
  uint16_t output;
  DType stored;
  Register reg;
};

// A typed straight-line program; immutable once made. Registers are written once. Interned
// Programs live for ever.
struct Program {
  std::vector<LoadSlot> loads;
  std::vector<ScalarSlot> scalars;
  std::vector<ConstantSlot> constants;
  std::vector<Instruction> code;
  std::vector<StoreSlot> stores;
  int registers = 0;
  int inputs = 0;         // tensor inputs of a call
  int scalar_inputs = 0;  // scalar inputs of a call
  int outputs = 0;
  bool can_fail = false;  // integer division: a launch may fail on values, so it is never fused
  uint64_t hash = 0;      // of everything above; equal Programs have equal hashes
};

// float16 and bfloat16 live in float32 registers, every other dtype in its own.
constexpr DType register_type(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t;
}

// The Program of `graph` computing in `compute` and storing `output`. Tensor operands become
// inputs 0, 1, ... in operand order, scalar operands become scalars 0, 1, ... in operand order.
// Where `compute` is 16-bit, scalars and operands of other dtypes are rounded to it first, as
// torch converts operands before computing (but a scalar stays float32).
// Interned: the same arguments give the same pointer. Thread safe.
const Program* instantiate(const Graph& graph, DType compute, std::span<const OperandType> operands,
                           DType output);

// One member of a fusion group.
struct Member {
  const Program* program = nullptr;
  // For each tensor input: group input number (>= 0), or -1 - k for the value produced by member k.
  std::vector<int> inputs;
  int output = -1;  // group output number, or -1 when nobody needs the value stored
};
// Concatenates members (each with one output) in order, renaming registers, forwarding inner
// values without memory and rounding them to their stored dtype. The scalars of the group are the
// members' scalars in order. Interned by the group's shape. Thread safe.
const Program* merge(std::span<const Member> members);

// A readable listing, for tests and logs.
std::string to_string(const Graph& graph);
std::string to_string(const Program& program);

}  // namespace gradwire::expr
