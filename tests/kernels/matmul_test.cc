#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

struct Sizes3 {
  int64_t b, m, k, n;
};
const std::vector<Sizes3> kShapes = {{1, 1, 1, 1},    {3, 5, 7, 4},   {2, 1, 19, 33}, {2, 17, 5, 1},
                                     {4, 16, 16, 16}, {1, 70, 33, 9}, {2, 3, 0, 4},   {0, 3, 2, 4},
                                     {2, 0, 3, 4},    {40, 2, 3, 2}};

std::vector<double> product(const Array& a, const Array& b, const Sizes3& s) {
  std::vector<double> out;
  for (int64_t q = 0; q < s.b; ++q) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          sum += a.get((q * s.m + i) * s.k + k) * b.get((q * s.k + k) * s.n + j);
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

TEST(Matmul, BmmOverShapesLayoutsDtypes) {
  for (const Sizes3& s : kShapes) {
    for_all([&](DType dtype, Layout in, Layout out) {
      for (Layout other : {Layout::kPlain, Layout::kBroadcast, Layout::kReversed}) {
        Array a(dtype, {s.b, s.m, s.k}, in), b(dtype, {s.b, s.k, s.n}, other);
        Array c(dtype, {s.b, s.m, s.n}, out);
        a.random(1);
        b.random(2);
        ASSERT_TRUE(run("bmm", {&a, &b}, {&c}).ok());
        expect_near(c, product(a, b, s), tolerance(dtype), "bmm " + label(dtype, in, out));
      }
    });
  }
}

TEST(Matmul, BigBlocks) {
  for (DType dtype : kFloats) {
    for (Sizes3 s : {Sizes3{1, 300, 200, 130}, Sizes3{1, 90, 150, 400}, Sizes3{1, 1, 700, 900},
                     Sizes3{2, 200, 100, 200}}) {
      Array a(dtype, {s.b, s.m, s.k}), b(dtype, {s.b, s.k, s.n}, Layout::kReversed);
      Array c(dtype, {s.b, s.m, s.n});
      a.random(1);
      b.random(2);
      ASSERT_TRUE(run("bmm", {&a, &b}, {&c}).ok());
      expect_near(c, product(a, b, s), tolerance(dtype), "big bmm");
    }
  }
}

TEST(Matmul, IntegersWrap) {
  for (DType dtype : {DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8}) {
    for (Layout layout : kInputLayouts) {
      Array a(dtype, {2, 5, 6}, layout), b(dtype, {2, 6, 7}, Layout::kReversed),
          c(dtype, {2, 5, 7});
      a.random_integers(1, 0, 7);
      b.random_integers(2, 0, 2);
      ASSERT_TRUE(run("bmm", {&a, &b}, {&c}).ok());
      expect_near(c, product(a, b, {2, 5, 6, 7}), 0, "integers");
    }
  }
  Array a(DType::kInt8, {1, 1, 2}), b(DType::kInt8, {1, 2, 1}), c(DType::kInt8, {1, 1, 1});
  a.fill(100);
  b.fill(3);
  ASSERT_TRUE(run("bmm", {&a, &b}, {&c}).ok());
  EXPECT_EQ(c.get(0), static_cast<int8_t>(600));
  Array flags(DType::kBool, {1, 2, 2}), to(DType::kBool, {1, 2, 2});
  EXPECT_EQ(error_kind(run("bmm", {&flags, &flags}, {&to})), ErrorKind::kNotImplemented);
}

TEST(Matmul, AddmmBroadcastsAndScales) {
  for_all([&](DType dtype, Layout in, Layout out) {
    for (const Sizes& shape : {Sizes{4}, Sizes{6, 4}, Sizes{1, 4}, Sizes{6, 1}, Sizes{}}) {
      Array addend(dtype, shape, in == Layout::kBroadcast ? Layout::kPlain : in);
      Array a(dtype, {6, 5}, in), b(dtype, {5, 4}, Layout::kReversed), c(dtype, {6, 4}, out);
      addend.random(1);
      a.random(2);
      b.random(3);
      ASSERT_TRUE(run("addmm", {&addend, &a, &b}, {&c}, {0.5, 2.0}).ok());
      auto expected = product(a, b, {1, 6, 5, 4});
      for (int64_t i = 0; i < 24; ++i) {
        int64_t row = shape.size() == 2 && shape[0] == 6 ? i / 4 : 0;
        int64_t width = shape.empty() ? 1 : shape.back();
        expected[i] = 2 * expected[i] + 0.5 * addend.get(row * width + (width == 4 ? i % 4 : 0));
      }
      expect_near(c, expected, tolerance(dtype), "addmm " + label(dtype, in, out));
      addend.fill(std::nan(""));
      ASSERT_TRUE(run("addmm", {&addend, &a, &b}, {&c}, {0.0, 1.0}).ok());
      expect_near(c, product(a, b, {1, 6, 5, 4}), tolerance(dtype), "addmm, beta 0");
    }
  });
}

TEST(Matmul, Linear) {
  for_all([&](DType dtype, Layout in, Layout out) {
    for (bool with_bias : {false, true}) {
      for (int64_t m : {0, 1, 9}) {
        for (int64_t k : {0, 5}) {
          Array x(dtype, {m, k}, in), w(dtype, {3, k}, in), bias(dtype, {3}), y(dtype, {m, 3}, out);
          x.random(1);
          w.random(2);
          bias.random(3);
          ASSERT_TRUE(run("linear", {&x, &w, with_bias ? &bias : nullptr}, {&y}).ok());
          std::vector<double> expected;
          for (int64_t i = 0; i < m * 3; ++i) {
            double sum = with_bias ? bias.get(i % 3) : 0;
            for (int64_t q = 0; q < k; ++q) sum += x.get(i / 3 * k + q) * w.get(i % 3 * k + q);
            expected.push_back(sum);
          }
          expect_near(y, expected, tolerance(dtype), "linear " + label(dtype, in, out));
        }
      }
    }
  });
}

}  // namespace
}  // namespace gradwire::cpu::testing
