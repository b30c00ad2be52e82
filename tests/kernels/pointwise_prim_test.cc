// Every primitive at every type against a scalar reference.
#include <cmath>
#include <functional>
#include <map>

#include "kernels/expr/prim.h"
#include "tests/kernels/pointwise_fixture.h"

namespace gradwire {
namespace {

using expr::Builder;
using expr::E;
using expr::Prim;
using expr::Program;

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

// Units in the last place of `dtype` between the two; infinite when only one is NaN.
double ulps(double got, double want, DType dtype) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : kInf;
  if (got == want) return 0;
  if (std::isinf(want) || std::isinf(got)) return kInf;
  int digits = dtype == DType::kFloat64   ? 52
               : dtype == DType::kFloat32 ? 23
               : dtype == DType::kFloat16 ? 10
                                          : 7;
  int least = dtype == DType::kFloat64 ? -1022 : dtype == DType::kFloat16 ? -14 : -126;
  int exponent = std::max(std::ilogb(want == 0 ? 1e-300 : want), least);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - digits);
}

TestTensor run(Prim prim, DType compute, std::vector<TestTensor>& in, DType output) {
  Builder b;
  std::vector<expr::OperandType> types;
  std::vector<TensorView> views;
  std::vector<E> e;
  for (size_t i = 0; i < in.size(); ++i) {
    bool condition = in[i].dtype() == DType::kBool && compute != DType::kBool;
    e.push_back(b.operand(static_cast<int>(i), condition));
    types.push_back(tensor_of(in[i].dtype()));
    views.push_back(in[i].view());
  }
  E result = in.size() == 1   ? b.apply(prim, e[0])
             : in.size() == 2 ? b.apply(prim, e[0], e[1])
                              : b.apply(prim, e[0], e[1], e[2]);
  const Program* program = expr::instantiate(b.finish(result), compute, types, output);
  TestTensor out(output, {in[0].numel()});
  absl::Status status = launch(program, views, {out.view()});
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

struct FloatCase {
  Prim prim;
  std::function<double(double)> want;
  double bound = 0.5;  // in ulps, of float32 and float64
  double least = -10, most = 10;
  double absolute = 0;  // near zeros of the function
};

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}
double sign_of(double x) {
  return (x > 0) - (x < 0);
}

const std::vector<FloatCase>& float_cases() {
  static const std::vector<FloatCase> cases = {
      {Prim::kNeg, [](double x) { return -x; }},
      {Prim::kAbs, [](double x) { return std::fabs(x); }},
      {Prim::kSign, sign_of},
      {Prim::kSquare, [](double x) { return x * x; }},
      {Prim::kReciprocal, [](double x) { return 1 / x; }},
      {Prim::kSqrt, [](double x) { return std::sqrt(x); }},
      {Prim::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5},
      {Prim::kFloor, [](double x) { return std::floor(x); }},
      {Prim::kCeil, [](double x) { return std::ceil(x); }},
      {Prim::kTrunc, [](double x) { return std::trunc(x); }},
      {Prim::kRound, [](double x) { return std::nearbyint(x); }},
      {Prim::kExp, [](double x) { return std::exp(x); }, 1.5, -700, 700},
      {Prim::kExp, [](double x) { return std::exp(x); }, 1.5, -80, 80},
      {Prim::kExp2, [](double x) { return std::exp2(x); }, 1.5, -120, 120},
      {Prim::kExpm1, [](double x) { return std::expm1(x); }, 1.5, -30, 80},
      {Prim::kExpm1, [](double x) { return std::expm1(x); }, 1.5, -1e-3, 1e-3},
      {Prim::kLog, [](double x) { return std::log(x); }, 1.5, 0, 1e6},
      {Prim::kLog2, [](double x) { return std::log2(x); }, 1.5, 0, 1e6},
      {Prim::kLog10, [](double x) { return std::log10(x); }, 1.5, 0, 1e6},
      {Prim::kLog1p, [](double x) { return std::log1p(x); }, 1.5, -1, 100},
      {Prim::kLog1p, [](double x) { return std::log1p(x); }, 1.5, 0, 3e38},
      {Prim::kSin, [](double x) { return std::sin(x); }, 1.5, -1e4, 1e4},
      {Prim::kCos, [](double x) { return std::cos(x); }, 1.5, -1e4, 1e4},
      {Prim::kTan, [](double x) { return std::tan(x); }, 1.5, -1e3, 1e3},
      {Prim::kAsin, [](double x) { return std::asin(x); }, 1.5, -1.1, 1.1},
      {Prim::kAcos, [](double x) { return std::acos(x); }, 1.5, -1.1, 1.1},
      {Prim::kAtan, [](double x) { return std::atan(x); }, 1.5, -100, 100},
      {Prim::kSinh, [](double x) { return std::sinh(x); }, 1.5, -89.5, 89.5},
      {Prim::kCosh, [](double x) { return std::cosh(x); }, 1.5, -89.5, 89.5},
      {Prim::kTanh, [](double x) { return std::tanh(x); }, 2},
      {Prim::kAsinh, [](double x) { return std::asinh(x); }, 2.5, -1e38, 1e38},
      {Prim::kAsinh, [](double x) { return std::asinh(x); }, 2.5, -2, 2},
      {Prim::kAcosh, [](double x) { return std::acosh(x); }, 2.5, 1, 1e38},
      {Prim::kAcosh, [](double x) { return std::acosh(x); }, 2.5, 0.5, 3},
      {Prim::kAtanh, [](double x) { return std::atanh(x); }, 1.5, -1.1, 1.1},
      {Prim::kErf, [](double x) { return std::erf(x); }, 1.5, -4, 4},
      {Prim::kErfc, [](double x) { return std::erfc(x); }, 2, -4, 9},
      {Prim::kLgamma, [](double x) { return std::lgamma(x); }, 2, -20, 50, 1e-15},
      {Prim::kSigmoid, sigmoid_of, 3, -80, 80},
  };
  return cases;
}

void check_float(const FloatCase& c, DType t, std::mt19937_64& rng) {
  double edges[] = {0.0, -0.0, 1, -1, 0.5, 2, 1e-30, -1e-30, kInf, -kInf, kNan};
  TestTensor x(t, {1500});
  x.randomize(rng, c.least, c.most);
  for (int i = 0; i < 11; ++i) x.set(i, edges[i]);
  std::vector<TestTensor> in{x};
  TestTensor got = run(c.prim, t, in, t);
  bool wide = t == DType::kFloat32 || t == DType::kFloat64;
  // The rounding to 16 bits comes on top of the error of float32.
  double bound = wide ? c.bound : 0.51;
  for (int64_t i = 0; i < x.numel(); ++i) {
    TestTensor want(t, {1});
    double exact = c.want(x.number(i));
    want.set(0, exact);
    double reference = std::isinf(want.number(0)) || !wide ? want.number(0) : exact;
    if (t == DType::kFloat64) reference = exact;
    double off = ulps(got.number(i), reference, t);
    bool close = off <= (wide ? bound : 1.0) || std::fabs(got.number(i) - exact) <= c.absolute;
    // The largest finite values may round to infinity.
    bool edge = std::isinf(reference) != std::isinf(got.number(i)) && !wide;
    ASSERT_TRUE(close || edge) << expr::prim_name(c.prim) << " " << dtype_name(t) << " of "
                               << x.number(i) << ": got " << got.number(i) << ", want " << reference
                               << ", " << off << " ulps";
  }
}

TEST(PointwisePrim, UnaryFloat) {
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    std::mt19937_64 rng(21);
    for (const FloatCase& c : float_cases()) {
      for (DType t : kFloats) check_float(c, t, rng);
      if (HasFatalFailure()) return;
    }
  }
}

double python_mod(double a, double b) {
  double m = std::fmod(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
double python_div(double a, double b) {
  if (b == 0) return a / b;
  double m = std::fmod(a, b);
  double d = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) d -= 1;
  if (d == 0) return std::copysign(0.0, a / b);
  double w = std::floor(d);
  return d - w > 0.5 ? w + 1 : w;
}

TEST(PointwisePrim, BinaryFloat) {
  struct Case {
    Prim prim;
    std::function<double(double, double)> want;
    double bound = 0.5;
  };
  const Case cases[] = {
      {Prim::kAdd, [](double a, double b) { return a + b; }},
      {Prim::kSub, [](double a, double b) { return a - b; }},
      {Prim::kMul, [](double a, double b) { return a * b; }},
      {Prim::kDiv, [](double a, double b) { return a / b; }},
      {Prim::kFmod, [](double a, double b) { return std::fmod(a, b); }},
      {Prim::kRemainder, python_mod, 1},
      {Prim::kFloorDiv, python_div},
      {Prim::kPow, [](double a, double b) { return std::pow(a, b); }, 1.5},
      {Prim::kAtan2, [](double a, double b) { return std::atan2(a, b); }, 1.5},
      {Prim::kMinimum, [](double a, double b) { return a != a || b != b ? kNan : std::min(a, b); }},
      {Prim::kMaximum, [](double a, double b) { return a != a || b != b ? kNan : std::max(a, b); }},
      {Prim::kFmin, [](double a, double b) { return std::fmin(a, b); }},
      {Prim::kFmax, [](double a, double b) { return std::fmax(a, b); }},
  };
  const double edges[] = {0.0, -0.0, 1, -1, 2, -2.5, 0.5, 1e-40, 3e38, -3e38, kInf, -kInf, kNan};
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    std::mt19937_64 rng(22);
    for (const Case& c : cases) {
      for (DType t : {DType::kFloat32, DType::kFloat64}) {
        TestTensor x(t, {2000}), y(t, {2000});
        x.randomize(rng, -20, 20);
        y.randomize(rng, -5, 5);
        for (int i = 0; i < 169; ++i) {
          x.set(i, edges[i / 13]);
          y.set(i, edges[i % 13]);
        }
        for (int i = 200; i < 260; ++i) x.set(i, y.number(i) * (i - 230));    // exact multiples
        for (int i = 260; i < 300; ++i) x.set(i, std::ldexp(1.37, i - 240));  // big quotients
        std::vector<TestTensor> in{x, y};
        TestTensor got = run(c.prim, t, in, t);
        for (int64_t i = 0; i < x.numel(); ++i) {
          double a = x.number(i), b = y.number(i), want;
          // The quotient's own rounding decides which whole number floor_divide gives.
          if (t == DType::kFloat32 && c.prim == Prim::kFloorDiv && b != 0) {
            float m = std::fmod(static_cast<float>(a), static_cast<float>(b));
            float d = (static_cast<float>(a) - m) / static_cast<float>(b);
            if (m != 0 && (b < 0) != (m < 0)) d -= 1;
            float w = std::floor(d);
            want = d == 0         ? std::copysign(0.f, static_cast<float>(a / b))
                   : d - w > 0.5f ? w + 1
                                  : w;
            if (std::isnan(d)) want = kNan;
          } else {
            want = c.want(a, b);
          }
          if (t == DType::kFloat32 && std::isinf(static_cast<float>(want)))
            want = static_cast<float>(want);
          ASSERT_LE(ulps(got.number(i), want, t), c.bound)
              << expr::prim_name(c.prim) << " " << dtype_name(t) << " of " << a << ", " << b
              << ": got " << got.number(i) << ", want " << want;
        }
      }
    }
  }
}

TEST(PointwisePrim, FmaRoundsOnce) {
  TestTensor a(DType::kFloat32, {1}), b = a, c = a;
  a.set(0, 1 + 0x1p-12);
  b.set(0, 1 + 0x1p-12);
  c.set(0, -1);
  std::vector<TestTensor> in{a, b, c};
  EXPECT_EQ(run(Prim::kFma, DType::kFloat32, in, DType::kFloat32).number(0),
            static_cast<float>(0x1p-11 + 0x1p-24));
}

// Whole numbers in the two's complement of `t`.
int64_t wrap(__int128 v, DType t) {
  TestTensor one(t, {1});
  one.set_integer(0, static_cast<int64_t>(static_cast<uint64_t>(v)));
  return one.integer(0);
}

__int128 floor_div(__int128 a, __int128 b) {
  __int128 q = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}
__int128 power(__int128 a, __int128 b, DType t) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
  __int128 r = 1;
  for (int64_t i = 0; i < b && i < 200; ++i) r = wrap(r * a, t);
  return r;
}

TEST(PointwisePrim, Integers) {
  using Wide = __int128;
  struct Case {
    Prim prim;
    std::function<Wide(Wide, Wide, DType)> want;
    bool divides = false;
  };
  auto bits = [](DType t) { return static_cast<int>(8 * dtype_size(t)); };
  const Case cases[] = {
      {Prim::kAdd, [](Wide a, Wide b, DType) { return a + b; }},
      {Prim::kSub, [](Wide a, Wide b, DType) { return a - b; }},
      {Prim::kMul, [](Wide a, Wide b, DType) { return a * b; }},
      {Prim::kFloorDiv, [](Wide a, Wide b, DType) { return floor_div(a, b); }, true},
      {Prim::kRemainder, [](Wide a, Wide b, DType) { return a - floor_div(a, b) * b; }, true},
      {Prim::kFmod, [](Wide a, Wide b, DType) { return a % b; }, true},
      {Prim::kPow, power},
      {Prim::kMinimum, [](Wide a, Wide b, DType) { return a < b ? a : b; }},
      {Prim::kMaximum, [](Wide a, Wide b, DType) { return a > b ? a : b; }},
      {Prim::kFmin, [](Wide a, Wide b, DType) { return a < b ? a : b; }},
      {Prim::kFmax, [](Wide a, Wide b, DType) { return a > b ? a : b; }},
      {Prim::kNeg, [](Wide a, Wide, DType) { return -a; }},
      {Prim::kAbs, [](Wide a, Wide, DType) { return a < 0 ? -a : a; }},
      {Prim::kSign, [](Wide a, Wide, DType) { return Wide((a > 0) - (a < 0)); }},
      {Prim::kSquare, [](Wide a, Wide, DType) { return a * a; }},
      {Prim::kFloor, [](Wide a, Wide, DType) { return a; }},
      {Prim::kRound, [](Wide a, Wide, DType) { return a; }},
      {Prim::kBitAnd, [](Wide a, Wide b, DType) { return a & b; }},
      {Prim::kBitOr, [](Wide a, Wide b, DType) { return a | b; }},
      {Prim::kBitXor, [](Wide a, Wide b, DType) { return a ^ b; }},
      {Prim::kBitNot, [](Wide a, Wide, DType) { return ~a; }},
      {Prim::kShiftLeft,
       [&](Wide a, Wide b, DType t) { return b < 0 || b >= bits(t) ? Wide(0) : a << int(b); }},
      {Prim::kShiftRight,
       [&](Wide a, Wide b, DType t) { return a >> (b < 0 || b >= bits(t) ? 100 : int(b)); }},
  };
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    std::mt19937_64 rng(23);
    for (DType t : kIntegers) {
      bool is_signed = t != DType::kUInt8;
      int64_t most = is_signed ? static_cast<int64_t>((uint64_t{1} << (bits(t) - 1)) - 1) : 255;
      int64_t least = is_signed ? -most - 1 : 0;
      const int64_t edges[] = {0, 1, 2, 3, 7, 33, 64, 127, most, least, least + 1, wrap(-1, t)};
      TestTensor x(t, {700}), y(t, {700});
      for (int i = 0; i < 700; ++i) {
        x.set_integer(i, i < 144 ? edges[i / 12] : static_cast<int64_t>(rng()));
        int shift = static_cast<int>(rng() % 64);
        y.set_integer(i, i < 144 ? edges[i % 12] : static_cast<int64_t>(rng()) >> shift);
      }
      for (const Case& c : cases) {
        std::vector<TestTensor> in{x};
        if (expr::arity(c.prim) == 2) in.push_back(y);
        if (c.divides) {
          for (int i = 0; i < 700; ++i) {
            if (in[1].integer(i) == 0) in[1].set_integer(i, 5);
          }
        }
        TestTensor got = run(c.prim, t, in, t);
        for (int i = 0; i < 700; ++i) {
          int64_t a = in[0].integer(i), b = in.size() > 1 ? in[1].integer(i) : 0;
          if (c.prim == Prim::kPow && b > 200) continue;
          ASSERT_EQ(got.integer(i), wrap(c.want(a, b, t), t))
              << expr::prim_name(c.prim) << " " << dtype_name(t) << " of " << a << ", " << b;
        }
      }
    }
  }
}

TEST(PointwisePrim, ComparisonsAndSelection) {
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    std::mt19937_64 rng(24);
    for (DType t : kAllDTypes) {
      TestTensor x(t, {300}), y(t, {300}), mask(DType::kBool, {300});
      x.randomize(rng);
      y.randomize(rng);
      mask.randomize(rng);
      for (int i = 0; i < 100; ++i) y.set(i, x.number(i));
      if (is_floating(t)) {
        for (int i = 90; i < 110; ++i) (i % 2 ? x : y).set(i, kNan);
      }
      std::vector<TestTensor> two{x, y}, one{x}, three{mask, x, y};
      const std::map<Prim, std::function<bool(double, double)>> comparisons = {
          {Prim::kEq, std::equal_to<double>()}, {Prim::kNe, std::not_equal_to<double>()},
          {Prim::kLt, std::less<double>()},     {Prim::kLe, std::less_equal<double>()},
          {Prim::kGt, std::greater<double>()},  {Prim::kGe, std::greater_equal<double>()}};
      for (const auto& [prim, want] : comparisons) {
        TestTensor got = run(prim, t, two, DType::kBool);
        for (int i = 0; i < 300; ++i) {
          ASSERT_EQ(got.integer(i), want(x.number(i), y.number(i)))
              << expr::prim_name(prim) << " " << dtype_name(t);
        }
      }
      TestTensor nan = run(Prim::kIsNan, t, one, DType::kBool);
      TestTensor truth = run(Prim::kToBool, t, one, DType::kBool);
      TestTensor chosen = t == DType::kBool ? x : run(Prim::kSelect, t, three, t);
      for (int i = 0; i < 300; ++i) {
        ASSERT_EQ(nan.integer(i), std::isnan(x.number(i)));
        ASSERT_EQ(truth.integer(i), x.number(i) != 0);
        if (t == DType::kBool) continue;
        double want = mask.integer(i) != 0 ? x.number(i) : y.number(i);
        ASSERT_TRUE(chosen.number(i) == want || std::isnan(want));
      }
    }
  }
}

TEST(PointwisePrim, Bools) {
  TestTensor x(DType::kBool, {64}), y(DType::kBool, {64});
  for (int i = 0; i < 64; ++i) {
    x.raw<uint8_t>(i) = static_cast<uint8_t>(i % 2 ? 1 + i : 0);  // any nonzero byte is true
    y.raw<uint8_t>(i) = static_cast<uint8_t>(i / 2 % 2 ? 2 : 0);
  }
  std::vector<TestTensor> two{x, y}, one{x};
  const std::map<Prim, std::function<bool(bool, bool)>> cases = {
      {Prim::kLogicalAnd, std::logical_and<>()},
      {Prim::kMul, std::logical_and<>()},
      {Prim::kMinimum, std::logical_and<>()},
      {Prim::kLogicalOr, std::logical_or<>()},
      {Prim::kAdd, std::logical_or<>()},
      {Prim::kMaximum, std::logical_or<>()},
      {Prim::kLogicalXor, std::not_equal_to<bool>()},
      {Prim::kBitXor, std::not_equal_to<bool>()},
      {Prim::kEq, std::equal_to<bool>()},
      {Prim::kLt, std::less<bool>()},
      {Prim::kGe, std::greater_equal<bool>()}};
  for (const auto& [prim, want] : cases) {
    TestTensor got = run(prim, DType::kBool, two, DType::kBool);
    for (int i = 0; i < 64; ++i) ASSERT_EQ(got.integer(i), want(x.integer(i), y.integer(i)));
  }
  for (Prim prim : {Prim::kLogicalNot, Prim::kBitNot}) {
    TestTensor got = run(prim, DType::kBool, one, DType::kBool);
    for (int i = 0; i < 64; ++i) ASSERT_EQ(got.integer(i), x.integer(i) == 0);
  }
}

// Values computed with mpmath.
TEST(PointwisePrim, SpecialFunctions) {
  struct Case {
    Prim prim;
    double x, want;
  };
  const Case cases[] = {{Prim::kErfinv, 0.5, 0.4769362762044699},
                        {Prim::kErfinv, -0.5, -0.4769362762044699},
                        {Prim::kErfinv, 0.25, 0.2253120550121781},
                        {Prim::kErfinv, 0.984375, 1.7094723742995115},
                        {Prim::kErfinv, -0.99609375, -2.0404520146056093},
                        {Prim::kErfinv, 0.9999990463256836, 3.465505025803331},
                        {Prim::kErfinv, 0.9999999999999716, 5.377767781541279},
                        {Prim::kErfinv, 9.313225746154785e-10, 8.253631419062224e-10},
                        {Prim::kErfinv, 1e-300, 8.86226925452758e-301},
                        {Prim::kErfinv, 1.0, kInf},
                        {Prim::kErfinv, -1.0, -kInf},
                        {Prim::kErfinv, 1.5, kNan},
                        {Prim::kDigamma, 1.0, -0.5772156649015329},
                        {Prim::kDigamma, 0.5, -1.9635100260214235},
                        {Prim::kDigamma, 2.0, 0.42278433509846713},
                        {Prim::kDigamma, 10.0, 2.251752589066721},
                        {Prim::kDigamma, 100.5, 4.605174352581845},
                        {Prim::kDigamma, 1000000.0, 13.815510057964191},
                        {Prim::kDigamma, -0.5, 0.03648997397857652},
                        {Prim::kDigamma, -1.5, 0.7031566406452432},
                        {Prim::kDigamma, -3.75, -1.6923885983113303},
                        {Prim::kDigamma, 0.0625, -16.478853490060104},
                        {Prim::kDigamma, 1.5, 0.03648997397857652},
                        {Prim::kDigamma, 9.5367431640625e-07, -1048576.5772140962},
                        {Prim::kDigamma, 0.0, -kInf},
                        {Prim::kDigamma, -1.0, kNan},
                        {Prim::kDigamma, kInf, kInf},
                        {Prim::kDigamma, -kInf, kNan}};
  for (const Case& c : cases) {
    for (DType t : {DType::kFloat32, DType::kFloat64}) {
      TestTensor x(t, {1});
      x.set(0, c.x);
      if (x.number(0) != c.x && !std::isnan(c.x)) continue;
      std::vector<TestTensor> in{x};
      double got = run(c.prim, t, in, t).number(0);
      bool close = ulps(got, c.want, t) <= (t == DType::kFloat64 ? 12 : 1);
      close |= std::fabs(got - c.want) < 4e-16;  // near digamma's zeros
      EXPECT_TRUE(close) << expr::prim_name(c.prim) << " of " << c.x << ": " << got;
    }
  }
}

TEST(PointwisePrim, Polygamma) {
  struct Case {
    double n, x, want;
  };
  const Case cases[] = {{0, 0.5, -1.9635100260214235},
                        {0, 1.0, -0.5772156649015329},
                        {0, 2.25, 0.5725464666237345},
                        {0, 20.0, 2.970523992242149},
                        {0, 1000.0, 6.907255195648812},
                        {0, -0.5, 0.03648997397857652},
                        {0, -2.25, 4.158583564657972},
                        {1, 0.5, 4.934802200544679},
                        {1, 1.0, 1.6449340668482264},
                        {1, 2.25, 0.5573291545071107},
                        {1, 20.0, 0.05127082293520312},
                        {1, 1000.0, 0.0010005001666666333},
                        {1, -0.5, 8.934802200544679},
                        {1, -2.25, 19.37941051186914},
                        {2, 0.5, -16.82879664423432},
                        {2, 1.0, -2.4041138063191885},
                        {2, 2.25, -0.30373993753692036},
                        {2, 20.0, -0.0026281224023146548},
                        {2, 1000.0, -1.0010004999998333e-06},
                        {2, -0.5, -0.82879664423432},
                        {2, -2.25, 123.89694977406016},
                        {3, 0.5, 97.40909103400244},
                        {3, 1.0, 6.493939402266829},
                        {3, 2.25, 0.32454400918839604},
                        {3, 20.0, 0.0002693742213396389},
                        {3, 1000.0, 2.003001999999e-09},
                        {3, -0.5, 193.40909103400244},
                        {3, -2.25, 1558.4550231887144},
                        {7, 0.5, 1290440.218185598},
                        {7, 1.0, 5060.54987523764},
                        {7, 2.25, 8.137327047777678},
                        {7, 20.0, 6.674755818176071e-07},
                        {7, 1000.0, 7.2252335999496e-19},
                        {7, -0.5, 2580680.218185598},
                        {7, -2.25, 330352695.3912778},
                        {1, 0.0, kInf},
                        {1, -1.0, kInf},
                        {1, kInf, 0.0}};
  for (const Case& c : cases) {
    TestTensor n(DType::kFloat64, {1}), x(DType::kFloat64, {1});
    n.set(0, c.n);
    x.set(0, c.x);
    std::vector<TestTensor> in{n, x};
    double got = run(Prim::kPolygamma, DType::kFloat64, in, DType::kFloat64).number(0);
    EXPECT_TRUE(got == c.want || std::fabs(got - c.want) <= 1e-12 * std::fabs(c.want))
        << "polygamma " << c.n << " of " << c.x << ": " << got << ", want " << c.want;
  }
}

// The same exponent takes the same way whatever surrounds the power.
TEST(PointwisePrim, PowersByScalar) {
  Builder b;
  expr::Graph graph = b.finish(expr::pow(b.operand(0), b.operand(1)));
  std::mt19937_64 rng(25);
  for (DType t : {DType::kFloat32, DType::kFloat64}) {
    expr::OperandType types[] = {tensor_of(t), scalar_operand()};
    const Program* program = expr::instantiate(graph, t, types, t);
    TestTensor x(t, {100}), y(t, {100});
    x.randomize(rng, 0, 8);
    for (double e : {0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, 4.0, 1.7}) {
      ASSERT_TRUE(launch(program, {x.view()}, {y.view()}, {float_scalar(e)}).ok());
      for (int i = 0; i < 100; ++i) {
        ASSERT_LE(ulps(y.number(i), std::pow(x.number(i), e), t), 2) << x.number(i) << " ** " << e;
      }
    }
  }
}

}  // namespace
}  // namespace gradwire
