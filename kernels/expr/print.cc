#include "absl/strings/str_cat.h"
#include "kernels/expr/prim.h"

namespace gradwire::expr {
namespace {

absl::string_view text(std::string_view s) {
  return {s.data(), s.size()};
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string out;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    absl::StrAppend(&out, "%", i, n.is_bool ? ":bool" : "", " = ", text(prim_name(n.prim)));
    if (n.prim == Prim::kOperand) absl::StrAppend(&out, " ", n.index);
    if (n.prim == Prim::kConstant) absl::StrAppend(&out, " ", n.value);
    for (int argument : {n.a, n.b, n.c}) {
      if (argument >= 0) absl::StrAppend(&out, " %", argument);
    }
    absl::StrAppend(&out, "\n");
  }
  absl::StrAppend(&out, "return %", graph.result, "\n");
  return out;
}

std::string to_string(const Program& program) {
  std::string out;
  for (const LoadSlot& s : program.loads) {
    absl::StrAppend(&out, "r", s.reg, " = load ", s.input, " ", text(dtype_name(s.stored)), "\n");
  }
  for (const ScalarSlot& s : program.scalars) {
    absl::StrAppend(&out, "r", s.reg, " = scalar ", s.scalar, " ", text(dtype_name(s.type)), "\n");
  }
  for (const ConstantSlot& s : program.constants) {
    absl::StrAppend(&out, "r", s.reg, " = constant ", s.value, " ", text(dtype_name(s.type)), "\n");
  }
  for (const Instruction& i : program.code) {
    absl::StrAppend(&out, "r", i.dst, " = ", text(prim_name(i.prim)), ".",
                    text(dtype_name(i.type)));
    if (i.from != DType::kNone) absl::StrAppend(&out, " from ", text(dtype_name(i.from)));
    const Register arguments[] = {i.a, i.b, i.c};
    for (int k = 0; k < arity(i.prim); ++k) absl::StrAppend(&out, " r", arguments[k]);
    absl::StrAppend(&out, "\n");
  }
  for (const StoreSlot& s : program.stores) {
    absl::StrAppend(&out, "store ", s.output, " ", text(dtype_name(s.stored)), " r", s.reg, "\n");
  }
  return out;
}

}  // namespace gradwire::expr
