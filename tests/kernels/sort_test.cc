#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/kernels/strided_tensor.h"

namespace gradwire::cpu {
namespace {

bool before(double a, double b) {  // NaN last
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

// The stable order of a line.
std::vector<int64_t> order(const std::vector<double>& line, bool descending) {
  std::vector<int64_t> index(line.size());
  std::iota(index.begin(), index.end(), 0);
  std::stable_sort(index.begin(), index.end(), [&](int64_t a, int64_t b) {
    return descending ? before(line[b], line[a]) : before(line[a], line[b]);
  });
  return index;
}

std::vector<double> line_of(const Tensor& x, std::vector<int64_t> at, int dim) {
  std::vector<double> line;
  for (at[dim] = 0; at[dim] < x.view.sizes[dim]; ++at[dim])
    line.push_back(x.get(ravel(x.view, at)));
  return line;
}

TEST(Sort, SortTopkKthvalueMedian) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kInLayouts) {
      for (int64_t dim = 0; dim < 2; ++dim) {
        for (bool descending : {false, true}) {
          SCOPED_TRACE(trace(dtype, layout));
          const std::vector<int64_t> sizes =
              dim == 0 ? std::vector<int64_t>{1500, 3} : std::vector<int64_t>{3, 1500};
          Tensor x(dtype, sizes, layout), values(dtype, sizes, Layout::kReversed),
              indices(DType::kInt64, sizes, Layout::kGapped);
          x.pattern();
          if (is_floating(dtype)) x.set(700, NAN), x.set(0, -0.0);
          ASSERT_TRUE(Launch()
                          .in(x)
                          .out(values)
                          .out(indices)
                          .attr(dim)
                          .attr(descending)
                          .attr(true)
                          .run("sort", 2)
                          .ok());
          auto small = sizes;
          small[dim] = 5;
          Tensor top(dtype, small), where(DType::kInt64, small, Layout::kReversed);
          ASSERT_TRUE(Launch()
                          .in(x)
                          .out(top)
                          .out(where)
                          .attr(5)
                          .attr(dim)
                          .attr(descending)
                          .attr(true)
                          .run("topk")
                          .ok());
          small[dim] = 1;
          Tensor kth(dtype, small), kth_at(DType::kInt64, small), middle(dtype, small),
              middle_at(DType::kInt64, small);
          ASSERT_TRUE(Launch().in(x).out(kth).out(kth_at).attr(9).attr(dim).run("kthvalue").ok());
          ASSERT_TRUE(Launch().in(x).out(middle).out(middle_at).attr(dim).run("median").ok());
          for (int64_t i = 0; i < x.numel(); ++i) {
            auto at = unravel(x.view, i);
            if (at[dim] != 0) continue;
            const auto line = line_of(x, at, static_cast<int>(dim));
            const auto want = order(line, descending), ascending = order(line, false);
            const int64_t row = at[1 - dim];
            for (int64_t k = 0; k < 1500; ++k) {
              at[dim] = k;
              ASSERT_EQ(indices.get(ravel(indices.view, at)), want[k]);
              ASSERT_TRUE(same(values.get(ravel(values.view, at)), line[want[k]]));
              if (k < 5) {
                ASSERT_EQ(where.get(ravel(where.view, at)), want[k]);
              }
            }
            // Of equal elements torch's quickselect decides which is named.
            ASSERT_TRUE(same(kth.get(row), line[ascending[8]]));
            ASSERT_TRUE(same(line[static_cast<size_t>(kth_at.get(row))], line[ascending[8]]));
            const bool nan = std::isnan(line[ascending.back()]);
            const int64_t m = nan ? order(line, true)[0] : ascending[749];
            ASSERT_EQ(middle_at.get(row), m);
            ASSERT_TRUE(same(middle.get(row), line[m]));
          }
        }
      }
    }
  }
}

TEST(Sort, SearchSorted) {
  for (DType dtype : kAllDTypes) {
    for (bool right : {false, true}) {
      Tensor sequence(dtype, {2, 4}, Layout::kReversed), values(dtype, {2, 3}, Layout::kGapped),
          out(DType::kInt64, {2, 3});
      sequence.fill({0, 1, 1, 3, 0, 0, 0, 1});
      values.fill({1, 0, 5, 0, 1, 2});
      ASSERT_TRUE(Launch().in(sequence).in(values).out(out).attr(right).run("searchsorted").ok());
      for (int64_t i = 0; i < 6; ++i) {
        int64_t n = 0;
        for (int64_t k = 0; k < 4; ++k) {
          const double s = sequence.get(i / 3 * 4 + k), v = values.get(i);
          n += right ? s <= v : s < v;
        }
        ASSERT_EQ(out.get(i), n);
      }
    }
  }
}

TEST(Sort, RefusesWhatIsOutOfRange) {
  Tensor x(DType::kFloat32, {3}), values(DType::kFloat32, {7}), indices(DType::kInt64, {7});
  EXPECT_FALSE(Launch().in(x).out(values).out(indices).attr(7).attr(0).run("topk").ok());
  EXPECT_FALSE(Launch().in(x).out(values).out(indices).attr(4).attr(0).run("kthvalue").ok());
  EXPECT_FALSE(Launch().in(x).out(values).out(indices).attr(0).attr(0).run("kthvalue").ok());
  Tensor none(DType::kFloat32, {0}), one(DType::kFloat32, {1}), at(DType::kInt64, {1});
  EXPECT_EQ(error_kind(Launch().in(none).out(one).out(at).attr(0).run("median")),
            ErrorKind::kIndex);
  Tensor scalar(DType::kFloat32, {}), s(DType::kFloat32, {}), i(DType::kInt64, {});
  scalar.set(0, 4);
  EXPECT_TRUE(Launch().in(scalar).out(s).out(i).attr(0).run("sort").ok());
  EXPECT_EQ(s.get(0), 4);
}

}  // namespace
}  // namespace gradwire::cpu
