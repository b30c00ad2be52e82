#include <bit>

#include "kernels/expr/expr.h"
#include "kernels/expr/intern.h"

namespace gradwire::expr {
namespace {

std::string key_of(const Graph& graph, DType compute, std::span<const OperandType> operands,
                   DType output) {
  std::string key = "i";
  key.reserve(16 + 2 * operands.size() + 26 * graph.nodes.size());
  append(key, compute);
  append(key, output);
  append(key, graph.result);
  append(key, static_cast<uint32_t>(operands.size()));
  for (const OperandType& o : operands) {
    append(key, o.scalar);
    append(key, o.scalar ? DType::kNone : o.dtype);
  }
  for (const Node& n : graph.nodes) {
    append(key, n.prim);
    append(key, n.is_bool);
    for (int argument : {n.a, n.b, n.c, n.index}) append(key, argument);
    append(key, n.value);
  }
  return key;
}

bool rounds_to_whole(Prim prim) {
  return prim == Prim::kFloor || prim == Prim::kCeil || prim == Prim::kTrunc ||
         prim == Prim::kRound;
}

bool divides(Prim prim) {
  return prim == Prim::kFloorDiv || prim == Prim::kRemainder || prim == Prim::kFmod;
}

class Typer {
 public:
  Typer(const Graph& graph, DType compute, std::span<const OperandType> operands, DType output)
      : graph_(graph),
        compute_(compute),
        type_(register_type(compute)),
        operands_(operands),
        output_(output) {}

  Program run() {
    numbers_.reserve(operands_.size());
    for (const OperandType& o : operands_) {
      numbers_.push_back(o.scalar ? program_.scalar_inputs++ : program_.inputs++);
    }
    loaded_.assign(operands_.size(), -1);
    for (int i = 0; i <= graph_.result; ++i) registers_.push_back(emit_node(graph_.nodes[i]));
    int result = registers_[graph_.result];
    DType have = graph_.nodes[graph_.result].is_bool ? DType::kBool : type_;
    result = cast(result, have, register_type(output_));
    program_.stores.push_back({0, output_, static_cast<Register>(result)});
    program_.outputs = 1;
    program_.registers = next_;
    return std::move(program_);
  }

 private:
  Register fresh() { return static_cast<Register>(next_++); }

  Register emit(Prim prim, DType type, int a, int b = 0, int c = 0, DType from = DType::kNone) {
    Instruction i;
    i.prim = prim;
    i.type = type;
    i.from = from;
    i.a = static_cast<Register>(a);
    i.b = static_cast<Register>(b);
    i.c = static_cast<Register>(c);
    i.dst = fresh();
    program_.code.push_back(i);
    return i.dst;
  }

  int cast(int reg, DType from, DType to) {
    return from == to ? reg : emit(Prim::kCast, to, reg, 0, 0, from);
  }

  int emit_operand(const Node& node) {
    const OperandType& operand = operands_[node.index];
    DType wanted = node.is_bool ? DType::kBool : type_;
    if (operand.scalar) {
      Register reg = fresh();
      program_.scalars.push_back({static_cast<uint16_t>(numbers_[node.index]), wanted, reg});
      return reg;
    }
    int& reg = loaded_[node.index];
    if (reg < 0) {
      reg = fresh();
      program_.loads.push_back(
          {static_cast<uint16_t>(numbers_[node.index]), operand.dtype, static_cast<Register>(reg)});
    }
    int out = cast(reg, register_type(operand.dtype), wanted);
    bool narrow = compute_ != type_ && !node.is_bool && operand.dtype != compute_;
    return narrow ? emit(Prim::kRoundTo16, DType::kFloat32, out, 0, 0, compute_) : out;
  }

  int emit_node(const Node& node) {
    switch (node.prim) {
      case Prim::kOperand:
        return emit_operand(node);
      case Prim::kConstant: {
        Register reg = fresh();
        program_.constants.push_back({node.value, node.is_bool ? DType::kBool : type_, reg});
        return reg;
      }
      case Prim::kFromBool:
        return cast(registers_[node.a], DType::kBool, type_);
      case Prim::kToBool:
        return cast(registers_[node.a], type_of(node.a), DType::kBool);
      default:
        break;
    }
    int a = registers_[node.a];
    int b = node.b >= 0 ? registers_[node.b] : 0;
    int c = node.c >= 0 ? registers_[node.c] : 0;
    DType type = node.prim == Prim::kSelect ? type_of(node.b) : type_of(node.a);
    if (!is_floating(type)) {
      if (rounds_to_whole(node.prim)) return a;
      if (node.prim == Prim::kIsNan) return emit(Prim::kNe, type, a, a);
      if (divides(node.prim) && !nonzero(node.b)) program_.can_fail = true;
    }
    return emit(node.prim, type, a, b, c);
  }

  DType type_of(int node) const { return graph_.nodes[node].is_bool ? DType::kBool : type_; }

  bool nonzero(int node) const {
    const Node& n = graph_.nodes[node];
    return n.prim == Prim::kConstant && (n.value >= 1 || n.value <= -1);
  }

  const Graph& graph_;
  DType compute_;
  DType type_;
  std::span<const OperandType> operands_;
  DType output_;
  Program program_;
  int next_ = 0;
  std::vector<int> numbers_;    // operand -> its input or scalar number
  std::vector<int> loaded_;     // operand -> register of its load
  std::vector<int> registers_;  // node -> register
};

}  // namespace

const Program* instantiate(const Graph& graph, DType compute, std::span<const OperandType> operands,
                           DType output) {
  std::string key = key_of(graph, compute, operands, output);
  if (const Program* made = find_made(key)) return made;
  const Program* program = intern(Typer(graph, compute, operands, output).run());
  remember_made(std::move(key), program);
  return program;
}

}  // namespace gradwire::expr
