#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

// One spatial dimension of a pooling by its definition: the inputs of output o, and its length
// with padding.
struct Axis {
  int64_t in, kernel, stride, padding, dilation;
  bool ceil, adaptive;
  int64_t adaptive_out = 0;

  int64_t out() const {
    if (adaptive) return adaptive_out;
    int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
    int64_t n = (span + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (n - 1) * stride >= in + padding) --n;
    return n;
  }
  std::vector<int64_t> window(int64_t o) const {
    std::vector<int64_t> list;
    if (adaptive) {
      auto n = static_cast<double>(adaptive_out);
      for (auto i = static_cast<int64_t>(std::floor(o * in / n)); i < std::ceil((o + 1) * in / n);
           ++i) {
        list.push_back(i);
      }
      return list;
    }
    for (int64_t k = 0; k < kernel; ++k) {
      int64_t i = o * stride - padding + k * dilation;
      if (i >= 0 && i < in) list.push_back(i);
    }
    return list;
  }
  int64_t extent(int64_t o) const {
    int64_t begin = o * stride - padding;
    return std::min(begin + kernel, in + padding) - begin;
  }
};

struct Pool {
  std::vector<Axis> axes;

  Sizes in() const {
    Sizes s;
    for (const Axis& a : axes) s.push_back(a.in);
    return s;
  }
  Sizes out() const {
    Sizes s;
    for (const Axis& a : axes) s.push_back(a.out());
    return s;
  }
  // Calls f(output position, inputs within the plane, length with padding).
  template <class F>
  void for_outputs(F&& f) const {
    int64_t total = 1;
    for (const Axis& a : axes) total *= a.out();
    for (int64_t o = 0; o < total; ++o) {
      std::vector<int64_t> places = {0};
      int64_t rest = o, extent = 1, step = 1;
      for (size_t d = axes.size(); d-- > 0;) {
        int64_t at = rest % axes[d].out();
        rest /= axes[d].out();
        extent *= axes[d].extent(at);
        std::vector<int64_t> more;
        for (int64_t i : axes[d].window(at)) {
          for (int64_t p : places) more.push_back(i * step + p);
        }
        places = more;
        step *= axes[d].in;
      }
      std::sort(places.begin(), places.end());
      f(o, places, extent);
    }
  }
  IntList list(int64_t Axis::*member) const {
    IntList l;
    for (const Axis& a : axes) l.push_back(a.*member);
    return l;
  }
};

Sizes join(Sizes head, const Sizes& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

const std::vector<Pool> kPools = {
    {{{8, 2, 2, 0, 1, false, false}, {6, 2, 2, 0, 1, false, false}}},
    {{{9, 3, 2, 1, 1, false, false}, {7, 3, 2, 1, 1, true, false}}},
    {{{10, 3, 2, 0, 1, true, false}, {11, 2, 3, 1, 1, true, false}}},
    {{{13, 4, 3, 2, 1, true, false}}},
    {{{4, 2, 1, 0, 1, false, false}, {5, 3, 2, 1, 1, true, false}, {6, 2, 2, 1, 1, false, false}}},
};
const std::vector<Pool> kDilated = {
    {{{11, 3, 2, 1, 2, false, false}, {9, 2, 1, 1, 3, false, false}}},
    {{{12, 3, 1, 0, 4, true, false}}},
};
const std::vector<Pool> kAdaptive = {
    {{{7, 1, 1, 0, 1, false, true, 3}, {5, 1, 1, 0, 1, false, true, 5}}},
    {{{6, 1, 1, 0, 1, false, true, 1}, {4, 1, 1, 0, 1, false, true, 1}}},
    {{{3, 1, 1, 0, 1, false, true, 7}}},
};

void check_max(const Pool& pool, const std::string& name, const AttributeList& attributes,
               DType dtype, Layout in, Layout out) {
  int64_t n = 2, c = 35;
  Sizes x_sizes = join({n, c}, pool.in()), y_sizes = join({n, c}, pool.out());
  Array x(dtype, x_sizes, in), y(dtype, y_sizes, out), index(DType::kInt64, y_sizes, out);
  x.random_integers(1, -4, 4);  // with ties
  ASSERT_TRUE(run(name, {&x}, {&y, &index}, attributes).ok());
  auto xs = x.values();
  int64_t plane = x.size() / (n * c), places = y.size() / (n * c);
  std::vector<double> ey(y.size()), ei(y.size()), edx(x.size());
  Array g(dtype, y_sizes, in), dx(dtype, x_sizes, out);
  g.random(2);
  auto gs = g.values();
  pool.for_outputs([&](int64_t o, const std::vector<int64_t>& window, int64_t) {
    for (int64_t p = 0; p < n * c; ++p) {
      double best = -INFINITY;
      for (int64_t i : window) {
        if (xs[p * plane + i] <= best) continue;
        best = xs[p * plane + i];
        ei[p * places + o] = static_cast<double>(i);
      }
      ey[p * places + o] = best;
      edx[p * plane + static_cast<int64_t>(ei[p * places + o])] += gs[p * places + o];
    }
  });
  expect_near(y, ey, 0, name + label(dtype, in, out));
  expect_near(index, ei, 0, name + " index " + label(dtype, in, out));
  ASSERT_TRUE(run("max_pool_backward", {&g, &index}, {&dx}).ok());
  expect_near(dx, edx, tolerance(dtype), "max_pool_backward " + label(dtype, in, out));
}

void check_average(const Pool& pool, const std::string& name, const AttributeList& attributes,
                   bool include_pad, int64_t divisor, DType dtype, Layout in, Layout out) {
  int64_t n = 2, c = 35;
  Sizes x_sizes = join({n, c}, pool.in()), y_sizes = join({n, c}, pool.out());
  Array x(dtype, x_sizes, in), y(dtype, y_sizes, out), g(dtype, y_sizes, in),
      dx(dtype, x_sizes, out);
  x.random(1);
  g.random(2);
  ASSERT_TRUE(run(name, {&x}, {&y}, attributes).ok());
  auto xs = x.values(), gs = g.values();
  int64_t plane = x.size() / (n * c), places = y.size() / (n * c);
  std::vector<double> ey(y.size()), edx(x.size());
  pool.for_outputs([&](int64_t o, const std::vector<int64_t>& window, int64_t extent) {
    double by = static_cast<double>(include_pad ? extent : static_cast<int64_t>(window.size()));
    if (divisor != 0) by = static_cast<double>(divisor);
    for (int64_t p = 0; p < n * c; ++p) {
      for (int64_t i : window) {
        ey[p * places + o] += xs[p * plane + i] / by;
        edx[p * plane + i] += gs[p * places + o] / by;
      }
    }
  });
  expect_near(y, ey, tolerance(dtype), name + label(dtype, in, out));
  ASSERT_TRUE(run(name + "_backward", {&g}, {&dx}, attributes).ok());
  expect_near(dx, edx, tolerance(dtype), name + "_backward " + label(dtype, in, out));
}

AttributeList max_attributes(const Pool& p) {
  return {p.list(&Axis::kernel), p.list(&Axis::stride), p.list(&Axis::padding),
          p.list(&Axis::dilation)};
}

TEST(Pool, Max) {
  for (const auto& pools : {kPools, kDilated}) {
    for (const Pool& pool : pools) {
      for_all([&](DType dtype, Layout in, Layout out) {
        check_max(pool, "max_pool", max_attributes(pool), dtype, in, out);
      });
    }
  }
}

TEST(Pool, Average) {
  for (const Pool& pool : kPools) {
    for (bool include_pad : {false, true}) {
      for (int64_t divisor : {0, 5}) {
        AttributeList attributes = {pool.list(&Axis::kernel), pool.list(&Axis::stride),
                                    pool.list(&Axis::padding), include_pad,
                                    divisor ? Attribute(divisor) : Attribute()};
        for_all([&](DType dtype, Layout in, Layout out) {
          if (divisor != 0 && in != out) return;
          check_average(pool, "avg_pool", attributes, include_pad, divisor, dtype, in, out);
        });
      }
    }
  }
}

TEST(Pool, Adaptive) {
  for (const Pool& pool : kAdaptive) {
    for_all([&](DType dtype, Layout in, Layout out) {
      check_max(pool, "adaptive_max_pool", {}, dtype, in, out);
      check_average(pool, "adaptive_avg_pool", {}, false, 0, dtype, in, out);
    });
  }
}

TEST(Pool, NanWinsAndFirstTie) {
  for (DType dtype : kFloats) {
    Array x(dtype, {1, 1, 6}), y(dtype, {1, 1, 2}), index(DType::kInt64, {1, 1, 2});
    x.fill(1);
    x.set(1, std::nan(""));
    ASSERT_TRUE(
        run("max_pool", {&x}, {&y, &index}, {IntList{3}, IntList{3}, IntList{0}, IntList{1}}).ok());
    EXPECT_TRUE(std::isnan(y.get(0)));
    EXPECT_EQ(index.integer(0), 1);
    EXPECT_EQ(y.get(1), 1);
    EXPECT_EQ(index.integer(1), 3);
    x.fill(-INFINITY);
    ASSERT_TRUE(
        run("max_pool", {&x}, {&y, &index}, {IntList{3}, IntList{3}, IntList{0}, IntList{1}}).ok());
    EXPECT_EQ(index.integer(1), 3);
  }
}

TEST(Pool, EmptyAndErrors) {
  Array x(DType::kFloat32, {0, 2, 4}), y(DType::kFloat32, {0, 2, 2});
  Array index(DType::kInt64, {0, 2, 2});
  AttributeList attributes = {IntList{2}, IntList{2}, IntList{0}, IntList{1}};
  EXPECT_TRUE(run("max_pool", {&x}, {&y, &index}, attributes).ok());
  EXPECT_TRUE(run("max_pool_backward", {&y, &index}, {&x}, attributes).ok());
  attributes[1] = IntList{0};
  EXPECT_EQ(error_kind(run("max_pool", {&x}, {&y, &index}, attributes)), ErrorKind::kRuntime);
  absl::Status status = run("avg_pool", {&x}, {&y}, {IntList{2}, IntList{2}, IntList{0}, true, 0});
  EXPECT_EQ(status.message(), "[avg_pool] divisor must be not zero");
}

}  // namespace
}  // namespace gradwire::cpu::testing
