#include <algorithm>
#include <set>

#include "kernels/cpu/philox.h"
#include "kernels/random_counters.h"
#include "tests/kernels/strided_tensor.h"

namespace gradwire::cpu {
namespace {

TEST(Random, PhiloxMatchesItsReferenceVector) {
  const auto w = philox(0, 0);
  EXPECT_EQ(w, (std::array<uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  for (uint64_t counter : {uint64_t{5}, uint64_t{0xfffffffb}}) {
    std::vector<uint32_t> words(4 * 77);
    philox_fill(0x123456789abcdef, counter, 77, words.data());
    for (uint64_t i = 0; i < 77; ++i) {
      const auto one = philox(0x123456789abcdef, counter + i);
      ASSERT_TRUE(std::equal(one.begin(), one.end(), words.begin() + 4 * i)) << i;
    }
  }
}

struct Case {
  const char* name;
  double a, b, mean, var;
};
const Case kCases[] = {{"uniform", -1, 3, 1, 16 / 12.0},
                       {"normal", 2, 3, 2, 9},
                       {"exponential", 2, 0, 0.5, 0.25},
                       {"randint", 0, 10, 4.5, 8.25},
                       {"bernoulli", 0.3, 0, 0.3, 0.21}};

TEST(Random, MomentsThreadsAndPlaces) {
  for (const Case& c : kCases) {
    for (DType dtype : kFloats) {
      SCOPED_TRACE(std::string(c.name) + " " + trace(dtype, Layout::kDense));
      const bool whole = std::string(c.name) == "randint";
      auto run = [&](const Tensor& out, uint64_t offset, int threads) {
        Launch l;
        l.out(out).stream(42, offset);
        if (whole) {
          l.attr(static_cast<int64_t>(c.a)).attr(static_cast<int64_t>(c.b));
        } else {
          l.attr(c.a).attr(c.b);
        }
        return l.run(c.name, threads);
      };
      const int64_t n = 200000;
      Tensor x(dtype, {n}), y(dtype, {n}), strided(dtype, {400, 500}, Layout::kReversed),
          part(dtype, {n - 4000});
      ASSERT_TRUE(run(x, 100, 1).ok() && run(y, 100, 2).ok() && run(strided, 100, 2).ok());
      const bool wide = whole || (dtype == DType::kFloat64 && c.name[0] != 'b');
      ASSERT_TRUE(run(part, 100 + (wide ? 2000 : 1000), 1).ok());
      const auto v = x.values();
      ASSERT_EQ(v, y.values());
      ASSERT_EQ(v, strided.values());
      ASSERT_TRUE(std::equal(v.begin() + 4000, v.end(), part.values().begin()));
      double mean = 0, var = 0;
      for (double e : v) mean += e / n;
      for (double e : v) var += (e - mean) * (e - mean) / n;
      EXPECT_NEAR(mean, c.mean, 0.03 * std::sqrt(c.var) + 0.003);
      EXPECT_NEAR(var, c.var, 0.03 * c.var);
      if (std::string(c.name) == "uniform") {
        EXPECT_LT(*std::max_element(v.begin(), v.end()), 3);
        EXPECT_GE(*std::min_element(v.begin(), v.end()), -1);
      }
    }
  }
}

TEST(Random, NormalHasTheNormalDistribution) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    Tensor x(dtype, {100003});
    ASSERT_TRUE(Launch().out(x).attr(0.0).attr(1.0).stream(1, 0).run("normal").ok());
    auto v = x.values();
    std::sort(v.begin(), v.end());
    double distance = 0;  // Kolmogorov and Smirnov
    for (size_t i = 0; i < v.size(); ++i) {
      const double p = 0.5 * std::erfc(-v[i] / std::sqrt(2.0));
      distance = std::max(distance, std::abs(p - (i + 0.5) / v.size()));
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(v.size()));
  }
}

TEST(Random, Dropout) {
  for (DType dtype : kFloats) {
    for (double p : {0.0, 0.25, 1.0}) {
      for (Layout layout : kOutLayouts) {
        SCOPED_TRACE(trace(dtype, layout));
        Tensor x(dtype, {101, 103}, layout), y(dtype, {101, 103}, layout),
            mask(DType::kBool, {101, 103}, layout), dense(dtype, {101, 103}),
            dense_mask(DType::kBool, {101, 103}), dense_x(dtype, {101, 103});
        x.pattern();
        dense_x.pattern();
        ASSERT_TRUE(Launch().in(x).out(y).out(mask).attr(p).stream(3, 9).run("dropout", 2).ok());
        ASSERT_TRUE(Launch()
                        .in(dense_x)
                        .out(dense)
                        .out(dense_mask)
                        .attr(p)
                        .stream(3, 9)
                        .run("dropout")
                        .ok());
        EXPECT_EQ(y.values(), dense.values());
        EXPECT_EQ(mask.values(), dense_mask.values());
        double kept = 0;
        for (int64_t i = 0; i < x.numel(); ++i) {
          kept += mask.get(i);
          const double want = mask.get(i) != 0 ? x.get(i) / (1 - p) : 0;
          ASSERT_NEAR(y.get(i), want, 0.01 * std::abs(want));
        }
        EXPECT_NEAR(kept / x.numel(), 1 - p, 0.02);
      }
    }
  }
}

TEST(Random, Permutation) {
  for (int64_t n : {0, 1, 5000}) {
    Tensor x(DType::kInt64, {n}, Layout::kGapped), y(DType::kInt64, {n});
    ASSERT_TRUE(Launch().out(x).stream(8, 1).run("randperm", 1).ok());
    ASSERT_TRUE(Launch().out(y).stream(8, 1).run("randperm", 2).ok());
    auto v = x.values();
    EXPECT_EQ(v, y.values());
    std::sort(v.begin(), v.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(v[i], i);
  }
}

TEST(Random, Multinomial) {
  for (bool replacement : {true, false}) {
    Tensor p(DType::kFloat32, {3000, 4}, Layout::kReversed), out(DType::kInt64, {3000, 2}),
        two(DType::kInt64, {3000, 2}, Layout::kReversed);
    for (int64_t i = 0; i < p.numel(); ++i) p.set(i, i % 4);
    auto run = [&](const Tensor& to, int threads) {
      return Launch()
          .in(p)
          .out(to)
          .attr(2)
          .attr(replacement)
          .stream(5, 5)
          .run("multinomial", threads);
    };
    ASSERT_TRUE(run(out, 1).ok() && run(two, 2).ok());
    EXPECT_EQ(out.values(), two.values());
    double first[4] = {};
    for (int64_t i = 0; i < 3000; ++i) {
      ++first[static_cast<int>(out.get(2 * i))];
      ASSERT_TRUE(replacement || out.get(2 * i) != out.get(2 * i + 1));
    }
    EXPECT_EQ(first[0], 0);
    for (int k = 1; k < 4; ++k) EXPECT_NEAR(first[k] / 3000, k / 6.0, 0.04);
  }
  auto refused = [](std::vector<double> probabilities, int64_t n) {
    Tensor p(DType::kFloat64, {2}), out(DType::kInt64, {n});
    p.fill(probabilities);
    return error_kind(Launch().in(p).out(out).attr(n).attr(false).run("multinomial"));
  };
  EXPECT_EQ(refused({-1, 1}, 1), ErrorKind::kRuntime);
  EXPECT_EQ(refused({NAN, 1}, 1), ErrorKind::kRuntime);
  EXPECT_EQ(refused({INFINITY, 1}, 1), ErrorKind::kRuntime);
  EXPECT_EQ(refused({0, 0}, 1), ErrorKind::kRuntime);
  EXPECT_EQ(refused({0, 1}, 2), ErrorKind::kRuntime);
  EXPECT_EQ(refused({1, 1}, 3), ErrorKind::kRuntime);
  EXPECT_EQ(refused({1, 1}, 2), ErrorKind::kNone);
}

TEST(Random, RefusesBadParameters) {
  Tensor x(DType::kFloat32, {4}), p(DType::kFloat32, {4}), mask(DType::kBool, {4});
  EXPECT_FALSE(Launch().out(x).attr(2.0).attr(1.0).run("uniform").ok());
  EXPECT_FALSE(Launch().out(x).attr(0.0).attr(-1.0).run("normal").ok());
  EXPECT_FALSE(Launch().out(x).attr(0.0).run("exponential").ok());
  EXPECT_FALSE(Launch().out(x).attr(5).attr(5).run("randint").ok());
  EXPECT_FALSE(Launch().out(x).attr(1.5).run("bernoulli").ok());
  EXPECT_FALSE(Launch().in(x).out(p).out(mask).attr(-0.5).run("dropout").ok());
  p.fill({0, 1, 0.5, 2});
  EXPECT_FALSE(Launch().in(p).out(x).run("bernoulli_tensor").ok());
  p.fill({0, 1, 0, 1});
  EXPECT_TRUE(Launch().in(p).out(x).run("bernoulli_tensor").ok());
  EXPECT_EQ(x.values(), p.values());
}

TEST(Random, Counters) {
  static_assert(philox_counters("dropout", 9) == 3);
  static_assert(philox_counters("normal", 9) == 5);
  static_assert(philox_counters("sum", 9) == 0);
}

}  // namespace
}  // namespace gradwire::cpu
