#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

// Normalisation over groups of elements, with a channel for each: the definition that all three
// norms share.
struct Norm {
  std::vector<int64_t> group, channel;  // of every element
  int64_t groups = 0, channels = 0;
  double eps = 1e-5;

  void statistics(const std::vector<double>& x, std::vector<double>& mean,
                  std::vector<double>& rstd, std::vector<double>* unbiased = nullptr) const {
    std::vector<double> count(groups), square(groups);
    mean.assign(groups, 0);
    for (size_t i = 0; i < x.size(); ++i) mean[group[i]] += x[i], count[group[i]] += 1;
    for (int64_t g = 0; g < groups; ++g) mean[g] /= count[g];
    for (size_t i = 0; i < x.size(); ++i) square[group[i]] += std::pow(x[i] - mean[group[i]], 2);
    rstd.assign(groups, 0);
    if (unbiased) unbiased->assign(groups, 0);
    for (int64_t g = 0; g < groups; ++g) {
      rstd[g] = 1 / std::sqrt(square[g] / count[g] + eps);
      if (unbiased) (*unbiased)[g] = square[g] / (count[g] - 1);
    }
  }
  std::vector<double> forward(const std::vector<double>& x, const std::vector<double>& w,
                              const std::vector<double>& b) const {
    std::vector<double> mean, rstd, y;
    statistics(x, mean, rstd);
    for (size_t i = 0; i < x.size(); ++i) {
      double v = (x[i] - mean[group[i]]) * rstd[group[i]];
      if (!w.empty()) v *= w[channel[i]];
      if (!b.empty()) v += b[channel[i]];
      y.push_back(v);
    }
    return y;
  }
  // The derivative of sum(g y), by central differences of forward().
  std::vector<double> numeric(std::vector<double> x, const std::vector<double>& w,
                              const std::vector<double>& b, const std::vector<double>& g) const {
    auto value = [&] {
      auto y = forward(x, w, b);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += g[i] * y[i];
      return sum;
    };
    std::vector<double> d;
    for (double& v : x) {
      double old = v, h = 1e-5;
      v = old + h;
      double up = value();
      v = old - h;
      double down = value();
      v = old;
      d.push_back((up - down) / (2 * h));
    }
    return d;
  }
};

double loose(DType dtype) {
  return dtype == DType::kFloat64 ? 1e-6 : 3 * tolerance(dtype);
}

// Runs forward and backward of one norm and compares everything.
void check(const std::string& name, const Norm& norm, DType dtype, const Sizes& sizes,
           const Sizes& parameter, const Sizes& statistic, const AttributeList& attributes,
           Layout in, Layout out, bool affine) {
  std::string what = name + " " + label(dtype, in, out);
  DType stat = compute_dtype(dtype);
  Array x(dtype, sizes, in), y(dtype, sizes, out), g(dtype, sizes, in), dx(dtype, sizes, out);
  Array w(dtype, parameter), b(dtype, parameter), dw(dtype, parameter), db(dtype, parameter);
  Array mean(stat, statistic, Layout::kGaps), rstd(stat, statistic);
  Array running_mean(dtype, parameter), running_var(dtype, parameter);
  x.random(1, -1, 3);
  g.random(2);
  w.random(3, 0.5, 1.5);
  b.random(4);
  running_mean.fill(0.5);
  running_var.fill(2);
  bool batch = name == "batch_norm";
  std::vector<Array*> inputs = {&x, affine ? &w : nullptr, affine ? &b : nullptr};
  std::vector<Array*> outputs = {&y, &mean, &rstd};
  if (batch) {
    inputs.insert(inputs.end(), {&running_mean, &running_var});
    outputs.insert(outputs.end(), {&running_mean, &running_var});
  }
  ASSERT_TRUE(run(name, inputs, outputs, attributes).ok()) << what;
  auto weights = affine ? w.values() : std::vector<double>{};
  auto shifts = affine ? b.values() : std::vector<double>{};
  std::vector<double> means, rstds, unbiased;
  norm.statistics(x.values(), means, rstds, &unbiased);
  expect_near(mean, means, 1e-5, what + " mean");
  expect_near(rstd, rstds, 1e-4, what + " rstd");
  expect_near(y, norm.forward(x.values(), weights, shifts), tolerance(dtype), what);
  if (batch) {
    for (int64_t c = 0; c < norm.channels; ++c) {
      EXPECT_NEAR(running_mean.get(c), 0.9 * 0.5 + 0.1 * means[c], 2 * tolerance(dtype)) << what;
      EXPECT_NEAR(running_var.get(c), 0.9 * 2 + 0.1 * unbiased[c], 3 * tolerance(dtype)) << what;
    }
  }
  ASSERT_TRUE(run(name + "_backward", {&g, &x, affine ? &w : nullptr, &mean, &rstd},
                  {&dx, affine ? &dw : nullptr, affine ? &db : nullptr}, attributes)
                  .ok());
  expect_near(dx, norm.numeric(x.values(), weights, shifts, g.values()), loose(dtype),
              what + " dx");
  if (!affine) return;
  std::vector<double> edw(norm.channels), edb(norm.channels);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t k = norm.group[i], c = norm.channel[i];
    edw[c] += g.get(i) * (x.get(i) - means[k]) * rstds[k];
    edb[c] += g.get(i);
  }
  expect_near(dw, edw, loose(dtype), what + " dweight");
  expect_near(db, edb, loose(dtype), what + " dbias");
}

Sizes head(const Sizes& sizes, size_t n) {
  return {sizes.begin(), sizes.begin() + n};
}

TEST(Norm, Batch) {
  for (const Sizes& sizes : {Sizes{4, 3}, Sizes{3, 5, 4, 2}, Sizes{2, 17, 3}, Sizes{70, 4, 3}}) {
    Norm norm;
    norm.groups = norm.channels = sizes[1];
    int64_t plane = 1, total = 1;
    for (int64_t n : sizes) total *= n;
    for (size_t d = 2; d < sizes.size(); ++d) plane *= sizes[d];
    for (int64_t i = 0; i < total; ++i) norm.group.push_back(i / plane % sizes[1]);
    norm.channel = norm.group;
    for_all([&](DType dtype, Layout in, Layout out) {
      if (in == Layout::kBroadcast) return;  // equal images leave nothing but rounding
      for (bool affine : {false, true}) {
        if (!affine && out != Layout::kPlain) continue;
        check("batch_norm", norm, dtype, sizes, {sizes[1]}, {sizes[1]}, {0.1, 1e-5}, in, out,
              affine);
      }
    });
  }
}

TEST(Norm, Layer) {
  for (int trailing : {1, 2}) {
    for (const Sizes& sizes : {Sizes{4, 3, 5}, Sizes{20, 2, 17}, Sizes{3, 1, 33}}) {
      Norm norm;
      size_t leading = sizes.size() - trailing;
      Sizes parameter(sizes.begin() + leading, sizes.end());
      int64_t n = 1, total = 1;
      for (int64_t s : parameter) n *= s;
      for (int64_t s : sizes) total *= s;
      norm.groups = total / n;
      norm.channels = n;
      for (int64_t i = 0; i < total; ++i) {
        norm.group.push_back(i / n);
        norm.channel.push_back(i % n);
      }
      for_all([&](DType dtype, Layout in, Layout out) {
        check("layer_norm", norm, dtype, sizes, parameter, head(sizes, leading), {trailing, 1e-5},
              in, out, true);
      });
      check("layer_norm", norm, DType::kFloat32, sizes, parameter, head(sizes, leading),
            {trailing, 1e-5}, Layout::kPlain, Layout::kPlain, false);
    }
  }
}

TEST(Norm, Group) {
  for (const Sizes& sizes : {Sizes{2, 6, 3, 3}, Sizes{3, 4, 17}, Sizes{2, 6}}) {
    int64_t groups = 2, plane = 1, total = 1;
    for (int64_t s : sizes) total *= s;
    for (size_t d = 2; d < sizes.size(); ++d) plane *= sizes[d];
    Norm norm;
    norm.groups = sizes[0] * groups;
    norm.channels = sizes[1];
    for (int64_t i = 0; i < total; ++i) {
      norm.channel.push_back(i / plane % sizes[1]);
      norm.group.push_back(i / (plane * sizes[1] / groups));
    }
    for_all([&](DType dtype, Layout in, Layout out) {
      check("group_norm", norm, dtype, sizes, {sizes[1]}, {sizes[0], groups}, {groups, 1e-5}, in,
            out, true);
    });
    check("group_norm", norm, DType::kFloat64, sizes, {sizes[1]}, {sizes[0], groups},
          {groups, 1e-5}, Layout::kPlain, Layout::kPlain, false);
  }
}

TEST(Norm, MeanFarFromZero) {
  Array x(DType::kFloat32, {64, 2, 10}), y(DType::kFloat32, {64, 2, 10});
  Array mean(DType::kFloat32, {2}), rstd(DType::kFloat32, {2});
  x.random(1, 9999, 10001);
  Norm norm;
  norm.groups = norm.channels = 2;
  for (int64_t i = 0; i < x.size(); ++i) norm.group.push_back(i / 10 % 2);
  norm.channel = norm.group;
  ASSERT_TRUE(
      run("batch_norm", {&x, nullptr, nullptr, nullptr, nullptr}, {&y, &mean, &rstd}, {0.1, 1e-5})
          .ok());
  expect_near(y, norm.forward(x.values(), {}, {}), 2e-3, "far mean");
}

TEST(Norm, ZeroSizes) {
  for (const Sizes& sizes : {Sizes{0, 3, 2}, Sizes{2, 3, 0}}) {
    Array x(DType::kFloat32, sizes), y(DType::kFloat32, sizes), w(DType::kFloat32, {3});
    Array mean(DType::kFloat32, {3}), rstd(DType::kFloat32, {3});
    w.fill(1);
    EXPECT_TRUE(
        run("batch_norm", {&x, &w, &w, nullptr, nullptr}, {&y, &mean, &rstd}, {0.1, 1e-5}).ok());
    Array dw(DType::kFloat32, {3}), db(DType::kFloat32, {3});
    EXPECT_TRUE(run("batch_norm_backward", {&x, &x, &w, &mean, &rstd}, {&y, &dw, &db}).ok());
    EXPECT_EQ(db.get(0), 0);
    Array lm(DType::kFloat32, {sizes[0], 3}), lr(DType::kFloat32, {sizes[0], 3});
    Array lw(DType::kFloat32, {sizes[2]}), ldw(DType::kFloat32, {sizes[2]});
    lw.fill(1);
    EXPECT_TRUE(run("layer_norm", {&x, &lw, &lw}, {&y, &lm, &lr}, {1, 1e-5}).ok());
    EXPECT_TRUE(
        run("layer_norm_backward", {&x, &x, &lw, &lm, &lr}, {&y, &ldw, nullptr}, {1, 1e-5}).ok());
    for (int64_t i = 0; i < ldw.size(); ++i) EXPECT_EQ(ldw.get(i), 0);
    Array gm(DType::kFloat32, {sizes[0], 1}), gr(DType::kFloat32, {sizes[0], 1});
    EXPECT_TRUE(run("group_norm", {&x, &w, &w}, {&y, &gm, &gr}, {1, 1e-5}).ok());
    EXPECT_TRUE(run("group_norm_backward", {&x, &x, &w, &gm, &gr}, {&y, &dw, &db}, {1, 1e-5}).ok());
  }
}

}  // namespace
}  // namespace gradwire::cpu::testing
