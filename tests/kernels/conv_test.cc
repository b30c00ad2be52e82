#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

// A convolution over up to three dimensions, written as its definition.
struct Conv {
  int64_t n, c, o, groups;
  Sizes in, kernel;
  IntList stride, padding, dilation;

  Sizes out() const {
    Sizes sizes;
    for (size_t d = 0; d < in.size(); ++d) {
      int64_t window = dilation[d] * (kernel[d] - 1) + 1;
      sizes.push_back((in[d] + 2 * padding[d] - window) / stride[d] + 1);
    }
    return sizes;
  }
  static Sizes join(Sizes head, const Sizes& tail) {
    head.insert(head.end(), tail.begin(), tail.end());
    return head;
  }
  Sizes x_sizes() const { return join({n, c}, in); }
  Sizes w_sizes() const { return join({o, c / groups}, kernel); }
  Sizes y_sizes() const { return join({n, o}, out()); }
  AttributeList attributes() const { return {stride, padding, dilation, groups}; }

  static int64_t product(const Sizes& sizes) {
    int64_t p = 1;
    for (int64_t s : sizes) p *= s;
    return p;
  }
  // Calls f(x element, w element, y element) for every product of the sum.
  template <class F>
  void for_products(F&& f) const {
    Sizes size = out();
    int64_t taps = product(kernel), places = product(size), plane = product(in);
    for (int64_t image = 0; image < n; ++image) {
      for (int64_t q = 0; q < o; ++q) {
        int64_t group = q / (o / groups);
        for (int64_t p = 0; p < places; ++p) {
          for (int64_t e = 0; e < c / groups; ++e) {
            for (int64_t t = 0; t < taps; ++t) {
              int64_t place = p, tap = t, at = 0, step = 1;
              bool inside = true;
              for (size_t d = in.size(); d-- > 0;) {
                int64_t i =
                    place % size[d] * stride[d] - padding[d] + tap % kernel[d] * dilation[d];
                place /= size[d];
                tap /= kernel[d];
                inside = inside && i >= 0 && i < in[d];
                at += i * step;
                step *= in[d];
              }
              if (!inside) continue;
              int64_t channel = group * (c / groups) + e;
              f((image * c + channel) * plane + at, (q * (c / groups) + e) * taps + t,
                (image * o + q) * places + p);
            }
          }
        }
      }
    }
  }
};

const std::vector<Conv> kConvs = {
    {2, 3, 4, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {3, 4, 6, 2, {7, 5}, {3, 2}, {2, 1}, {1, 0}, {1, 2}},
    {2, 6, 6, 6, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},    // depthwise
    {1, 6, 12, 6, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   // two outputs each
    {2, 2, 3, 1, {3, 3}, {2, 2}, {1, 1}, {4, 3}, {1, 1}},    // padding beyond the kernel
    {2, 2, 3, 1, {10, 11}, {3, 3}, {3, 4}, {0, 1}, {2, 3}},  // leftovers
    {1, 16, 32, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},  // 1 x 1
    {5, 16, 8, 1, {6, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {2, 3, 4, 1, {13}, {5}, {2}, {2}, {1}},
    {2, 2, 4, 2, {4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 0}, {1, 1, 2}},
    {0, 3, 4, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 0, 4, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {9, 32, 32, 1, {12, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // several blocks of images
};

void check(const Conv& conv, DType dtype, Layout in, Layout out) {
  std::string what = label(dtype, in, out);
  Array x(dtype, conv.x_sizes(), in), w(dtype, conv.w_sizes(), in), bias(dtype, {conv.o});
  Array y(dtype, conv.y_sizes(), out), g(dtype, conv.y_sizes(), in);
  Array dx(dtype, conv.x_sizes(), out), dw(dtype, conv.w_sizes(), out);
  x.random(1);
  w.random(2);
  bias.random(3);
  g.random(4);
  auto xs = x.values(), ws = w.values(), gs = g.values();
  std::vector<double> ey(y.size()), edx(x.size()), edw(w.size());
  conv.for_products([&](int64_t i, int64_t j, int64_t k) {
    ey[k] += xs[i] * ws[j];
    edx[i] += gs[k] * ws[j];
    edw[j] += gs[k] * xs[i];
  });
  AttributeList attributes = conv.attributes();
  ASSERT_TRUE(run("conv", {&x, &w, nullptr}, {&y}, attributes).ok());
  expect_near(y, ey, tolerance(dtype), "conv " + what);
  int64_t plane = Conv::product(conv.out());
  for (int64_t i = 0; i < y.size(); ++i) ey[i] += bias.get(i / plane % conv.o);
  ASSERT_TRUE(run("conv", {&x, &w, &bias}, {&y}, attributes).ok());
  expect_near(y, ey, tolerance(dtype), "conv with bias " + what);
  ASSERT_TRUE(run("conv_backward_input", {&g, &w}, {&dx}, attributes).ok());
  expect_near(dx, edx, tolerance(dtype), "conv_backward_input " + what);
  ASSERT_TRUE(run("conv_backward_weight", {&g, &x}, {&dw}, attributes).ok());
  expect_near(dw, edw, tolerance(dtype), "conv_backward_weight " + what);
}

TEST(Conv, Layouts) {
  for (size_t i : {size_t{0}, size_t{1}, size_t{2}, size_t{9}}) {
    for_all([&](DType dtype, Layout in, Layout out) { check(kConvs[i], dtype, in, out); });
  }
}

TEST(Conv, Shapes) {
  for (const Conv& conv : kConvs) {
    for (DType dtype : kFloats) {
      check(conv, dtype, Layout::kPlain, Layout::kPlain);
      check(conv, dtype, Layout::kChannels, Layout::kChannels);
      check(conv, dtype, Layout::kPlain, Layout::kChannels);
    }
  }
}

// A transposed convolution is the gradient of one whose input has any of the sizes that give the
// same output.
TEST(Conv, LeftoverRows) {
  for (int64_t extra = 0; extra < 3; ++extra) {
    Conv conv{2, 3, 4, 1, {9 + extra, 9 + extra}, {3, 3}, {3, 3}, {0, 0}, {1, 1}};
    for (DType dtype : kFloats) check(conv, dtype, Layout::kPlain, Layout::kPlain);
  }
}

TEST(Conv, Errors) {
  Array x(DType::kFloat32, {1, 3, 4, 4}), w(DType::kFloat32, {4, 2, 3, 3});
  Array y(DType::kFloat32, {1, 4, 2, 2});
  AttributeList attributes = {IntList{1, 1}, IntList{0, 0}, IntList{1, 1}, 1};
  EXPECT_EQ(error_kind(run("conv", {&x, &w, nullptr}, {&y}, attributes)), ErrorKind::kRuntime);
  attributes[3] = 2;
  EXPECT_EQ(error_kind(run("conv", {&x, &w, nullptr}, {&y}, attributes)), ErrorKind::kRuntime);
  attributes = {IntList{0, 1}, IntList{0, 0}, IntList{1, 1}, 1};
  Array v(DType::kFloat32, {4, 3, 3, 3});
  EXPECT_EQ(error_kind(run("conv", {&x, &v, nullptr}, {&y}, attributes)), ErrorKind::kRuntime);
}

}  // namespace
}  // namespace gradwire::cpu::testing
