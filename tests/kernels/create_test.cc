#include "tests/kernels/strided_tensor.h"

namespace gradwire::cpu {
namespace {

TEST(Create, FillsAndSequences) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kOutLayouts) {
      SCOPED_TRACE(trace(dtype, layout));
      const bool boolean = dtype == DType::kBool;
      Tensor filled(dtype, {3, 700}, layout);
      ASSERT_TRUE(Launch().out(filled).attr(3).run("fill", 2).ok());
      for (double v : filled.values()) ASSERT_EQ(v, boolean ? 1 : 3);

      Tensor range(dtype, {50}, layout);
      ASSERT_TRUE(Launch().out(range).attr(5).attr(2).run("arange").ok());
      for (int64_t i = 0; i < 50; ++i) ASSERT_EQ(range.get(i), boolean ? 1 : 5 + 2 * i);

      Tensor line(dtype, {5}, layout);
      ASSERT_TRUE(Launch().out(line).attr(0.0).attr(10.0).run("linspace").ok());
      const double want[] = {0, 2.5, 5, 7.5, 10};
      for (int i = 0; i < 5; ++i) {
        const double v = is_floating(dtype) ? want[i] : std::trunc(want[i]);
        ASSERT_EQ(line.get(i), boolean ? v != 0 : v);
      }

      Tensor identity(dtype, {4, 6}, layout);
      ASSERT_TRUE(Launch().out(identity).run("eye").ok());
      for (int64_t i = 0; i < 24; ++i) ASSERT_EQ(identity.get(i), i / 6 == i % 6);
    }
  }
}

TEST(Create, WholeNumbersAreExact) {
  Tensor out(DType::kInt64, {3});
  const int64_t start = (int64_t{1} << 62) + 1;
  ASSERT_TRUE(Launch().out(out).attr(start).attr(1).run("arange").ok());
  EXPECT_EQ(out.view.as<int64_t>()[2], start + 2);
  Tensor none(DType::kFloat32, {0});
  EXPECT_TRUE(Launch().out(none).attr(0).attr(1).run("arange").ok());
  EXPECT_TRUE(Launch().out(none).attr(0.0).attr(1.0).run("linspace").ok());
}

}  // namespace
}  // namespace gradwire::cpu
