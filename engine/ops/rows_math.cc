// Rows 206 to 219, 228 to 239, 262 and 263: further pointwise functions.
#include <limits>
#include <numbers>

#include "engine/ops/call.h"
#include "engine/ops/pointwise_graph.h"

namespace gradwire {

absl::Status check_some_tensor(const Call& call) {
  for (const Tensor& t : call.inputs) {
    if (t) return absl::OkStatus();
  }
  return type_error("[", call.op->name, "] argument 'input' must be Tensor, not a number");
}

namespace {

using expr::E;
using R = TypeRule;

constexpr double kPi = std::numbers::pi;

E is_inf(E x) {
  return expr::logical_and(expr::is_nan(x - x), expr::logical_not(expr::is_nan(x)));
}

// Floats only: tells -0 from 0.
E sign_bit(E x) {
  return expr::logical_or(x < 0.0,
                          expr::logical_and(expr::equal(x, 0.0), expr::reciprocal(x) < 0.0));
}

void add_tests(Catalog& c) {
  c.pointwise(206, "isposinf(Tensor input) -> Tensor", "True where input is +inf.", R::kFloatTest,
              [](E x) { return expr::logical_and(is_inf(x), x > 0.0); });
  c.pointwise(207, "isneginf(Tensor input) -> Tensor", "True where input is -inf.", R::kFloatTest,
              [](E x) { return expr::logical_and(is_inf(x), x < 0.0); });
  c.pointwise(208, "isreal(Tensor input) -> Tensor", "True everywhere: no dtype here is complex.",
              R::kFloatTest,
              [](E x) { return expr::logical_or(expr::equal(x, x), expr::is_nan(x)); });
  auto& bit = c.add(209, OpKind::kComposite, "signbit(Tensor input) -> Tensor",
                    "True where input is negative, -0 included.");
  bit.compose = [](const Call& call) -> Tensors {
    static const OpRef of_float("signbit_of_float"), lt("lt");
    const Tensor& x = call.in(0);
    if (is_floating(x->dtype)) return {gradwire::call(of_float, {x})};
    return {gradwire::call(lt, {x, nullptr}, {0})};
  };
  bit.shape_rule = "same";
  bit.type_rule = "bool";
  bit.method = bit.out = true;
  c.pointwise(210, "signbit_of_float(Tensor input) -> Tensor", "signbit of a float tensor.",
              R::kFloatTest, [](E x) { return sign_bit(x); });
}

absl::Status check_positive(const Call& call) {
  if (call.in(0)->dtype != DType::kBool) return absl::OkStatus();
  return not_implemented_error("The `+` operator, on a bool tensor is not supported. [positive]");
}

void add_unary(Catalog& c) {
  auto& positive = c.add(211, OpKind::kComposite, "positive(Tensor input) -> Tensor",
                         "input itself; an error for bool.");
  positive.check = check_positive;
  positive.compose = [](const Call& call) -> Tensors {
    static const OpRef view_as("view");
    const Dims& sizes = call.in(0)->sizes;
    if (!call.in(0)->contiguous()) return {call.in(0)};
    return {gradwire::call(view_as, {call.in(0)}, {IntList(sizes.begin(), sizes.end())})};
  };
  positive.shape_rule = positive.type_rule = "same";
  positive.method = true;
  c.pointwise(212, "sgn(Tensor input) -> Tensor", "-1, 0 or 1: sign for real numbers.", R::kPromote,
              [](E x) { return expr::sign(x); });
  c.pointwise(213, "deg2rad(Tensor input) -> Tensor", "input * pi / 180.", R::kPromoteFloat,
              [](E x) { return x * (kPi / 180); });
  c.pointwise(214, "rad2deg(Tensor input) -> Tensor", "input * 180 / pi.", R::kPromoteFloat,
              [](E x) { return x * (180 / kPi); });
  c.pointwise(215, "sinc(Tensor input) -> Tensor", "sin(pi input) / (pi input), 1 at 0.",
              R::kPromoteFloat, [](E x) {
                // The fraction never sees 0, so that its gradient stays finite.
                E z = expr::select(expr::equal(x, 0.0), 1.0, x) * kPi;
                return expr::select(expr::equal(x, 0.0), 1.0, expr::sin(z) / z);
              });
  auto& logit = c.add(216, OpKind::kComposite, "logit(Tensor input, float? eps=None) -> Tensor",
                      "log(x / (1 - x)) of input, clamped to [eps, 1 - eps] when eps is given.");
  logit.compose = [](const Call& call) -> Tensors {
    static const OpRef plain("logit_plain"), clamped("logit_clamped");
    if (call.attr(0).none()) return {gradwire::call(plain, {call.in(0)})};
    double eps = call.attr(0).as_double();
    return {gradwire::call(clamped, {call.in(0)}, {eps, 1.0 - eps})};
  };
  logit.shape_rule = "same";
  logit.type_rule = "promote_float";
  logit.method = logit.out = logit.in_place = true;
  auto& plain = c.pointwise(217, "logit_plain(Tensor input) -> Tensor",
                            "log(input / (1 - input)); outside [0, 1] nan.", R::kPromoteFloat,
                            [](E x) { return expr::log(x / (1.0 - x)); });
  plain.pointwise->set_gradient(0, graph(3, {}, [](auto& e) {
                                  E outside = expr::logical_or(e[0]<0.0, e[0]> 1.0);
                                  return expr::select(outside,
                                                      std::numeric_limits<double>::quiet_NaN(),
                                                      e[2] / (e[0] * (1.0 - e[0])));
                                }));
  auto& clamped = c.pointwise(218, "logit_clamped(Tensor input, Scalar low, Scalar high) -> Tensor",
                              "logit of input clamped to [low, high].", R::kPromoteFloat,
                              [](E x, E low, E high) {
                                E z = expr::select(x < low, low, expr::select(x > high, high, x));
                                return expr::log(z / (1.0 - z));
                              });
  clamped.pointwise->set_gradient(0, graph(5, {}, [](auto& e) {
                                    E outside = expr::logical_or(e[0]<e[1], e[0]> e[2]);
                                    return expr::select(outside, 0.0, e[4] / (e[0] * (1.0 - e[0])));
                                  }));
}

void add_binary(Catalog& c) {
  auto& xlogy =
      c.pointwise(219, "xlogy(Operand input, Operand other) -> Tensor",
                  "input * log(other), 0 where input is 0.", R::kPromoteFloat, [](E x, E y) {
                    E product = expr::select(expr::equal(x, 0.0), 0.0, x * expr::log(y));
                    return expr::select(expr::is_nan(y), y, product);
                  });
  xlogy.check = check_some_tensor;
  xlogy.pointwise->set_gradient(0, graph(4, {}, [](auto& e) {
                                  E flat = expr::logical_and(expr::equal(e[0], 0.0), e[1] <= 0.0);
                                  E zero = expr::logical_or(flat, expr::equal(e[3], 0.0));
                                  return expr::select(zero, 0.0, e[3] * expr::log(e[1]));
                                }));
  xlogy.pointwise->set_gradient(1, graph(4, {}, [](auto& e) { return e[3] * e[0] / e[1]; }));
  auto& copysign =
      c.pointwise(228, "copysign(Tensor input, Operand other) -> Tensor",
                  "|input| with the sign of other, -0 included.", R::kPromoteFloat, [](E x, E y) {
                    E size = expr::abs(x);
                    return expr::select(sign_bit(y), -size, size);
                  });
  copysign.pointwise->set_gradient(0, graph(4, {}, [](auto& e) {
                                     return expr::select(expr::equal(e[0], 0.0), 0.0,
                                                         e[3] * (e[2] / e[0]));
                                   }));
  c.pointwise(
       229, "heaviside(Tensor input, Tensor values) -> Tensor",
       "0 where input is negative, 1 where positive, values where it is 0.", R::kPromote,
       [](E x, E v) { return expr::select(expr::equal(x, 0.0), v, expr::from_bool(x > 0.0)); })
      .check = [](const Call& call) {
    if (call.in(0)->dtype == call.in(1)->dtype) return absl::OkStatus();
    return runtime_error(
        "heaviside is not yet implemented for tensors with different dtypes. [heaviside]");
  };
  auto& hypot =
      c.pointwise(230, "hypot(Tensor input, Tensor other) -> Tensor",
                  "sqrt(input**2 + other**2), without overflow.", R::kFloatOnly, [](E x, E y) {
                    E a = expr::abs(x), b = expr::abs(y);
                    E big = expr::maximum(a, b), small = expr::minimum(a, b);
                    E ratio = small / expr::select(expr::equal(big, 0.0), 1.0, big);
                    E value = big * expr::sqrt(1.0 + ratio * ratio);
                    E infinite = expr::logical_or(is_inf(x), is_inf(y));
                    return expr::select(infinite, std::numeric_limits<double>::infinity(), value);
                  });
  for (int i : {0, 1}) {
    hypot.pointwise->set_gradient(i,
                                  i ? graph(4, {}, [](auto& e) { return e[3] * (e[1] / e[2]); })
                                    : graph(4, {}, [](auto& e) { return e[3] * (e[0] / e[2]); }));
  }
  auto& ldexp = c.add(231, OpKind::kComposite, "ldexp(Tensor input, Tensor other) -> Tensor",
                      "input * 2 ** other.");
  ldexp.compose = [](const Call& call) -> Tensors {
    static const OpRef pow("pow");
    return {mul(call.in(0), gradwire::call(pow, {nullptr, call.in(1)}, {2.0, {}}))};
  };
  ldexp.shape_rule = "broadcast";
  ldexp.method = ldexp.out = ldexp.in_place = true;
  auto& lae =
      c.pointwise(232, "logaddexp(Tensor input, Tensor other) -> Tensor",
                  "log(exp(input) + exp(other)), without overflow.", R::kFloatOnly, [](E x, E y) {
                    E high = expr::maximum(x, y);
                    E sum = high + expr::log1p(expr::exp(-expr::abs(x - y)));
                    E same = expr::logical_and(is_inf(x), expr::equal(x, y));
                    return expr::select(same, x, sum);
                  });
  lae.pointwise->set_gradient(
      0, graph(4, {}, [](auto& e) { return e[3] / (1.0 + expr::exp(e[1] - e[0])); }));
  lae.pointwise->set_gradient(
      1, graph(4, {}, [](auto& e) { return e[3] / (1.0 + expr::exp(e[0] - e[1])); }));
  auto& lae2 = c.pointwise(
      233, "logaddexp2(Tensor input, Tensor other) -> Tensor",
      "log2(2**input + 2**other), without overflow.", R::kFloatOnly, [](E x, E y) {
        E high = expr::maximum(x, y);
        E sum = high + expr::log1p(expr::exp2(-expr::abs(x - y))) * (1 / std::numbers::ln2);
        E same = expr::logical_and(is_inf(x), expr::equal(x, y));
        return expr::select(same, x, sum);
      });
  lae2.pointwise->set_gradient(
      0, graph(4, {}, [](auto& e) { return e[3] / (1.0 + expr::exp2(e[1] - e[0])); }));
  lae2.pointwise->set_gradient(
      1, graph(4, {}, [](auto& e) { return e[3] / (1.0 + expr::exp2(e[0] - e[1])); }));
}

absl::Status check_float_power(const Call& call) {
  GW_RETURN_IF_ERROR(check_some_tensor(call));
  if (call.form != Form::kInPlace || !call.in(0) || call.in(0)->dtype == DType::kFloat64) {
    return absl::OkStatus();
  }
  return runtime_error("the base given to float_power_ has dtype ",
                       std::string(dtype_name(call.in(0)->dtype)),
                       " but the operation's result requires dtype Double [float_power_]");
}

void add_composites(Catalog& c) {
  auto& square = c.add(263, OpKind::kComposite, "square(Tensor input) -> Tensor",
                       "input * input; bools count as int64.");
  square.compose = [](const Call& call) -> Tensors {
    static const OpRef op("square_of_number");
    const Tensor& x = call.in(0);
    return {gradwire::call(op, {x->dtype == DType::kBool ? cast(x, DType::kInt64) : x})};
  };
  square.shape_rule = "same";
  square.method = square.out = square.in_place = true;
  auto& power =
      c.add(234, OpKind::kComposite, "float_power(Operand input, Operand exponent) -> Tensor",
            "input ** exponent in float64.");
  power.check = check_float_power;
  power.compose = [](const Call& call) -> Tensors {
    static const OpRef pow("pow");
    Tensor base = call.in(0) ? cast(call.in(0), DType::kFloat64) : nullptr;
    Tensor exponent = call.in(1) ? cast(call.in(1), DType::kFloat64) : nullptr;
    auto number = [&](int i) {
      return call.in(i) ? Attribute() : Attribute(call.attr(i).as_double());
    };
    return {gradwire::call(pow, {base, exponent}, {number(0), number(1)})};
  };
  power.shape_rule = "broadcast";
  power.method = power.out = power.in_place = true;
  auto& clean = c.add(235, OpKind::kComposite,
                      "nan_to_num(Tensor input, float? nan=None, float? posinf=None, "
                      "float? neginf=None) -> Tensor",
                      "input with nan and infinities replaced: by 0 and the dtype's largest and "
                      "smallest numbers unless given.");
  clean.compose = [](const Call& call) -> Tensors {
    static const OpRef op("nan_to_num_by");
    const Tensor& x = call.in(0);
    if (!is_floating(x->dtype)) return {clone(x)};
    double largest = x->dtype == DType::kFloat64    ? std::numeric_limits<double>::max()
                     : x->dtype == DType::kFloat16  ? 65504.0
                     : x->dtype == DType::kBFloat16 ? 0x1.fep127
                                                    : double{std::numeric_limits<float>::max()};
    auto given = [&](int i, double otherwise) {
      return call.attr(i).none() ? otherwise : call.attr(i).as_double();
    };
    return {gradwire::call(op, {x}, {given(0, 0), given(1, largest), given(2, -largest)})};
  };
  clean.shape_rule = clean.type_rule = "same";
  clean.method = clean.out = clean.in_place = true;
  c.pointwise(236,
              "nan_to_num_by(Tensor input, Scalar nan, Scalar posinf, Scalar neginf) -> Tensor",
              "input with nan and infinities replaced by the three numbers.", R::kFloatOnly,
              [](E x, E nan, E high, E low) {
                E infinite = expr::select(x > 0.0, high, low);
                return expr::select(expr::is_nan(x), nan, expr::select(is_inf(x), infinite, x));
              });
}

// |input - other| <= atol + rtol |other|, as torch counts it: equals are close, infinities only so.
Tensors compose_isclose(const Call& call) {
  static const OpRef eq("eq"), logical_or("logical_or"), logical_and("logical_and"), abs("abs");
  static const OpRef isnan("isnan"), isfinite("isfinite"), le("le"), add_op("add");
  const Tensor& x = call.in(0);
  const Tensor& y = call.in(1);
  double rtol = call.attr(0).as_double(), atol = call.attr(1).as_double();
  if (x->dtype != y->dtype) {
    return {poisoned(runtime_error("[isclose] ", std::string(dtype_name(x->dtype)),
                                   " did not match ", std::string(dtype_name(y->dtype))))};
  }
  if (rtol < 0 || atol < 0) {
    return {poisoned(runtime_error("[isclose] ", rtol < 0 ? "rtol" : "atol",
                                   " must be greater than or equal to zero, but got ",
                                   rtol < 0 ? rtol : atol))};
  }
  GradMode off(false);
  Tensor close = gradwire::call(eq, {x, y}, {{}});
  if (call.attr(2).as_bool() && is_floating(x->dtype)) {
    Tensor both =
        gradwire::call(logical_and, {gradwire::call(isnan, {x}), gradwire::call(isnan, {y})});
    close = gradwire::call(logical_or, {close, both});
  }
  if (rtol == 0 && atol == 0) return {close};
  Tensor other = is_floating(y->dtype) ? y : cast(y, Slot::current().default_float);
  Tensor allowed = gradwire::call(abs, {mul(other, rtol)});
  allowed = with_number(add_op, allowed, atol, 1);
  Tensor actual = gradwire::call(abs, {sub(x, other)});
  Tensor near = gradwire::call(logical_and, {gradwire::call(isfinite, {actual}),
                                             gradwire::call(le, {actual, allowed}, {{}})});
  return {gradwire::call(logical_or, {close, near})};
}

Tensors compose_div_trunc(const Call& call) {
  static const OpRef of_float("trunc_divide_of_float"), of_int("trunc_divide_of_int");
  bool floating = false;
  for (int i : {0, 1}) {
    floating = floating || call.attr(i).is_float();
    if (call.in(i)) floating = floating || is_floating(call.in(i)->dtype);
  }
  return {gradwire::call(floating ? of_float : of_int, {call.in(0), call.in(1)}, call.attributes)};
}

void add_division(Catalog& c) {
  auto& close = c.add(237, OpKind::kComposite,
                      "isclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, "
                      "bool equal_nan=False) -> Tensor",
                      "True where |input - other| <= atol + rtol * |other|.");
  close.compose = compose_isclose;
  close.shape_rule = "broadcast";
  close.type_rule = "bool";
  close.method = true;
  auto& divide = c.add(238, OpKind::kComposite, "div_trunc(Operand input, Operand other) -> Tensor",
                       "trunc(input / other); ints stay ints.");
  divide.check = check_some_tensor;
  divide.compose = compose_div_trunc;
  divide.shape_rule = "broadcast";
  divide.type_rule = "promote";
  divide.out = divide.in_place = true;
  c.pointwise(239, "trunc_divide_of_float(Operand input, Operand other) -> Tensor",
              "trunc(input / other).", R::kPromoteFloat,
              [](E x, E y) { return expr::trunc(x / y); });
  c.pointwise(262, "trunc_divide_of_int(Operand input, Operand other) -> Tensor",
              "The quotient rounded toward 0.", R::kPromote, [](E x, E y) {
                E floor = expr::floor_divide(x, y);
                E inexact = expr::not_equal(floor * y, x);
                E negative = expr::logical_xor(x < 0.0, y < 0.0);
                return expr::select(expr::logical_and(inexact, negative), floor + 1.0, floor);
              });
}

}  // namespace

void add_math_rows(Catalog& c) {
  add_tests(c);
  add_unary(c);
  add_binary(c);
  add_composites(c);
  add_division(c);
  c.keep_internal({"square_of_number", "trunc_divide_of_float", "trunc_divide_of_int",
                   "signbit_of_float", "logit_plain", "logit_clamped", "nan_to_num_by"});
}

}  // namespace gradwire
