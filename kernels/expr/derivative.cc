#include <cmath>
#include <map>
#include <numbers>
#include <optional>

#include "kernels/expr/expr.h"

namespace gradwire::expr {
namespace {

using Adjoint = std::optional<E>;  // absent: structurally zero

constexpr double kLn2 = std::numbers::ln2;
constexpr double kLn10 = std::numbers::ln10;
const double kTwoOverRootPi = 2 / std::sqrt(std::numbers::pi);
const double kHalfRootPi = std::sqrt(std::numbers::pi) / 2;

class Reverse {
 public:
  Reverse(const Graph& f, int wrt) : f_(f), wrt_(wrt) {}

  Graph run() {
    int last = f_.result;
    depends_.assign(f_.nodes.size(), false);
    for (int i = 0; i <= last; ++i) {
      const Node& node = f_.nodes[i];
      if (node.is_bool) continue;
      depends_[i] = node.prim == Prim::kOperand
                        ? node.index == wrt_
                        : depends(node.a) || depends(node.b) || depends(node.c);
    }
    copies_.reserve(f_.nodes.size());
    for (int i = 0; i <= last; ++i) copies_.push_back(copy(f_.nodes[i]));
    adjoints_.assign(f_.nodes.size(), std::nullopt);
    if (depends_[last]) adjoints_[last] = b_.operand(f_.operands + 1);
    Adjoint total;
    for (int i = last; i >= 0; --i) {
      if (!adjoints_[i]) continue;
      const Node& node = f_.nodes[i];
      if (node.prim == Prim::kOperand) {
        total = total ? add(*total, *adjoints_[i]) : *adjoints_[i];
      } else {
        push(i, node, *adjoints_[i]);
      }
    }
    Graph out = b_.finish(total ? *total : b_.constant(0));
    out.operands = f_.operands + 2;
    return out;
  }

 private:
  bool depends(int node) const { return node >= 0 && depends_[node]; }

  E copy(const Node& node) {
    if (node.prim == Prim::kOperand) return b_.operand(node.index, node.is_bool);
    if (node.prim == Prim::kConstant) return constant(node.value);
    if (node.b < 0) return b_.apply(node.prim, copies_[node.a]);
    if (node.c < 0) return b_.apply(node.prim, copies_[node.a], copies_[node.b]);
    return b_.apply(node.prim, copies_[node.a], copies_[node.b], copies_[node.c]);
  }

  // What node i evaluated to: the saved output when i is the whole result.
  E value(int i) { return i == f_.result ? b_.operand(f_.operands) : copies_[i]; }

  // Node arguments are looked up lazily in the builder to find constants.
  std::optional<double> number(E e) {
    auto it = constants_.find(e.node);
    return it == constants_.end() ? std::nullopt : std::optional<double>(it->second);
  }
  E constant(double value) {
    E e = b_.constant(value);
    constants_[e.node] = value;
    return e;
  }

  E add(E x, E y) {
    if (number(x) == 0.0) return y;
    if (number(y) == 0.0) return x;
    return x + y;
  }
  E mul(E x, E y) {
    auto nx = number(x), ny = number(y);
    if (nx && ny) return constant(*nx * *ny);
    if (nx == 0.0 || ny == 0.0) return constant(0);
    if (nx == 1.0) return y;
    if (ny == 1.0) return x;
    return x * y;
  }
  E div(E x, E y) {
    if (number(y) == 1.0 || number(x) == 0.0) return x;
    return x / y;
  }
  E mul(E x, double y) { return mul(x, constant(y)); }
  E zero_where(E condition, E otherwise) { return select(condition, constant(0), otherwise); }

  void give(int node, E adjoint) {
    if (!depends(node) || number(adjoint) == 0.0) return;
    adjoints_[node] = adjoints_[node] ? add(*adjoints_[node], adjoint) : adjoint;
  }

  void push(int i, const Node& node, E g);
  void push_transcendental(int i, const Node& node, E g);
  void push_pow(int i, const Node& node, E g);
  void push_extremum(const Node& node, E g);

  const Graph& f_;
  int wrt_;
  Builder b_;
  std::vector<bool> depends_;
  std::vector<E> copies_;
  std::vector<Adjoint> adjoints_;
  std::map<int, double> constants_;
};

void Reverse::push(int i, const Node& node, E g) {
  E a = node.a >= 0 ? copies_[node.a] : E{};
  E b = node.b >= 0 ? copies_[node.b] : E{};
  switch (node.prim) {
    case Prim::kAdd:
      give(node.a, g);
      give(node.b, g);
      break;
    case Prim::kSub:
      give(node.a, g);
      if (depends(node.b)) give(node.b, -g);
      break;
    case Prim::kMul:
      if (depends(node.a)) give(node.a, mul(g, b));
      if (depends(node.b)) give(node.b, mul(g, a));
      break;
    case Prim::kDiv:
      if (depends(node.a)) give(node.a, div(g, b));
      if (depends(node.b)) give(node.b, -g * (copies_[i] / b));
      break;
    case Prim::kRemainder:
      give(node.a, g);
      if (depends(node.b)) give(node.b, -g * floor_divide(a, b));
      break;
    case Prim::kFmod:
      give(node.a, g);
      if (depends(node.b)) give(node.b, -g * trunc(a / b));
      break;
    case Prim::kPow:
      push_pow(i, node, g);
      break;
    case Prim::kMinimum:
    case Prim::kMaximum:
    case Prim::kFmin:
    case Prim::kFmax:
      push_extremum(node, g);
      break;
    case Prim::kNeg:
      give(node.a, -g);
      break;
    case Prim::kAbs:
      give(node.a, mul(g, sign(a)));
      break;
    case Prim::kSquare:
      give(node.a, mul(g, mul(a, 2)));
      break;
    case Prim::kReciprocal:
      give(node.a, -g * square(value(i)));
      break;
    case Prim::kSqrt:
      give(node.a, g / mul(value(i), 2));
      break;
    case Prim::kRsqrt: {
      E y = value(i);
      give(node.a, mul(g, -0.5) * (y * y * y));
      break;
    }
    case Prim::kFma:
      if (depends(node.a)) give(node.a, mul(g, b));
      if (depends(node.b)) give(node.b, mul(g, a));
      give(node.c, g);
      break;
    case Prim::kSelect:
      if (depends(node.b)) give(node.b, select(a, g, constant(0)));
      if (depends(node.c)) give(node.c, select(a, constant(0), g));
      break;
    default:
      push_transcendental(i, node, g);
      break;
  }
}

void Reverse::push_transcendental(int i, const Node& node, E g) {
  E a = node.a >= 0 ? copies_[node.a] : E{};
  E b = node.b >= 0 ? copies_[node.b] : E{};
  switch (node.prim) {
    case Prim::kExp:
      give(node.a, mul(g, value(i)));
      break;
    case Prim::kExp2:
      give(node.a, mul(mul(g, value(i)), kLn2));
      break;
    case Prim::kExpm1:
      give(node.a, mul(g, value(i) + 1.0));
      break;
    case Prim::kLog:
      give(node.a, div(g, a));
      break;
    case Prim::kLog2:
      give(node.a, div(g, mul(a, kLn2)));
      break;
    case Prim::kLog10:
      give(node.a, div(g, mul(a, kLn10)));
      break;
    case Prim::kLog1p:
      give(node.a, div(g, a + 1.0));
      break;
    case Prim::kSin:
      give(node.a, mul(g, cos(a)));
      break;
    case Prim::kCos:
      give(node.a, mul(g, -sin(a)));
      break;
    case Prim::kTan:
      give(node.a, mul(g, 1.0 + square(value(i))));
      break;
    case Prim::kAsin:
      give(node.a, mul(g, rsqrt(1.0 - square(a))));
      break;
    case Prim::kAcos:
      give(node.a, mul(g, -rsqrt(1.0 - square(a))));
      break;
    case Prim::kAtan:
      give(node.a, div(g, square(a) + 1.0));
      break;
    case Prim::kSinh:
      give(node.a, mul(g, cosh(a)));
      break;
    case Prim::kCosh:
      give(node.a, mul(g, sinh(a)));
      break;
    case Prim::kTanh:
      give(node.a, mul(g, 1.0 - square(value(i))));
      break;
    case Prim::kAsinh:
      give(node.a, mul(g, rsqrt(square(a) + 1.0)));
      break;
    case Prim::kAcosh:
      give(node.a, mul(g, rsqrt(square(a) - 1.0)));
      break;
    case Prim::kAtanh:
      give(node.a, div(g, 1.0 - square(a)));
      break;
    case Prim::kAtan2: {
      E sum = square(a) + square(b);
      E scale = zero_where(equal(sum, 0.0), reciprocal(sum));
      if (depends(node.a)) give(node.a, mul(g, mul(b, scale)));
      if (depends(node.b)) give(node.b, mul(g, mul(-a, scale)));
      break;
    }
    case Prim::kErf:
      give(node.a, mul(g, mul(exp(-square(a)), kTwoOverRootPi)));
      break;
    case Prim::kErfc:
      give(node.a, mul(g, mul(exp(-square(a)), -kTwoOverRootPi)));
      break;
    case Prim::kErfinv:
      give(node.a, mul(g, mul(exp(square(value(i))), kHalfRootPi)));
      break;
    case Prim::kLgamma:
      give(node.a, mul(g, digamma(a)));
      break;
    case Prim::kDigamma:
      give(node.a, mul(g, polygamma(constant(1), a)));
      break;
    case Prim::kPolygamma: {
      auto order = number(a);
      E next = order ? constant(*order + 1) : a + 1.0;
      if (depends(node.b)) give(node.b, mul(g, polygamma(next, b)));
      break;
    }
    case Prim::kSigmoid: {
      E y = value(i);
      give(node.a, mul(mul(g, 1.0 - y), y));
      break;
    }
    default:  // steps, comparisons and bits: zero almost everywhere
      break;
  }
}

// Zero where the exponent is zero, and for the exponent where the base is zero, although the
// other factors are infinite there.
void Reverse::push_pow(int i, const Node& node, E g) {
  E a = copies_[node.a], b = copies_[node.b];
  if (depends(node.a)) {
    if (auto exponent = number(b)) {
      if (*exponent == 1) {
        give(node.a, g);
      } else if (*exponent == 2) {
        give(node.a, mul(g, mul(a, 2)));
      } else if (*exponent != 0) {
        give(node.a, mul(g, mul(pow(a, constant(*exponent - 1)), *exponent)));
      }
    } else {
      give(node.a, zero_where(equal(b, 0.0), g * (b * pow(a, b - 1.0))));
    }
  }
  if (depends(node.b)) {
    E flat = logical_and(equal(a, 0.0), b >= 0.0);
    give(node.b, g * zero_where(flat, value(i) * log(a)));
  }
}

// A tie shares the gradient.
void Reverse::push_extremum(const Node& node, E g) {
  E a = copies_[node.a], b = copies_[node.b];
  bool maximum = node.prim == Prim::kMaximum || node.prim == Prim::kFmax;
  E shared = select(equal(a, b), g / 2.0, g);
  if (depends(node.a)) give(node.a, zero_where(maximum ? a < b : a > b, shared));
  if (depends(node.b)) give(node.b, zero_where(maximum ? a > b : a < b, shared));
}

}  // namespace

Graph derivative(const Graph& f, int wrt) {
  return Reverse(f, wrt).run();
}

}  // namespace gradwire::expr
