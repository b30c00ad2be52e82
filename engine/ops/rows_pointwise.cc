// Rows 100 to 299: pointwise ops. One row is a whole op: kernel, fusion, broadcasting, promotion,
// in-place and out forms and gradient follow from its expression.
#include <tuple>

#include "engine/ops/catalog.h"
#include "engine/ops/pointwise_graph.h"

namespace gradwire {
namespace {

using expr::E;
using R = TypeRule;

// torch refuses a float alpha for integers: it would be cut off silently.
absl::Status check_alpha(const Call& call) {
  if (!call.attributes.back().is_float()) return absl::OkStatus();
  bool floating = false;
  for (const Tensor& t : call.inputs) floating = floating || (t && is_floating(t->dtype));
  for (size_t i = 0; i + 1 < call.attributes.size(); ++i) {
    floating = floating || call.attributes[i].is_float();
  }
  if (floating) return absl::OkStatus();
  return runtime_error(
      "For integral input tensors, argument alpha must not be a floating point "
      "number. [",
      call.op->name, "]");
}

void add_arithmetic(Catalog& c) {
  c.pointwise(100, "add(Operand input, Operand other, *, Scalar alpha=1) -> Tensor",
              "input + alpha * other.", R::kPromote,
              [](E x, E y, E alpha) { return x + alpha * y; })
      .check = check_alpha;
  c.pointwise(101, "sub(Operand input, Operand other, *, Scalar alpha=1) -> Tensor",
              "input - alpha * other.", R::kNoBool, [](E x, E y, E alpha) { return x - alpha * y; })
      .check = check_alpha;
  c.pointwise(102, "mul(Operand input, Operand other) -> Tensor", "input * other.", R::kPromote,
              [](E x, E y) { return x * y; });
  c.pointwise(103, "true_divide(Operand input, Operand other) -> Tensor",
              "input / other; integers give the default float.", R::kPromoteFloat,
              [](E x, E y) { return x / y; });
  c.pointwise(104, "floor_divide(Operand input, Operand other) -> Tensor", "floor(input / other).",
              R::kPromote, [](E x, E y) { return expr::floor_divide(x, y); })
      .pointwise->differentiable = false;  // torch's choice: it would be zero everywhere
  c.pointwise(105, "remainder(Operand input, Operand other) -> Tensor",
              "input - other * floor(input / other): Python's %, with the divisor's sign.",
              R::kPromote, [](E x, E y) { return expr::remainder(x, y); })
      .check = check_some_tensor;
  c.pointwise(106, "fmod(Tensor input, Operand other) -> Tensor",
              "C's fmod: the remainder with the dividend's sign.", R::kPromote,
              [](E x, E y) { return expr::fmod(x, y); });
  c.pointwise(107, "pow(Operand input, Operand exponent) -> Tensor", "input ** exponent.",
              R::kPromote, [](E x, E y) { return expr::pow(x, y); })
      .check = [](const Call& call) {
    GW_RETURN_IF_ERROR(check_some_tensor(call));
    const Attribute& exponent = call.attr(1);
    if (call.in(0) && !is_floating(call.in(0)->dtype) && exponent.is_int() &&
        exponent.as_int() < 0) {
      return runtime_error("Integers to negative integer powers are not allowed. [pow]");
    }
    return absl::OkStatus();
  };
  c.pointwise(108, "neg(Tensor input) -> Tensor", "-input.", R::kNumeric, [](E x) { return -x; });
  c.pointwise(109, "abs(Tensor input) -> Tensor", "|input|.", R::kPromote,
              [](E x) { return expr::abs(x); });
  c.pointwise(110, "sign(Tensor input) -> Tensor", "-1, 0 or 1.", R::kPromote,
              [](E x) { return expr::sign(x); });
  c.pointwise(111, "square_of_number(Tensor input) -> Tensor", "input * input.", R::kPromote,
              [](E x) { return expr::square(x); });
  c.pointwise(112, "reciprocal(Tensor input) -> Tensor", "1 / input.", R::kPromoteFloat,
              [](E x) { return expr::reciprocal(x); });
  c.pointwise(113, "rsub(Tensor input, Operand other, *, Scalar alpha=1) -> Tensor",
              "other - alpha * input.", R::kNoBool, [](E x, E y, E alpha) { return y - alpha * x; })
      .check = check_alpha;
  c.pointwise(114,
              "addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
              "-> Tensor",
              "input + value * tensor1 * tensor2.", R::kPromote,
              [](E x, E a, E b, E v) { return x + v * a * b; });
  c.pointwise(115,
              "addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
              "-> Tensor",
              "input + value * tensor1 / tensor2.", R::kPromoteFloat,
              [](E x, E a, E b, E v) { return x + v * (a / b); });
  c.pointwise(116, "lerp(Tensor input, Tensor end, Operand weight) -> Tensor",
              "input + weight * (end - input), exact at both ends.", R::kFloatOnly,
              [](E x, E y, E w) {
                return expr::select(expr::abs(w) < 0.5, x + w * (y - x), y - (y - x) * (1.0 - w));
              });
}

void add_functions(Catalog& c) {
  auto unary = [&](uint16_t number, const char* name, const char* doc, Catalog::Unary fn,
                   R rule = R::kPromoteFloat) -> OpDef& {
    return c.pointwise(number, std::string(name) + "(Tensor input) -> Tensor", doc, rule, fn);
  };
  unary(130, "exp", "e ** input.", [](E x) { return expr::exp(x); });
  unary(131, "expm1", "exp(input) - 1, accurate near 0.", [](E x) { return expr::expm1(x); });
  unary(132, "exp2", "2 ** input.", [](E x) { return expr::exp2(x); });
  unary(133, "log", "Natural logarithm.", [](E x) { return expr::log(x); });
  unary(134, "log2", "Logarithm to base 2.", [](E x) { return expr::log2(x); });
  unary(135, "log10", "Logarithm to base 10.", [](E x) { return expr::log10(x); });
  unary(136, "log1p", "log(1 + input), accurate near 0.", [](E x) { return expr::log1p(x); });
  unary(137, "sqrt", "Square root.", [](E x) { return expr::sqrt(x); });
  unary(138, "rsqrt", "1 / sqrt(input).", [](E x) { return expr::rsqrt(x); });
  unary(139, "sin", "Sine.", [](E x) { return expr::sin(x); });
  unary(140, "cos", "Cosine.", [](E x) { return expr::cos(x); });
  unary(141, "tan", "Tangent.", [](E x) { return expr::tan(x); });
  unary(142, "asin", "Inverse sine.", [](E x) { return expr::asin(x); });
  unary(143, "acos", "Inverse cosine.", [](E x) { return expr::acos(x); });
  unary(144, "atan", "Inverse tangent.", [](E x) { return expr::atan(x); });
  unary(145, "sinh", "Hyperbolic sine.", [](E x) { return expr::sinh(x); });
  unary(146, "cosh", "Hyperbolic cosine.", [](E x) { return expr::cosh(x); });
  unary(147, "tanh", "Hyperbolic tangent.", [](E x) { return expr::tanh(x); });
  unary(148, "erf", "Error function.", [](E x) { return expr::erf(x); });
  unary(149, "erfc", "1 - erf(input).", [](E x) { return expr::erfc(x); });
  unary(150, "sigmoid", "1 / (1 + exp(-input)).", [](E x) { return expr::sigmoid(x); });
  unary(151, "lgamma", "log|Gamma(input)|.", [](E x) { return expr::lgamma(x); });
  unary(152, "digamma", "Derivative of lgamma.", [](E x) { return expr::digamma(x); });
  unary(153, "erfinv", "Inverse error function.", [](E x) { return expr::erfinv(x); });
  unary(154, "asinh", "Inverse hyperbolic sine.", [](E x) { return expr::asinh(x); });
  unary(155, "acosh", "Inverse hyperbolic cosine.", [](E x) { return expr::acosh(x); });
  unary(156, "atanh", "Inverse hyperbolic tangent.", [](E x) { return expr::atanh(x); });
  unary(
      157, "floor", "Largest integer not above.", [](E x) { return expr::floor(x); }, R::kPromote);
  unary(
      158, "ceil", "Smallest integer not below.", [](E x) { return expr::ceil(x); }, R::kPromote);
  unary(
      159, "trunc", "Rounds toward 0.", [](E x) { return expr::trunc(x); }, R::kPromote);
  unary(
      160, "round", "Rounds to the nearest integer, half to even.",
      [](E x) { return expr::round(x); }, R::kPromote);
  unary(
      161, "frac", "input - trunc(input).", [](E x) { return x - expr::trunc(x); }, R::kFloatOnly);
  c.pointwise(162, "atan2(Tensor input, Tensor other) -> Tensor",
              "Angle of the point (other, input).", R::kPromoteFloat,
              [](E x, E y) { return expr::atan2(x, y); });
}

void add_comparisons(Catalog& c) {
  auto compare = [&](uint16_t number, const char* name, const char* doc, Catalog::Binary fn) {
    c.pointwise(number, std::string(name) + "(Tensor input, Operand other) -> Tensor", doc,
                R::kCompare, fn);
  };
  compare(180, "eq", "input == other, elementwise.", [](E x, E y) { return expr::equal(x, y); });
  compare(181, "ne", "input != other, elementwise.",
          [](E x, E y) { return expr::not_equal(x, y); });
  compare(182, "lt", "input < other, elementwise.", [](E x, E y) { return x < y; });
  compare(183, "le", "input <= other, elementwise.", [](E x, E y) { return x <= y; });
  compare(184, "gt", "input > other, elementwise.", [](E x, E y) { return x > y; });
  compare(185, "ge", "input >= other, elementwise.", [](E x, E y) { return x >= y; });
  auto logical = [&](uint16_t number, const char* name, Catalog::Binary fn) {
    c.pointwise(number, std::string(name) + "(Tensor input, Tensor other) -> Tensor",
                "Of the operands' truth values.", R::kLogical, fn);
  };
  logical(186, "logical_and", [](E x, E y) { return expr::logical_and(x, y); });
  logical(187, "logical_or", [](E x, E y) { return expr::logical_or(x, y); });
  logical(188, "logical_xor", [](E x, E y) { return expr::logical_xor(x, y); });
  c.pointwise(189, "logical_not(Tensor input) -> Tensor", "Of the truth values.", R::kLogical,
              [](E x) { return expr::logical_not(x); });
  c.pointwise(190, "isnan(Tensor input) -> Tensor", "True where input is not a number.",
              R::kFloatTest, [](E x) { return expr::is_nan(x); });
  c.pointwise(191, "isinf(Tensor input) -> Tensor", "True where input is infinite.", R::kFloatTest,
              [](E x) {
                // inf - inf is nan, a finite number minus itself is 0.
                return expr::logical_and(expr::is_nan(x - x), expr::logical_not(expr::is_nan(x)));
              });
  c.pointwise(192, "isfinite(Tensor input) -> Tensor", "True where input is a finite number.",
              R::kFloatTest, [](E x) { return expr::logical_not(expr::is_nan(x - x)); });
}

E apply(expr::Prim prim, E a) {
  return a.builder->apply(prim, a);
}
E apply(expr::Prim prim, E a, E b) {
  return a.builder->apply(prim, a, b);
}

void add_bits(Catalog& c) {
  auto bits = [&](uint16_t number, const char* name, const char* doc, Catalog::Binary fn) {
    c.pointwise(number, std::string(name) + "(Operand input, Operand other) -> Tensor", doc,
                R::kIntegral, fn)
        .check = check_some_tensor;
  };
  bits(200, "bitwise_and", "input & other; for bool the logical and.",
       [](E x, E y) { return apply(expr::Prim::kBitAnd, x, y); });
  bits(201, "bitwise_or", "input | other; for bool the logical or.",
       [](E x, E y) { return apply(expr::Prim::kBitOr, x, y); });
  bits(202, "bitwise_xor", "input ^ other; for bool the logical xor.",
       [](E x, E y) { return apply(expr::Prim::kBitXor, x, y); });
  c.pointwise(203, "bitwise_not(Tensor input) -> Tensor", "~input; for bool the logical not.",
              R::kIntegral, [](E x) { return apply(expr::Prim::kBitNot, x); });
  for (auto [number, name, doc, prim] :
       {std::tuple{uint16_t{204}, "bitwise_left_shift", "input << other.",
                   Catalog::Binary([](E x, E y) { return apply(expr::Prim::kShiftLeft, x, y); })},
        std::tuple{
            uint16_t{205}, "bitwise_right_shift", "input >> other.",
            Catalog::Binary([](E x, E y) { return apply(expr::Prim::kShiftRight, x, y); })}}) {
    c.pointwise(number, std::string(name) + "(Operand input, Operand other) -> Tensor", doc,
                R::kIntegral, prim)
        .check = [](const Call& call) {
      GW_RETURN_IF_ERROR(check_some_tensor(call));
      for (const Tensor& t : call.inputs) {
        if (t && t->dtype != DType::kBool) return absl::OkStatus();
      }
      for (const Attribute& a : call.attributes) {
        if (a.is_int()) return absl::OkStatus();
      }
      return not_implemented_error("\"", call.op->name, "\" not implemented for 'Bool'");
    };
  }
}

void add_choices(Catalog& c) {
  c.pointwise(220, "minimum(Tensor input, Tensor other) -> Tensor",
              "The smaller of the two; nan wins.", R::kPromote,
              [](E x, E y) { return expr::minimum(x, y); });
  c.pointwise(221, "maximum(Tensor input, Tensor other) -> Tensor",
              "The larger of the two; nan wins.", R::kPromote,
              [](E x, E y) { return expr::maximum(x, y); });
  c.pointwise(222, "fmin(Tensor input, Tensor other) -> Tensor",
              "The smaller of the two; nan loses.", R::kPromote,
              [](E x, E y) { return expr::fmin(x, y); });
  c.pointwise(223, "fmax(Tensor input, Tensor other) -> Tensor",
              "The larger of the two; nan loses.", R::kPromote,
              [](E x, E y) { return expr::fmax(x, y); });
  // At a bound that is a number the gradient is 0, as torch's.
  auto& clamp_min = c.pointwise(224, "clamp_min(Tensor input, Operand min) -> Tensor",
                                "input, but at least min; nan wins.", R::kPromote,
                                [](E x, E low) { return expr::maximum(x, low); });
  clamp_min.pointwise->set_gradient(
      0, graph(4, {}, [](auto& e) { return expr::select(e[0] > e[1], e[3], 0.0); }));
  auto& clamp_max = c.pointwise(225, "clamp_max(Tensor input, Operand max) -> Tensor",
                                "input, but at most max; nan wins.", R::kPromote,
                                [](E x, E high) { return expr::minimum(x, high); });
  clamp_max.pointwise->set_gradient(
      0, graph(4, {}, [](auto& e) { return expr::select(e[0] < e[1], e[3], 0.0); }));
  auto& deviation = c.pointwise(118, "sqrt_of_var(Tensor input) -> Tensor",
                                "sqrt(input), whose gradient at 0 is 0: that of std.",
                                R::kPromoteFloat, [](E x) { return expr::sqrt(x); });
  deviation.pointwise->set_gradient(
      0, graph(3, {},
               [](auto& e) { return expr::select(equal(e[1], 0.0), 0.0, e[2] / (e[1] * 2.0)); }));
  c.keep_internal({"sqrt_of_var"});
  c.pointwise(117, "div_floor(Operand input, Operand other) -> Tensor",
              "floor(input / other), with a gradient of zero: div with rounding_mode='floor'.",
              R::kPromote, [](E x, E y) { return expr::floor_divide(x, y); });
  c.pointwise(226, "where(Tensor condition, Operand input, Operand other) -> Tensor",
              "input where condition is true, else other.", R::kPromote,
              graph(3, {0}, [](auto& e) { return expr::select(e[0], e[1], e[2]); }))
      .in_place = false;
  c.pointwise(227, "masked_fill(Tensor input, Tensor mask, Operand value) -> Tensor",
              "value where mask is true, else input.", R::kSame,
              graph(3, {1}, [](auto& e) { return expr::select(e[1], e[2], e[0]); }))
      .check = [](const Call& call) {
    const Tensor& value = call.in(2);
    if (!value || value->sizes.empty()) return absl::OkStatus();
    return runtime_error("masked_fill only supports a 0-dimensional value tensor, but got tensor ",
                         "with ", value->rank(), " dimension(s).");
  };
}

void add_activations(Catalog& c) {
  auto& relu = c.pointwise(240, "relu(Tensor input) -> Tensor", "max(input, 0); nan stays.",
                           R::kPromote, [](E x) { return expr::select(x <= 0.0, 0.0, x); });
  // By the output, so that relu in place needs no copy of its input.
  relu.pointwise->set_gradient(
      0, graph(3, {}, [](auto& e) { return expr::select(e[1] <= 0.0, 0.0, e[2]); }));
  c.pointwise(241, "nn.functional.leaky_relu(Tensor input, Scalar negative_slope=0.01) -> Tensor",
              "input where positive, else negative_slope * input.", R::kFloatOnly,
              [](E x, E slope) { return expr::select(x > 0.0, x, x * slope); });
  c.pointwise(242, "nn.functional.elu(Tensor input, Scalar alpha=1.0) -> Tensor",
              "input where positive, else alpha * (exp(input) - 1).", R::kFloatOnly,
              [](E x, E alpha) { return expr::select(x > 0.0, x, alpha * expr::expm1(x)); });
  c.pointwise(243, "nn.functional.silu(Tensor input) -> Tensor", "input * sigmoid(input).",
              R::kFloatOnly, [](E x) { return x * expr::sigmoid(x); });
  c.pointwise(244,
              "nn.functional.softplus(Tensor input, Scalar beta=1.0, Scalar threshold=20.0) "
              "-> Tensor",
              "log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.",
              R::kFloatOnly, [](E x, E beta, E threshold) {
                return expr::select(beta * x > threshold, x,
                                    expr::log1p(expr::exp(beta * x)) / beta);
              });
  c.pointwise(245, "nn.functional.gelu_erf(Tensor input) -> Tensor",
              "input * Phi(input), Phi the normal distribution's cumulative function.",
              R::kFloatOnly,
              [](E x) { return x * 0.5 * (1.0 + expr::erf(x * 0.70710678118654752440)); });
  c.pointwise(246, "nn.functional.gelu_tanh(Tensor input) -> Tensor",
              "gelu by tanh(sqrt(2/pi) * (input + 0.044715 input**3)).", R::kFloatOnly, [](E x) {
                E inner = (x + x * x * x * 0.044715) * 0.79788456080286535588;
                return x * 0.5 * (1.0 + expr::tanh(inner));
              });
  c.pointwise(247,
              "nn.functional.hardtanh(Tensor input, Scalar min_val=-1.0, "
              "Scalar max_val=1.0) -> Tensor",
              "input clipped to [min_val, max_val].", R::kPromote,
              [](E x, E low, E high) {
                return expr::select(x <= low, low, expr::select(x >= high, high, x));
              })
      .check = [](const Call& call) {
    if (call.attr(0).as_double() <= call.attr(1).as_double()) return absl::OkStatus();
    return value_error("min_val cannot be greater than max_val [nn.functional.hardtanh]");
  };
  c.pointwise(248, "nn.functional.hardsigmoid(Tensor input) -> Tensor", "relu6(input + 3) / 6.",
              R::kFloatOnly, [](E x) {
                return expr::select(x <= -3.0, 0.0,
                                    expr::select(x >= 3.0, x * 0.0 + 1.0, x / 6.0 + 0.5));
              });
  c.pointwise(249, "nn.functional.hardswish(Tensor input) -> Tensor",
              "input * relu6(input + 3) / 6.", R::kFloatOnly, [](E x) {
                return expr::select(x <= -3.0, 0.0, expr::select(x >= 3.0, x, x * (x + 3.0) / 6.0));
              });
  auto& logsigmoid = c.pointwise(
      250, "nn.functional.logsigmoid(Tensor input) -> Tensor", "log(sigmoid(input)), stable.",
      R::kFloatOnly,
      [](E x) { return expr::select(x < 0.0, x, 0.0) - expr::log1p(expr::exp(-expr::abs(x))); });
  logsigmoid.pointwise->set_gradient(
      0, graph(3, {}, [](auto& e) { return expr::sigmoid(-e[0]) * e[2]; }));
  c.pointwise(251, "nn.functional.mish(Tensor input) -> Tensor", "input * tanh(softplus(input)).",
              R::kFloatOnly, [](E x) {
                return x * expr::tanh(expr::select(x > 20.0, x, expr::log1p(expr::exp(x))));
              });
  c.pointwise(252, "nn.functional.softsign(Tensor input) -> Tensor", "input / (1 + |input|).",
              R::kPromoteFloat, [](E x) { return x / (1.0 + expr::abs(x)); });
}

}  // namespace

void add_pointwise_rows(Catalog& catalog) {
  add_arithmetic(catalog);
  add_functions(catalog);
  add_comparisons(catalog);
  add_bits(catalog);
  add_choices(catalog);
  add_activations(catalog);
}

}  // namespace gradwire
