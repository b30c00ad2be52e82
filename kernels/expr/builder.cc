#include <algorithm>
#include <bit>

#include "kernels/expr/prim.h"

namespace gradwire::expr {
namespace {

bool same(const Node& x, const Node& y) {
  return x.prim == y.prim && x.is_bool == y.is_bool && x.a == y.a && x.b == y.b && x.c == y.c &&
         x.index == y.index && std::bit_cast<uint64_t>(x.value) == std::bit_cast<uint64_t>(y.value);
}

// Drops the nodes that the result does not need.
Graph prune(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  live[graph.result] = true;
  for (int i = graph.result; i >= 0; --i) {
    if (!live[i]) continue;
    for (int argument : {graph.nodes[i].a, graph.nodes[i].b, graph.nodes[i].c}) {
      if (argument >= 0) live[argument] = true;
    }
  }
  Graph out;
  out.operands = graph.operands;
  std::vector<int> moved(graph.nodes.size(), -1);
  for (int i = 0; i <= graph.result; ++i) {
    if (!live[i]) continue;
    Node node = graph.nodes[i];
    for (int* argument : {&node.a, &node.b, &node.c}) {
      if (*argument >= 0) *argument = moved[*argument];
    }
    moved[i] = static_cast<int>(out.nodes.size());
    out.nodes.push_back(node);
  }
  out.result = moved[graph.result];
  return out;
}

}  // namespace

E Builder::push(Node node) {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (same(graph_.nodes[i], node)) return {this, static_cast<int>(i)};
  }
  graph_.nodes.push_back(node);
  return {this, static_cast<int>(graph_.nodes.size()) - 1};
}

E Builder::operand(int index, bool boolean) {
  graph_.operands = std::max(graph_.operands, index + 1);
  Node node;
  node.prim = Prim::kOperand;
  node.is_bool = boolean;
  node.index = index;
  return push(node);
}

E Builder::constant(double value) {
  Node node;
  node.value = value;
  return push(node);
}

E Builder::apply(Prim prim, E a) {
  Node node;
  node.prim = prim;
  node.a = a.node;
  node.is_bool = gives_bool(prim) || (prim == Prim::kBitNot && graph_.nodes[a.node].is_bool);
  return push(node);
}

E Builder::apply(Prim prim, E a, E b) {
  Node node;
  node.prim = prim;
  node.a = a.node;
  node.b = b.node;
  bool bits = prim == Prim::kBitAnd || prim == Prim::kBitOr || prim == Prim::kBitXor;
  node.is_bool = gives_bool(prim) || (bits && graph_.nodes[a.node].is_bool);
  return push(node);
}

E Builder::apply(Prim prim, E a, E b, E c) {
  Node node;
  node.prim = prim;
  node.a = a.node;
  node.b = b.node;
  node.c = c.node;
  node.is_bool = gives_bool(prim) || (prim == Prim::kSelect && graph_.nodes[b.node].is_bool);
  return push(node);
}

Graph Builder::finish(E result) {
  graph_.result = result.node;
  return prune(graph_);
}

#define GW_BINARY(name, prim)                  \
  E name(E a, E b) {                           \
    return a.builder->apply(Prim::prim, a, b); \
  }
#define GW_BINARY_NUMBER(name, prim)                                \
  GW_BINARY(name, prim)                                             \
  E name(E a, double b) {                                           \
    return a.builder->apply(Prim::prim, a, a.builder->constant(b)); \
  }
#define GW_BINARY_NUMBERS(name, prim)                               \
  GW_BINARY_NUMBER(name, prim)                                      \
  E name(double a, E b) {                                           \
    return b.builder->apply(Prim::prim, b.builder->constant(a), b); \
  }
#define GW_UNARY(name, prim)                \
  E name(E a) {                             \
    return a.builder->apply(Prim::prim, a); \
  }

GW_BINARY_NUMBERS(operator+, kAdd)
GW_BINARY_NUMBERS(operator-, kSub)
GW_BINARY_NUMBERS(operator*, kMul)
GW_BINARY_NUMBERS(operator/, kDiv)
GW_UNARY(operator-, kNeg)
GW_BINARY_NUMBER(operator<, kLt)
GW_BINARY_NUMBER(operator<=, kLe)
GW_BINARY_NUMBER(operator>, kGt)
GW_BINARY_NUMBER(operator>=, kGe)
GW_BINARY_NUMBER(equal, kEq)
GW_BINARY(not_equal, kNe)
GW_BINARY(logical_and, kLogicalAnd)
GW_BINARY(logical_or, kLogicalOr)
GW_BINARY(logical_xor, kLogicalXor)
GW_UNARY(logical_not, kLogicalNot)
GW_UNARY(to_bool, kToBool)
GW_UNARY(from_bool, kFromBool)
GW_UNARY(is_nan, kIsNan)
GW_BINARY(minimum, kMinimum)
GW_BINARY(maximum, kMaximum)
GW_BINARY(fmin, kFmin)
GW_BINARY(fmax, kFmax)
GW_UNARY(exp, kExp)
GW_UNARY(exp2, kExp2)
GW_UNARY(expm1, kExpm1)
GW_UNARY(log, kLog)
GW_UNARY(log2, kLog2)
GW_UNARY(log10, kLog10)
GW_UNARY(log1p, kLog1p)
GW_UNARY(sin, kSin)
GW_UNARY(cos, kCos)
GW_UNARY(tan, kTan)
GW_UNARY(asin, kAsin)
GW_UNARY(acos, kAcos)
GW_UNARY(atan, kAtan)
GW_UNARY(sinh, kSinh)
GW_UNARY(cosh, kCosh)
GW_UNARY(tanh, kTanh)
GW_UNARY(asinh, kAsinh)
GW_UNARY(acosh, kAcosh)
GW_UNARY(atanh, kAtanh)
GW_BINARY(atan2, kAtan2)
GW_UNARY(erf, kErf)
GW_UNARY(erfc, kErfc)
GW_UNARY(erfinv, kErfinv)
GW_UNARY(lgamma, kLgamma)
GW_UNARY(digamma, kDigamma)
GW_BINARY(polygamma, kPolygamma)
GW_UNARY(sigmoid, kSigmoid)
GW_UNARY(floor, kFloor)
GW_UNARY(ceil, kCeil)
GW_UNARY(trunc, kTrunc)
GW_UNARY(round, kRound)
GW_UNARY(abs, kAbs)
GW_UNARY(sign, kSign)
GW_UNARY(square, kSquare)
GW_UNARY(reciprocal, kReciprocal)
GW_UNARY(sqrt, kSqrt)
GW_UNARY(rsqrt, kRsqrt)
GW_BINARY(pow, kPow)
GW_BINARY(floor_divide, kFloorDiv)
GW_BINARY(remainder, kRemainder)
GW_BINARY(fmod, kFmod)

#undef GW_UNARY
#undef GW_BINARY_NUMBERS
#undef GW_BINARY_NUMBER
#undef GW_BINARY

E fma(E a, E b, E c) {
  return a.builder->apply(Prim::kFma, a, b, c);
}

E select(E condition, E yes, E no) {
  return condition.builder->apply(Prim::kSelect, condition, yes, no);
}
E select(E condition, E yes, double no) {
  return select(condition, yes, condition.builder->constant(no));
}
E select(E condition, double yes, E no) {
  return select(condition, condition.builder->constant(yes), no);
}
E select(E condition, double yes, double no) {
  return select(condition, condition.builder->constant(yes), condition.builder->constant(no));
}

}  // namespace gradwire::expr
