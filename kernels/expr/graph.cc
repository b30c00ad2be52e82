#include "kernels/expr/expr.h"

namespace gradwire::expr {

std::vector<bool> reads(const Graph& graph) {
  std::vector<bool> out(graph.operands, false);
  std::vector<bool> live(graph.nodes.size(), false);
  if (graph.result >= 0) live[graph.result] = true;
  for (int i = static_cast<int>(graph.nodes.size()) - 1; i >= 0; --i) {
    if (!live[i]) continue;
    const Node& node = graph.nodes[i];
    if (node.prim == Prim::kOperand) out[node.index] = true;
    for (int argument : {node.a, node.b, node.c}) {
      if (argument >= 0) live[argument] = true;
    }
  }
  return out;
}

Graph rename_operands(const Graph& graph, std::span<const int> map, int operands) {
  Graph out = graph;
  out.operands = operands;
  for (Node& node : out.nodes) {
    if (node.prim == Prim::kOperand) node.index = map[node.index];
  }
  return out;
}

}  // namespace gradwire::expr
