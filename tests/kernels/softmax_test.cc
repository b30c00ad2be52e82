#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

// Calls f(base, step) for every row of a tensor along a dimension; numbers count row-major.
template <class F>
void for_rows(const Sizes& sizes, int dim, F&& f) {
  int64_t step = 1, total = 1;
  for (size_t d = dim + 1; d < sizes.size(); ++d) step *= sizes[d];
  for (int64_t n : sizes) total *= n;
  if (total == 0) return;
  int64_t n = sizes.empty() ? 1 : sizes[dim];
  for (int64_t o = 0; o < total / (step * n); ++o) {
    for (int64_t i = 0; i < step; ++i) f(o * n * step + i, step, n);
  }
}

std::vector<double> reference(const Array& x, const Sizes& sizes, int dim, bool log) {
  std::vector<double> y(x.size());
  for_rows(sizes, dim, [&](int64_t base, int64_t step, int64_t n) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i) max = std::max(max, x.get(base + i * step));
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x.get(base + i * step) - max);
    for (int64_t i = 0; i < n; ++i) {
      double d = x.get(base + i * step) - max;
      y[base + i * step] = log ? d - std::log(sum) : std::exp(d) / sum;
    }
  });
  return y;
}

const std::vector<Sizes> kShapes = {{4, 7, 5}, {2, 33}, {1, 1},      {3, 0, 2},
                                    {40, 3},   {5},     {2, 3, 4, 5}};

TEST(Softmax, ForwardAndBackward) {
  for (const Sizes& sizes : kShapes) {
    for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim) {
      for_all([&](DType dtype, Layout in, Layout out) {
        for (bool log : {false, true}) {
          std::string name = log ? "log_softmax" : "softmax";
          Array x(dtype, sizes, in), y(dtype, sizes, out), dx(dtype, sizes, out),
              g(dtype, sizes, in);
          x.random(1, -4, 4);
          g.random(2);
          AttributeList attributes = {dim};
          ASSERT_TRUE(run(name, {&x}, {&y}, attributes).ok());
          expect_near(y, reference(x, sizes, dim, log), tolerance(dtype),
                      name + label(dtype, in, out));
          ASSERT_TRUE(run(name + "_backward", {&g, &y}, {&dx}, attributes).ok());
          std::vector<double> expected(x.size());
          for_rows(sizes, dim, [&](int64_t base, int64_t step, int64_t n) {
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) {
              sum += g.get(base + i * step) * (log ? 1 : y.get(base + i * step));
            }
            for (int64_t i = 0; i < n; ++i) {
              int64_t at = base + i * step;
              expected[at] =
                  log ? g.get(at) - std::exp(y.get(at)) * sum : y.get(at) * (g.get(at) - sum);
            }
          });
          expect_near(dx, expected, tolerance(dtype), name + " gradient");
        }
      });
    }
  }
}

TEST(Softmax, EdgeValues) {
  for (DType dtype : kFloats) {
    for (int64_t n : {3, 8, 50}) {
      Array x(dtype, {3, n}), y(dtype, {3, n}), l(dtype, {3, n});
      x.fill(-INFINITY);
      for (int64_t i = n; i < 2 * n; ++i) x.set(i, 1);
      x.set(n + 1, -INFINITY);
      for (int64_t i = 2 * n; i < 3 * n; ++i) x.set(i, i == 2 * n ? std::nan("") : 0);
      ASSERT_TRUE(run("softmax", {&x}, {&y}, {-1}).ok());
      ASSERT_TRUE(run("log_softmax", {&x}, {&l}, {-1}).ok());
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_TRUE(std::isnan(y.get(i)) && std::isnan(l.get(i)));
        EXPECT_TRUE(std::isnan(y.get(2 * n + i)) && std::isnan(l.get(2 * n + i)));
      }
      EXPECT_EQ(y.get(n + 1), 0);
      EXPECT_EQ(l.get(n + 1), -INFINITY);
    }
  }
}

TEST(Softmax, ZeroDimensionalAndErrors) {
  Array x(DType::kFloat32, {}), y(DType::kFloat32, {});
  x.fill(3);
  ASSERT_TRUE(run("softmax", {&x}, {&y}, {0}).ok());
  EXPECT_EQ(y.get(0), 1);
  absl::Status status = run("softmax", {&x}, {&y}, {2});
  EXPECT_EQ(error_kind(status), ErrorKind::kIndex);
  EXPECT_EQ(status.message(), "[softmax] dim 2 is out of range for rank 0");
  Array i(DType::kInt64, {2}), j(DType::kInt64, {2});
  EXPECT_EQ(error_kind(run("softmax", {&i}, {&j}, {0})), ErrorKind::kNotImplemented);
}

}  // namespace
}  // namespace gradwire::cpu::testing
