// A row of the op catalog: everything that is known of one op. Dispatch, the checks, ListOps, the
// clients' stubs, the documents and the op tests all read it from here.
//
// Kinds, from the cheapest to add to the dearest:
//   pointwise  one typed expression; kernel, fusion, broadcasting, promotion and gradient follow
//   view       new geometry over the same storage
//   composite  calls other ops; gradient follows, unless `backward` states it: then compose gives
//              fresh tensors, and saves_inputs and saves_outputs count
//   kernel     has kernels of its own: infer, lower, backward
//   command    acts on the session instead of computing (engine/ops/rows_command.cc)
#pragma once

#include <bitset>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/exec/task.h"
#include "engine/ops/command.h"
#include "engine/ops/signature.h"
#include "kernels/expr/expr.h"

namespace gradwire {

struct OpDef;
class Backward;
class Slot;
enum class Progress : uint8_t;

enum class OpKind : uint8_t { kPointwise, kView, kComposite, kKernel, kCommand };

// What dtypes a pointwise op computes in and gives.
enum class TypeRule : uint8_t {
  kPromote,       // common dtype in and out: add
  kPromoteFloat,  // ints and bools become the default float: exp, true division
  kCompare,       // computes in the common dtype, gives bool: eq
  kLogical,       // operands as bools, gives bool: logical_and
  kFloatOnly,     // error for ints and bools
  kIntegral,      // error for floats: bitwise_and
  kNumeric,       // error for bool: neg
  kNoBool,        // common dtype; a bool result is an error: sub
  kSame,          // computes in operand 0's dtype whatever the others are: masked_fill
  kFloatTest,     // floats compute, everything gives bool: isnan
};

// One bound call: arguments in signature order, defaults filled in, types checked.
struct Call {
  const OpDef* op = nullptr;
  Form form = Form::kPlain;
  Tensors inputs;  // flattened; null for an absent tensor or an Operand given as number
  absl::InlinedVector<int, 2> list_sizes;  // of the Tensor[] params, in order
  AttributeList attributes;                // by Param::attribute
  Tensors outs;                            // form kOut: the tensors to write
  int wanted = -1;                         // outputs asked for by a client, -1 inside the engine
  std::vector<int64_t> values;             // what `measure` asked for, once known
  std::span<const uint64_t> object_ids;    // ids of Object params, in order (commands only)

  const Tensor& in(int i) const { return inputs[i]; }
  const Attribute& attr(int i) const { return attributes[i]; }
};

// An output to be: dtype and sizes; empty strides mean row-major.
struct TensorSpec {
  DType dtype = DType::kNone;
  Dims sizes;
  Dims strides;
};
using TensorSpecs = absl::InlinedVector<TensorSpec, 2>;

// A view to be: geometry over the input's storage.
struct ViewSpec {
  Dims sizes;
  Dims strides;
  int64_t offset = 0;
};

// A pointwise expression with its types and its derivatives, which are made at first use. Lives
// for ever; strand-safe for any number of sessions.
class PointwiseDef {
 public:
  PointwiseDef(std::string name, expr::Graph graph, TypeRule rule);

  // The derivative by operand i times the incoming gradient, as a pointwise op of its own over
  // (operands..., y, g).
  const PointwiseDef& derivative(int i) const;
  // A stated gradient replaces the derived one: same operands.
  void set_gradient(int i, expr::Graph graph);

  std::string name;
  expr::Graph graph;
  TypeRule rule;
  bool differentiable = true;  // false: a backward through it is an error
  static constexpr size_t kMaxOperands = 32;
  std::bitset<kMaxOperands> reads;     // which operands the graph reads
  std::bitset<kMaxOperands> booleans;  // which are conditions: no part of promotion, no gradient

 private:
  struct Derivatives;
  std::shared_ptr<Derivatives> derivatives_;
};

using InferFn = absl::Status (*)(const Call& call, TensorSpecs* outputs);
// Turns the call into a launch: `task` has the call's tensors, attributes and the kernel named
// by the row; lower may change all of it. Null: as it is.
using LowerFn = absl::Status (*)(const Call& call, Task* task);
using ViewFn = absl::Status (*)(const Call& call, std::vector<ViewSpec>* views);
using ComposeFn = Tensors (*)(const Call& call);
using BackwardFn = void (*)(Backward& backward);
using CommandFn = Progress (*)(Slot& slot, const Call& call, const Command& command);

struct ModuleDef {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
  std::string forward;
};

struct OpDef {
  uint16_t number = 0;
  std::string name;
  std::string doc;
  Signature signature;
  OpKind kind = OpKind::kKernel;
  std::string shape_rule;  // a name clients know, "" when they must ask
  std::string type_rule;
  bool in_place = false;  // has form 1
  bool out = false;       // has form 2
  bool method = false;    // also a method of Tensor
  bool internal = false;  // for compositions and gradients only: clients cannot name it

  std::unique_ptr<PointwiseDef> pointwise;
  // Pointwise: attribute slots that are operands of the expression, after the tensors and Operands
  // (alpha, min, max); -1 - k says operand is param k. Filled by the catalog.
  std::vector<int> operand_params;
  absl::Status (*check)(const Call& call) = nullptr;  // extra argument checks, any kind

  InferFn infer = nullptr;
  LowerFn lower = nullptr;
  ViewFn view = nullptr;
  ComposeFn compose = nullptr;
  BackwardFn backward = nullptr;
  CommandFn command = nullptr;
  // Ops whose shapes depend on values: int64 tensors of one element that must be read first.
  // Dispatch suspends until they are known and then finds them in Call::values. Null result: no
  // value is needed for this call.
  Tensors (*measure)(const Call& call) = nullptr;
  std::string kernel;          // kernel name, default the op's last name part
  uint32_t saves_inputs = 0;   // bit i: backward reads input i
  uint32_t saves_outputs = 0;  // bit i: backward reads output i
  bool checks = false;         // the kernel can fail on values
  // The kernel updates its first input in place (index_put); of a composite: it sees to its
  // in-place form itself.
  bool writes_first = false;
  bool random = false;   // consumes Philox counters
  bool commits = false;  // its in-place outputs are state (optimizer steps, running stats)
  std::vector<int> no_grad_inputs;  // inputs that never get a gradient (indices, masks)
  std::unique_ptr<ModuleDef> module;
};

inline constexpr uint32_t save(int i) {
  return 1u << i;
}

}  // namespace gradwire
