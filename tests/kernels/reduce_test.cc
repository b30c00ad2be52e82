#include <functional>
#include <limits>
#include <random>

#include "tests/kernels/strided_tensor.h"

namespace gradwire::cpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Values = std::vector<double>;

// The elements folded into each element of the keepdim result, in row-major order.
std::vector<Values> groups(const Tensor& x, const IntList& dims, const Tensor& out) {
  std::vector<Values> result(out.numel());
  for (int64_t i = 0; i < x.numel(); ++i) {
    auto index = unravel(x.view, i);
    for (int64_t d : dims) index[d] = 0;
    result[ravel(out.view, index)].push_back(x.get(i));
  }
  return result;
}

std::vector<int64_t> kept_sizes(const std::vector<int64_t>& sizes, const IntList& dims) {
  auto kept = sizes;
  for (int64_t d : dims) kept[d] = 1;
  return kept;
}

const std::vector<int64_t> kSizes = {3, 5, 19};
const IntList kDims[] = {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};

void check(const char* name, std::vector<DType> dtypes, DType result,
           const std::function<double(const Values&)>& reference, double tolerance,
           std::vector<Attribute> more = {}) {
  for (DType dtype : dtypes) {
    for (Layout layout : kInLayouts) {
      for (const IntList& dims : kDims) {
        SCOPED_TRACE(std::string(name) + " " + trace(dtype, layout));
        Tensor x(dtype, kSizes, layout);
        x.pattern();
        Tensor out(result == DType::kNone ? dtype : result, kept_sizes(kSizes, dims),
                   layout == Layout::kBroadcast ? Layout::kDense : layout);
        Launch launch;
        launch.in(x).out(out).attr(dims);
        for (const Attribute& a : more) launch.attr(a);
        ASSERT_TRUE(launch.run(name).ok());
        const auto expected = groups(x, dims, out);
        for (int64_t i = 0; i < out.numel(); ++i) {
          const double want = reference(expected[i]);
          if (!same(out.get(i), want)) {
            ASSERT_NEAR(out.get(i), want, tolerance * (1 + std::abs(want))) << i;
          }
        }
      }
    }
  }
}

const std::vector<DType> kEvery(std::begin(kAllDTypes), std::end(kAllDTypes));
const std::vector<DType> kFloating(std::begin(kFloats), std::end(kFloats));
const std::vector<DType> kWhole = {DType::kInt64, DType::kInt32, DType::kInt16,
                                   DType::kInt8,  DType::kUInt8, DType::kBool};

double total(const Values& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}

TEST(Reduce, Sum) {
  check("sum", kFloating, DType::kNone, total, 1e-2);
  check("sum", kWhole, DType::kInt64, total, 0);
  check("sum", kEvery, DType::kFloat64, total, 0);
}

TEST(Reduce, Mean) {
  check(
      "mean", kFloating, DType::kNone, [](const Values& v) { return total(v) / v.size(); }, 1e-2);
}

TEST(Reduce, Prod) {
  auto product = [](const Values& v) {
    double p = 1;
    for (double x : v) p *= x;
    return p;
  };
  check("prod", kFloating, DType::kFloat64, product, 1e-12);
}

TEST(Reduce, Extremes) {
  check(
      "amax", kEvery, DType::kNone,
      [](const Values& v) { return *std::max_element(v.begin(), v.end()); }, 0);
  check(
      "amin", kEvery, DType::kNone,
      [](const Values& v) { return *std::min_element(v.begin(), v.end()); }, 0);
}

TEST(Reduce, Logic) {
  auto any = [](const Values& v) {
    return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
  };
  auto all = [](const Values& v) {
    return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; });
  };
  check("any", kEvery, DType::kBool, any, 0);
  check("all", kEvery, DType::kBool, all, 0);
  check("all", {DType::kUInt8}, DType::kUInt8, all, 0);
}

TEST(Reduce, CountNonzero) {
  for (DType dtype : kAllDTypes) {
    Tensor x(dtype, {7, 33}, Layout::kReversed), out(DType::kInt64, {});
    x.pattern();
    ASSERT_TRUE(Launch().in(x).out(out).run("count_nonzero").ok());
    double count = 0;
    for (double v : x.values()) count += v != 0;
    EXPECT_EQ(out.get(0), count);
  }
}

TEST(Reduce, Var) {
  auto var = [](const Values& v) {
    double mean = total(v) / v.size(), s = 0;
    for (double x : v) s += (x - mean) * (x - mean);
    return s / (v.size() - 1.0);
  };
  check("var", kFloating, DType::kNone, var, 1e-2, {1.0});
  Tensor one(DType::kFloat32, {1}), out(DType::kFloat32, {1});
  one.set(0, 3);
  ASSERT_TRUE(Launch().in(one).out(out).attr(IntList{0}).attr(1).run("var").ok());
  EXPECT_TRUE(std::isnan(out.get(0)));
  // Far from zero, where sums of squares would cancel.
  Tensor x(DType::kFloat64, {100000});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, 1e9 + (i & 1));
  Tensor y(DType::kFloat64, {1});
  ASSERT_TRUE(Launch().in(x).out(y).attr(IntList{0}).attr(0).run("var").ok());
  EXPECT_NEAR(y.get(0), 0.25, 1e-9);
}

TEST(Reduce, LogSumExp) {
  check(
      "logsumexp", kFloating, DType::kNone,
      [](const Values& v) {
        double s = 0;
        for (double x : v) s += std::exp(x);
        return std::log(s);
      },
      1e-2);
  const std::pair<Values, double> cases[] = {{{-kInf, -kInf}, -kInf},
                                             {{kInf, 1}, kInf},
                                             {{kInf, -kInf}, kInf},
                                             {{kNan, 1}, kNan},
                                             {{1000, 1000}, 1000 + std::log(2.0)}};
  for (const auto& [values, want] : cases) {
    Tensor x(DType::kFloat64, {2}), out(DType::kFloat64, {1});
    x.fill(values);
    ASSERT_TRUE(Launch().in(x).out(out).attr(IntList{0}).run("logsumexp").ok());
    EXPECT_TRUE(same(out.get(0), want)) << out.get(0) << " for " << want;
  }
}

TEST(Reduce, ArgAndValues) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kInLayouts) {
      for (int dim = 0; dim < 3; ++dim) {
        for (bool max : {true, false}) {
          SCOPED_TRACE(trace(dtype, layout));
          Tensor x(dtype, {4, 6, 1030}, layout);
          x.pattern(dim + 1);
          if (is_floating(dtype)) x.set(2000, kNan);
          const auto sizes = kept_sizes({4, 6, 1030}, {dim});
          Tensor values(dtype, sizes, Layout::kReversed), indices(DType::kInt64, sizes);
          Tensor arg(DType::kInt64, sizes, Layout::kGapped);
          const int64_t d = dim;
          ASSERT_TRUE(Launch()
                          .in(x)
                          .out(values)
                          .out(indices)
                          .attr(d)
                          .run(max ? "max_dim" : "min_dim")
                          .ok());
          ASSERT_TRUE(Launch().in(x).out(arg).attr(d).run(max ? "argmax" : "argmin").ok());
          const auto expected = groups(x, {dim}, indices);
          for (int64_t i = 0; i < indices.numel(); ++i) {
            const Values& v = expected[i];
            size_t best = 0;
            for (size_t j = 1; j < v.size(); ++j) {
              if (std::isnan(v[best])) break;
              if (std::isnan(v[j]) || (max ? v[j] > v[best] : v[j] < v[best])) best = j;
            }
            ASSERT_EQ(indices.get(i), static_cast<double>(best)) << i;
            ASSERT_EQ(arg.get(i), static_cast<double>(best)) << i;
            ASSERT_TRUE(same(values.get(i), v[best]));
          }
        }
      }
    }
  }
}

TEST(Reduce, NanWins) {
  for (const char* name : {"amax", "amin"}) {
    Tensor x(DType::kFloat32, {4, 40}), out(DType::kFloat32, {4, 1}),
        down(DType::kFloat32, {1, 40});
    x.pattern();
    x.set(45, kNan);
    ASSERT_TRUE(Launch().in(x).out(out).attr(IntList{1}).run(name).ok());
    EXPECT_TRUE(std::isnan(out.get(1)));
    EXPECT_FALSE(std::isnan(out.get(0)));
    ASSERT_TRUE(Launch().in(x).out(down).attr(IntList{0}).run(name).ok());
    EXPECT_TRUE(std::isnan(down.get(5)));
    EXPECT_FALSE(std::isnan(down.get(4)));
  }
}

TEST(Reduce, LongSumsAreExactAndDoNotDependOnThreads) {
  const std::vector<int64_t> shapes[] = {{1 << 20}, {1 << 18, 4}, {4, 1 << 18}, {64, 128, 64}};
  for (const auto& sizes : shapes) {
    for (const IntList& dims :
         {IntList{0}, IntList{static_cast<int64_t>(sizes.size()) - 1}, IntList{}}) {
      Tensor x(DType::kFloat32, sizes);
      std::mt19937 random(7);
      for (int64_t i = 0; i < x.numel(); ++i) x.view.as<float>()[i] = random() * 0x1p-32f - 0.3f;
      IntList all = dims;
      if (all.empty()) {
        for (size_t d = 0; d < sizes.size(); ++d) all.push_back(static_cast<int64_t>(d));
      }
      for (const char* name : {"sum", "var", "prod", "amax", "logsumexp"}) {
        Tensor one(DType::kFloat32, kept_sizes(sizes, all)),
            two(DType::kFloat32, kept_sizes(sizes, all));
        ASSERT_TRUE(Launch().in(x).out(one).attr(dims).attr(1).run(name, 1).ok());
        ASSERT_TRUE(Launch().in(x).out(two).attr(dims).attr(1).run(name, 2).ok());
        ASSERT_EQ(0, std::memcmp(one.view.data, two.view.data, 4 * one.numel())) << name;
        if (std::string(name) != "sum") continue;
        std::vector<double> want(one.numel());
        for (int64_t i = 0; i < x.numel(); ++i) {
          auto index = unravel(x.view, i);
          for (int64_t d : all) index[d] = 0;
          want[ravel(one.view, index)] += x.view.as<float>()[i];
        }
        for (int64_t i = 0; i < one.numel(); ++i) {
          ASSERT_NEAR(one.get(i), want[i], 1e-7 * std::abs(want[i]) + 1e-9);
        }
      }
    }
  }
}

TEST(Reduce, ConvertsBeforeAdding) {
  Tensor x(DType::kFloat32, {2});
  Tensor ints(DType::kInt64, {1}), half(DType::kFloat16, {1}), boolean(DType::kBool, {1});
  x.fill({1.6, 1.6});
  ASSERT_TRUE(Launch().in(x).out(ints).attr(IntList{0}).run("sum").ok());
  EXPECT_EQ(ints.get(0), 2);
  x.fill({1e5, -1e5});
  ASSERT_TRUE(Launch().in(x).out(half).attr(IntList{0}).run("sum").ok());
  EXPECT_TRUE(std::isnan(half.get(0)));
  ASSERT_TRUE(Launch().in(x).out(boolean).attr(IntList{0}).run("sum").ok());
  EXPECT_EQ(boolean.get(0), 1);
}

TEST(Reduce, NothingToReduce) {
  Tensor x(DType::kFloat32, {0, 3}), out(DType::kFloat32, {1, 3}), none(DType::kFloat32, {0, 1});
  auto run = [&](const char* name, const Tensor& to, int64_t dim) {
    return Launch().in(x).out(to).attr(IntList{dim}).attr(1).run(name);
  };
  ASSERT_TRUE(run("sum", out, 0).ok());
  EXPECT_EQ(out.get(2), 0);
  ASSERT_TRUE(run("prod", out, 0).ok());
  EXPECT_EQ(out.get(2), 1);
  ASSERT_TRUE(run("mean", out, 0).ok());
  EXPECT_TRUE(std::isnan(out.get(0)));
  ASSERT_TRUE(run("var", out, 0).ok());
  EXPECT_TRUE(std::isnan(out.get(0)));
  ASSERT_TRUE(run("logsumexp", out, 0).ok());
  EXPECT_EQ(out.get(0), -kInf);
  EXPECT_TRUE(run("amax", none, 1).ok());
  EXPECT_EQ(error_kind(run("amax", out, 0)), ErrorKind::kIndex);
  EXPECT_EQ(error_kind(Launch().in(x).out(out).run("amin")), ErrorKind::kRuntime);
  Tensor index(DType::kInt64, {1, 3});
  EXPECT_EQ(error_kind(Launch().in(x).out(index).attr(int64_t{0}).run("argmax")),
            ErrorKind::kIndex);
  Tensor scalar(DType::kFloat32, {}), result(DType::kFloat32, {});
  scalar.set(0, 5);
  ASSERT_TRUE(Launch().in(scalar).out(result).run("sum").ok());
  EXPECT_EQ(result.get(0), 5);
}

}  // namespace
}  // namespace gradwire::cpu
