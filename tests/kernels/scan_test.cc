#include "tests/kernels/strided_tensor.h"

namespace gradwire::cpu {
namespace {

TEST(Scan, MatchesTheLoop) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kInLayouts) {
      for (int dim = 0; dim < 3; ++dim) {
        for (bool product : {false, true}) {
          SCOPED_TRACE(trace(dtype, layout));
          const DType result = is_floating(dtype) ? dtype : DType::kInt64;
          Tensor x(dtype, {3, 4, 300}, layout);
          x.pattern();
          if (product) {
            for (int64_t i = 0; i < x.numel(); ++i) x.set(i, x.get(i) > 1 ? 1 : x.get(i) ? -1 : 1);
          }
          Tensor out(result, {3, 4, 300}, Layout::kGapped);
          const int64_t d = dim;
          ASSERT_TRUE(Launch().in(x).out(out).attr(d).run(product ? "cumprod" : "cumsum", 2).ok());
          for (int64_t i = 0; i < x.numel(); ++i) {
            auto index = unravel(x.view, i);
            const int64_t end = index[dim];
            double want = product ? 1 : 0;
            for (int64_t j = 0; j <= end; ++j) {
              index[dim] = j;
              const double v = x.get(ravel(x.view, index));
              want = product ? want * v : want + v;
            }
            ASSERT_NEAR(out.get(i), want, 1e-2 * std::abs(want)) << i;
          }
        }
      }
    }
  }
}

TEST(Scan, EmptyAndZeroDim) {
  Tensor x(DType::kInt32, {0, 3}), out(DType::kInt64, {0, 3});
  EXPECT_TRUE(Launch().in(x).out(out).attr(int64_t{0}).run("cumsum").ok());
  Tensor s(DType::kInt32, {}), r(DType::kInt64, {});
  s.set(0, 7);
  EXPECT_TRUE(Launch().in(s).out(r).attr(int64_t{0}).run("cumsum").ok());
  EXPECT_EQ(r.get(0), 7);
}

}  // namespace
}  // namespace gradwire::cpu
