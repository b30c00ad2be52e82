#include <limits>
#include <map>

#include "tests/kernels/strided_tensor.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kZero = 0, kTwo = 2;

TEST(Index, SelectGatherAndEmbedding) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kInLayouts) {
      for (int dim = 0; dim < 3; ++dim) {
        SCOPED_TRACE(trace(dtype, layout));
        Tensor x(dtype, {3, 4, 5}, layout);
        x.pattern();
        const int64_t d = dim;
        Tensor index(DType::kInt64, {4}, Layout::kGapped);
        index.fill({2, 0, 1, 2});
        std::vector<int64_t> sizes = {3, 4, 5};
        sizes[dim] = 4;
        Tensor out(dtype, sizes, Layout::kReversed);
        ASSERT_TRUE(Launch().in(x).in(index).out(out).attr(d).run("index_select").ok());
        Tensor picks(DType::kInt64, sizes, Layout::kReversed), got(dtype, sizes, Layout::kGapped);
        for (int64_t i = 0; i < picks.numel(); ++i) picks.set(i, i * 7 % 3);
        ASSERT_TRUE(Launch().in(x).in(picks).out(got).attr(d).run("gather", 2).ok());
        for (int64_t i = 0; i < out.numel(); ++i) {
          auto at = unravel(out.view, i);
          const int64_t j = at[dim];
          at[dim] = static_cast<int64_t>(index.get(j));
          ASSERT_EQ(out.get(i), x.get(ravel(x.view, at)));
          at[dim] = static_cast<int64_t>(picks.get(i));
          ASSERT_EQ(got.get(i), x.get(ravel(x.view, at)));
        }
      }
      Tensor words(DType::kInt32, {2, 2}, Layout::kReversed), weight(dtype, {3, 6}, layout);
      Tensor rows(dtype, {2, 2, 6}, Layout::kGapped);
      words.fill({1, 0, 2, 1});
      weight.pattern();
      ASSERT_TRUE(Launch().in(weight).in(words).out(rows).run("embedding").ok());
      for (int64_t i = 0; i < rows.numel(); ++i) {
        ASSERT_EQ(rows.get(i), weight.get(static_cast<int64_t>(words.get(i / 6)) * 6 + i % 6));
      }
    }
  }
}

TEST(Index, AdvancedIndexingAndItsInverse) {
  for (Layout layout : kOutLayouts) {
    // x[i, :, j] with i, j of shape [2, 3]: separated, so the result is [2, 3, 4].
    Tensor x(DType::kFloat32, {3, 4, 5}, layout), i(DType::kInt64, {2, 3}),
        j(DType::kInt64, {2, 3}, layout), out(DType::kFloat32, {2, 3, 4}, layout);
    for (int64_t k = 0; k < 60; ++k) x.set(k, k);
    i.fill({0, -1, 1, 2, 0, 0});
    j.fill({4, 3, -5, 1, 4, 2});
    ASSERT_TRUE(Launch().in(x).in(i).in(j).out(out).attr(IntList{0, 2}).attr(0).run("index").ok());
    std::vector<double> sums = x.values();
    for (int64_t k = 0; k < 24; ++k) {
      const int64_t a = (static_cast<int64_t>(i.get(k / 4)) + 3) % 3;
      const int64_t b = (static_cast<int64_t>(j.get(k / 4)) + 5) % 5;
      const int64_t at = a * 20 + k % 4 * 5 + b;
      ASSERT_EQ(out.get(k), at);
      sums[at] += k;
    }
    Tensor value(DType::kFloat32, {2, 3, 4}, layout);
    for (int64_t k = 0; k < 24; ++k) value.set(k, k);
    Launch add;
    add.in(x).in(value).in(i).in(j).out(x).attr(IntList{0, 2}).attr(0).attr(true);
    ASSERT_TRUE(add.run("index_put", 2).ok());
    EXPECT_EQ(x.values(), sums);
    Tensor y(DType::kInt16, {4}), twice(DType::kInt64, {2}), two(DType::kInt16, {2});
    twice.fill({1, 1});
    two.fill({8, 9});
    y.fill({0, 0, 0, 0});
    ASSERT_TRUE(Launch()
                    .in(y)
                    .in(two)
                    .in(twice)
                    .out(y)
                    .attr(IntList{0})
                    .attr(0)
                    .attr(false)
                    .run("index_put")
                    .ok());
    EXPECT_EQ(y.get(1), 9);
  }
}

TEST(Index, Scatters) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kOutLayouts) {
      for (int dim = 0; dim < 2; ++dim) {
        SCOPED_TRACE(trace(dtype, layout));
        const int64_t d = dim;
        Tensor index(DType::kInt64, {3, 4}, layout), src(dtype, {3, 4}, Layout::kReversed);
        for (int64_t k = 0; k < 12; ++k) index.set(k, k * 5 % 3);
        src.pattern(9);
        auto check = [&](const char* name, std::vector<Attribute> attrs, auto&& combine) {
          Tensor self(dtype, {4, 4}, layout);
          self.pattern(4);
          std::vector<double> want = self.values();
          std::map<int64_t, int> seen;
          for (int64_t k = 0; k < 12; ++k) {
            auto at = unravel(index.view, k);
            at[dim] = static_cast<int64_t>(index.get(k));
            const int64_t place = at[0] * 4 + at[1];
            combine(want[place], src.get(k), seen[place]++);
          }
          Launch launch;
          launch.in(self).in(index).in(src).out(self).attr(d);
          for (const Attribute& a : attrs) launch.attr(a);
          ASSERT_TRUE(launch.run(name, 2).ok());
          for (int64_t k = 0; k < 16; ++k) {
            const double w = dtype == DType::kBool ? want[k] != 0 : want[k];
            ASSERT_EQ(self.get(k), w) << name << " " << k;
          }
        };
        check("scatter", {}, [](double& to, double v, int) { to = v; });
        check("scatter_add", {}, [](double& to, double v, int) { to += v; });
        check("scatter_reduce", {"sum", false},
              [](double& to, double v, int n) { to = n ? to + v : v; });
        check("scatter_reduce", {"amax", true},
              [](double& to, double v, int) { to = std::max(to, v); });
        check("scatter_reduce", {"amin", false},
              [](double& to, double v, int n) { to = n ? std::min(to, v) : v; });
        check("scatter_reduce", {"prod", true}, [](double& to, double v, int) { to *= v; });
      }
    }
  }
  Tensor self(DType::kInt32, {2}), index(DType::kInt64, {2}), src(DType::kInt32, {2});
  self.fill({1, 2});
  index.fill({0, 0});
  src.fill({1, -9});
  ASSERT_TRUE(Launch()
                  .in(self)
                  .in(index)
                  .in(src)
                  .out(self)
                  .attr(kZero)
                  .attr("mean")
                  .attr(true)
                  .run("scatter_reduce")
                  .ok());
  EXPECT_EQ(self.get(0), -3);
}

TEST(Index, AlongOneDim) {
  Tensor self(DType::kFloat16, {3, 2}), index(DType::kInt64, {2}), src(DType::kFloat16, {2, 2});
  self.fill({0, 1, 2, 3, 4, 5});
  index.fill({2, 2});
  src.fill({1, 2, 3, 4});
  ASSERT_TRUE(
      Launch().in(self).in(index).in(src).out(self).attr(kZero).scalar(2).run("index_add").ok());
  EXPECT_EQ(self.values(), (std::vector<double>{0, 1, 2, 3, 12, 17}));
  index.fill({0, 1});
  ASSERT_TRUE(Launch().in(self).in(index).in(src).out(self).attr(kZero).run("index_copy").ok());
  EXPECT_EQ(self.values(), (std::vector<double>{1, 2, 3, 4, 12, 17}));
  index.fill({-1, 0});
  ASSERT_TRUE(Launch().in(self).in(index).out(self).attr(kZero).scalar(7).run("index_fill").ok());
  EXPECT_EQ(self.values(), (std::vector<double>{7, 7, 3, 4, 7, 7}));
}

TEST(Index, Masks) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kInLayouts) {
      SCOPED_TRACE(trace(dtype, layout));
      Tensor x(dtype, {3, 5, 4000}, layout), mask(DType::kBool, {3, 5, 4000}, Layout::kReversed);
      x.pattern();
      mask.pattern(5);
      std::vector<double> selected, places;
      for (int64_t i = 0; i < x.numel(); ++i) {
        if (mask.get(i) != 0) selected.push_back(x.get(i));
        if (x.get(i) == 0) continue;
        for (int64_t k : unravel(x.view, i)) places.push_back(static_cast<double>(k));
      }
      Tensor out(dtype, {static_cast<int64_t>(selected.size())}, Layout::kGapped);
      ASSERT_TRUE(Launch().in(x).in(mask).out(out).run("masked_select", 2).ok());
      ASSERT_EQ(out.values(), selected);
      Tensor found(DType::kInt64, {static_cast<int64_t>(places.size() / 3), 3}, Layout::kReversed);
      ASSERT_TRUE(Launch().in(x).out(found).run("nonzero", 2).ok());
      ASSERT_EQ(found.values(), places);
      if (layout == Layout::kBroadcast) continue;
      ASSERT_TRUE(Launch().in(x).in(mask).in(out).out(x).run("masked_scatter", 2).ok());
      size_t next = 0;
      for (int64_t i = 0; i < x.numel(); ++i) {
        if (mask.get(i) == 0) continue;
        ASSERT_EQ(x.get(i), selected[next++]);
      }
    }
  }
}

TEST(Index, Moves) {
  for (Layout layout : kInLayouts) {
    Tensor x(DType::kInt32, {3, 4, 5}, layout), out(DType::kInt32, {3, 4, 5}, Layout::kReversed);
    x.pattern();
    auto check = [&](auto&& source) {
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t from = source(unravel(x.view, i));
        ASSERT_EQ(out.get(i), from < 0 ? 0 : x.get(from)) << i;
      }
    };
    using At = std::vector<int64_t>;
    ASSERT_TRUE(Launch().in(x).out(out).attr(IntList{0, 2}).run("flip").ok());
    check([&](At a) { return ravel(x.view, {2 - a[0], a[1], 4 - a[2]}); });
    ASSERT_TRUE(Launch().in(x).out(out).attr(IntList{-1, 7}).attr(IntList{0, 2}).run("roll").ok());
    check([&](At a) { return ravel(x.view, {(a[0] + 1) % 3, a[1], (a[2] + 3) % 5}); });
    ASSERT_TRUE(Launch().in(x).out(out).attr(IntList{-5}).attr(IntList{}).run("roll").ok());
    check([&](At a) { return (ravel(x.view, a) + 5) % 60; });
    for (int64_t k : {int64_t{-9}, int64_t{-1}, kZero, kTwo, std::numeric_limits<int64_t>::max(),
                      std::numeric_limits<int64_t>::min()}) {
      ASSERT_TRUE(Launch().in(x).out(out).attr(k).run("tril").ok());
      check([&](At a) { return a[2] - a[1] <= k ? ravel(x.view, a) : -1; });
      ASSERT_TRUE(Launch().in(x).out(out).attr(k).run("triu").ok());
      check([&](At a) { return a[2] - a[1] >= k ? ravel(x.view, a) : -1; });
    }
  }
}

TEST(Index, EmbeddingBackward) {
  for (DType dtype : kFloats) {
    for (bool by_frequency : {false, true}) {
      Tensor grad(dtype, {500, 200}, Layout::kReversed), index(DType::kInt64, {500});
      Tensor one(dtype, {7, 200}), two(dtype, {7, 200});
      grad.pattern();
      std::vector<double> want(7 * 200);
      for (int64_t i = 0; i < 500; ++i) {
        index.set(i, i * i % 7);
        if (i * i % 7 == 4) continue;
        for (int64_t c = 0; c < 200; ++c) want[i * i % 7 * 200 + c] += grad.get(i * 200 + c);
      }
      auto run = [&](const Tensor& out, int threads) {
        return Launch()
            .in(grad)
            .in(index)
            .out(out)
            .attr(4)
            .attr(by_frequency)
            .run("embedding_backward", threads);
      };
      ASSERT_TRUE(run(one, 1).ok() && run(two, 2).ok());
      ASSERT_EQ(one.values(), two.values());
      for (int64_t i = 0; i < 1400; ++i) {
        int64_t count = 0;
        for (int64_t k = 0; k < 500; ++k) count += k * k % 7 == i / 200;
        const double w = by_frequency && count ? want[i] / count : want[i];
        ASSERT_NEAR(one.get(i), w, 1e-2 * (1 + std::abs(w)));
      }
    }
  }
}

TEST(Index, RefusesBadIndicesBeforeWriting) {
  Tensor x(DType::kFloat32, {5}), index(DType::kInt64, {2}), src(DType::kFloat32, {2}),
      out(DType::kFloat32, {2});
  x.fill({1, 2, 3, 4, 5});
  src.fill({8, 8});
  index.fill({0, 7});
  auto status = Launch().in(x).in(index).out(out).attr(IntList{0}).attr(0).run("index");
  EXPECT_EQ(error_kind(status), ErrorKind::kIndex);
  EXPECT_EQ(status.message(), "[index] index 7 is out of bounds for dimension 0 with size 5");
  EXPECT_EQ(error_kind(Launch().in(x).in(index).out(out).attr(kZero).run("gather")),
            ErrorKind::kRuntime);
  EXPECT_EQ(error_kind(Launch().in(x).in(index).out(out).attr(kZero).run("index_select")),
            ErrorKind::kIndex);
  for (const char* name : {"scatter", "scatter_add", "index_add", "index_copy"}) {
    EXPECT_FALSE(Launch().in(x).in(index).in(src).out(x).attr(kZero).run(name).ok()) << name;
  }
  EXPECT_FALSE(Launch()
                   .in(x)
                   .in(src)
                   .in(index)
                   .out(x)
                   .attr(IntList{0})
                   .attr(0)
                   .attr(false)
                   .run("index_put")
                   .ok());
  EXPECT_FALSE(Launch().in(x).in(index).out(x).attr(kZero).scalar(1).run("index_fill").ok());
  Tensor mask(DType::kBool, {5});
  mask.fill({1, 1, 1, 0, 0});
  EXPECT_FALSE(Launch().in(x).in(mask).in(src).out(x).run("masked_scatter").ok());
  EXPECT_EQ(x.values(), (std::vector<double>{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace gradwire::cpu
