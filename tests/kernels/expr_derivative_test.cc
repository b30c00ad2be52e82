// Derivatives against central finite differences, twice, and torch's values where there is none.
#include <cmath>
#include <functional>
#include <random>

#include "tests/kernels/pointwise_fixture.h"

namespace gradwire::expr {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

double evaluate(const Graph& graph, const std::vector<double>& operands) {
  std::vector<OperandType> types(graph.operands, tensor_of(DType::kFloat64));
  const Program* program = instantiate(graph, DType::kFloat64, types, DType::kFloat64);
  std::vector<TestTensor> tensors;
  std::vector<TensorView> views;
  for (int i = 0; i < graph.operands; ++i) {
    tensors.emplace_back(DType::kFloat64, std::vector<int64_t>{});
    tensors.back().set(0, operands[i]);
  }
  for (TestTensor& t : tensors) views.push_back(t.view());
  TestTensor out(DType::kFloat64, {});
  absl::Status status = launch(program, views, {out.view()});
  EXPECT_TRUE(status.ok()) << status;
  return out.number(0);
}

// df/dx[wrt] with y = f(x) and cotangent g.
double gradient(const Graph& f, int wrt, std::vector<double> x, double g = 1) {
  x.push_back(evaluate(f, x));
  x.push_back(g);
  return evaluate(derivative(f, wrt), x);
}

double difference(const std::function<double(double)>& f, double x) {
  double h = 1e-5 * std::max(1.0, std::fabs(x));
  return (8 * (f(x + h / 2) - f(x - h / 2)) - (f(x + h) - f(x - h))) / (6 * h);
}

Graph unary(E (*f)(E)) {
  Builder b;
  return b.finish(f(b.operand(0)));
}
Graph binary(E (*f)(E, E)) {
  Builder b;
  return b.finish(f(b.operand(0), b.operand(1)));
}

// First and second derivatives by every operand, at random points of the box.
void check(const Graph& f, double least, double most, bool second = true) {
  std::mt19937_64 rng(31);
  std::uniform_real_distribution<double> at(least, most);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> x;
    for (int i = 0; i < f.operands; ++i) x.push_back(at(rng));
    for (int wrt = 0; wrt < f.operands; ++wrt) {
      auto along = [&](const std::function<double(std::vector<double>)>& function) {
        return difference(
            [&](double v) {
              std::vector<double> moved = x;
              moved[wrt] = v;
              return function(moved);
            },
            x[wrt]);
      };
      double want = along([&](std::vector<double> p) { return evaluate(f, p); });
      double got = gradient(f, wrt, x, 1);
      ASSERT_NEAR(got, want, 1e-7 * std::max(1.0, std::fabs(want)))
          << to_string(f) << "by " << wrt << " at " << x[0];
      ASSERT_NEAR(gradient(f, wrt, x, -3), -3 * got, 1e-12 * std::max(1.0, std::fabs(got)));
      if (!second) continue;
      // f' reads x, y and g, and y depends on x.
      Graph slope = derivative(f, wrt);
      std::vector<double> operands = x;
      operands.push_back(evaluate(f, x));
      operands.push_back(1);
      double direct = gradient(slope, wrt, operands);
      double through_y = gradient(slope, f.operands, operands) * got;
      double want2 = along([&](std::vector<double> p) { return gradient(f, wrt, p); });
      ASSERT_NEAR(direct + through_y, want2, 1e-6 * std::max(1.0, std::fabs(want2)))
          << to_string(slope) << "at " << x[0];
    }
  }
}

TEST(ExprDerivative, Unary) {
  struct Case {
    E (*f)(E);
    double least, most;
  };
  const Case cases[] = {
      {exp, -2, 2},      {exp2, -2, 2},     {expm1, -2, 2},     {log, 0.2, 3},
      {log2, 0.2, 3},    {log10, 0.2, 3},   {log1p, -0.5, 3},   {sin, -3, 3},
      {cos, -3, 3},      {tan, -1, 1},      {asin, -0.8, 0.8},  {acos, -0.8, 0.8},
      {atan, -3, 3},     {sinh, -2, 2},     {cosh, -2, 2},      {tanh, -2, 2},
      {asinh, -2, 2},    {acosh, 1.5, 4},   {atanh, -0.8, 0.8}, {erf, -2, 2},
      {erfc, -2, 2},     {erfinv, -.8, .8}, {lgamma, 0.5, 6},   {lgamma, -0.9, -0.2},
      {digamma, 0.5, 6}, {sigmoid, -4, 4},  {abs, 0.1, 3},      {abs, -3, -0.1},
      {square, -3, 3},   {sqrt, 0.3, 4},    {rsqrt, 0.3, 4},    {reciprocal, 0.4, 3},
      {floor, 0.1, 0.9}, {ceil, 0.1, 0.9},  {trunc, 0.1, 0.9},  {round, 0.6, 1.4},
      {sign, 0.1, 1},    {operator-, -1, 1}};
  for (const Case& c : cases) {
    check(unary(c.f), c.least, c.most);
    if (HasFatalFailure()) return;
  }
}

TEST(ExprDerivative, Binary) {
  check(binary(operator+), -2, 2);
  check(binary(operator-), -2, 2);
  check(binary(operator*), -2, 2);
  check(binary(operator/), 0.5, 2);
  check(binary(pow), 0.5, 2);
  check(binary(atan2), 0.3, 2);
  check(binary(minimum), -2, 2);
  check(binary(maximum), -2, 2);
  check(binary(fmin), -2, 2);
  check(binary(fmax), -2, 2);
  Builder b;
  check(b.finish(remainder(b.operand(0) * 10.0 + 0.01, 3.0 + b.operand(1) * 0.0)), 0.1, 0.25);
  Builder c;
  check(c.finish(fmod(7.3 + c.operand(0) * 0.1, 2.0 + c.operand(1) * 0.1)), 0.1, 0.25);
}

TEST(ExprDerivative, Compositions) {
  auto with = [](const std::function<E(E, E, E)>& f) {
    Builder b;
    Graph graph = b.finish(f(b.operand(0), b.operand(1), b.operand(2)));
    graph.operands = 3;
    return graph;
  };
  check(with([](E x, E, E) { return x * sigmoid(x); }), -3, 3);
  check(with([](E x, E, E) { return x * 0.5 * (1.0 + erf(x * M_SQRT1_2)); }), -3, 3);
  check(with([](E x, E, E) {
          return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        }),
        -3, 3);
  check(with([](E x, E y, E z) { return fma(x, y, z) / (1.0 + square(y)); }), -2, 2);
  check(with([](E x, E y, E z) { return select(x < y, sin(x) * z, exp(y) - z); }), -2, 2);
  check(with([](E x, E y, E) { return maximum(x, 0.0 * x) + log1p(exp(-abs(x))) - x * y; }), 0.1,
        2);
  check(with([](E x, E y, E z) { return sqrt(square(x) + square(y) + square(z)); }), 0.2, 2);
  check(with([](E x, E y, E) { return pow(x, y) * pow(x, x.builder->constant(3)); }), 0.5, 1.5);
  check(with([](E x, E y, E) { return polygamma(x.builder->constant(2), x) * y; }), 0.7, 3, false);
  check(with([](E x, E, E) { return exp(exp(x)) + tanh(tanh(x)); }), -1, 1);
}

TEST(ExprDerivative, Kinks) {
  EXPECT_EQ(gradient(unary(abs), 0, {0}), 0);
  EXPECT_EQ(gradient(unary(sqrt), 0, {0}), kInf);
  EXPECT_EQ(gradient(unary(sign), 0, {0}), 0);
  for (auto f : {minimum, maximum, fmin, fmax}) {
    EXPECT_EQ(gradient(binary(f), 0, {2, 2}), 0.5);
    EXPECT_EQ(gradient(binary(f), 1, {2, 2}), 0.5);
  }
  EXPECT_EQ(gradient(binary(maximum), 0, {1, 2}), 0);
  EXPECT_EQ(gradient(binary(maximum), 1, {1, 2}), 1);
  EXPECT_EQ(gradient(binary(fmax), 0, {1, kNan}), 1);
  EXPECT_EQ(gradient(binary(pow), 0, {0, 0}), 0);
  EXPECT_EQ(gradient(binary(pow), 0, {0, 2}), 0);
  EXPECT_EQ(gradient(binary(pow), 1, {0, 0}), 0);
  EXPECT_EQ(gradient(binary(pow), 1, {0, 2}), 0);
  EXPECT_EQ(gradient(binary(pow), 1, {0, -1}), -kInf);
  EXPECT_EQ(gradient(binary(atan2), 0, {0, 0}), 0);
  EXPECT_EQ(gradient(binary(atan2), 1, {0, 0}), 0);
  Builder b;
  E x = b.operand(0);
  Graph masked = b.finish(select(x > 0.0, log(x), 0.0));
  EXPECT_TRUE(std::isnan(gradient(masked, 0, {0})));  // where(x > 0, log x, 0), as torch
}

}  // namespace
}  // namespace gradwire::expr
