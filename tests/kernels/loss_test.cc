#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

struct Problem {
  Sizes scores;  // [N, C, d1, ...] or [C]
  int64_t ignore = 2;
  double smoothing = 0;
  std::string reduction = "mean";

  size_t dim() const { return scores.size() == 1 ? 0 : 1; }
  int64_t classes() const { return scores[dim()]; }
  Sizes targets() const {
    Sizes s = scores;
    s.erase(s.begin() + static_cast<int64_t>(dim()));
    return s;
  }
  int64_t rows() const {
    int64_t n = 1;
    for (int64_t s : targets()) n *= s;
    return n;
  }
  int64_t at(int64_t row, int64_t c) const {
    int64_t inner = 1;
    for (size_t d = dim() + 1; d < scores.size(); ++d) inner *= scores[d];
    return row / inner * inner * classes() + c * inner + row % inner;
  }
  // The loss of every row, then the reduction's value when there is one.
  double losses(const std::vector<double>& x, const std::vector<double>& t,
                const std::vector<double>& w, bool logits, std::vector<double>& loss) const {
    double sum = 0, total = 0;
    loss.assign(rows(), 0);
    for (int64_t r = 0; r < rows(); ++r) {
      auto target = static_cast<int64_t>(t[r]);
      if (target == ignore) continue;
      double lse = 0;
      if (logits) {
        for (int64_t c = 0; c < classes(); ++c) lse += std::exp(x[at(r, c)]);
        lse = std::log(lse);
      }
      double smooth = 0;
      for (int64_t c = 0; c < classes(); ++c) smooth += w[c] * (lse - x[at(r, c)]);
      loss[r] = (1 - smoothing) * w[target] * (lse - x[at(r, target)]) +
                smoothing / static_cast<double>(classes()) * smooth;
      sum += loss[r];
      total += w[target];
    }
    return reduction == "mean" ? sum / total : sum;
  }
};

void check(const Problem& p, bool logits, DType dtype, Layout in, Layout out, bool weighted) {
  std::string name = logits ? "cross_entropy" : "nll_loss";
  std::string what = name + " " + p.reduction + " " + label(dtype, in, out);
  bool none = p.reduction == "none";
  DType stat = compute_dtype(dtype);
  Sizes loss_sizes = none ? p.targets() : Sizes{};
  Array x(dtype, p.scores, in), t(DType::kInt64, p.targets(), out), w(dtype, {p.classes()});
  Array loss(dtype, loss_sizes, out), lse(stat, p.targets(), out), total(dtype, {});
  Array g(dtype, loss_sizes, in), dx(dtype, p.scores, out);
  x.random(1, -2, 2);
  t.random_integers(2, 0, p.classes() - 1);
  w.random(3, 0.5, 2);
  if (!weighted) w.fill(1);
  g.random(4, 0.5, 1);
  AttributeList attributes = {p.reduction, p.ignore, p.smoothing};
  Array* weight = weighted ? &w : nullptr;
  std::vector<Array*> outputs = {&loss, &total};
  if (logits) outputs.insert(outputs.begin() + 1, &lse);
  ASSERT_TRUE(run(name, {&x, &t, weight}, outputs, attributes).ok()) << what;
  std::vector<double> each;
  auto xs = x.values();
  double value = p.losses(xs, t.values(), w.values(), logits, each);
  expect_near(loss, none ? each : std::vector<double>{value}, 3 * tolerance(dtype), what);

  std::vector<Array*> inputs = {&g, &x, &t, weight, &total};
  if (logits) inputs.insert(inputs.begin() + 4, &lse);
  ASSERT_TRUE(run(name + "_backward", inputs, {&dx}, attributes).ok()) << what;
  auto scalar = [&] {
    double v = p.losses(xs, t.values(), w.values(), logits, each);
    if (!none) return v * g.get(0);
    double sum = 0;
    for (size_t i = 0; i < each.size(); ++i) sum += each[i] * g.get(static_cast<int64_t>(i));
    return sum;
  };
  std::vector<double> expected;
  for (double& v : xs) {
    double old = v;
    v = old + 1e-5;
    double up = scalar();
    v = old - 1e-5;
    double down = scalar();
    v = old;
    expected.push_back((up - down) / 2e-5);
  }
  expect_near(dx, expected, std::max(1e-6, tolerance(dtype)), what + " gradient");
}

TEST(Loss, ForwardAndBackward) {
  for (const Sizes& scores : {Sizes{6, 5}, Sizes{3, 4, 2, 2}, Sizes{2, 17, 3}}) {
    for (std::string reduction : {"none", "mean", "sum"}) {
      for_all([&](DType dtype, Layout in, Layout out) {
        for (bool weighted : {false, true}) {
          if (weighted && in != Layout::kPlain && in != out) continue;
          check({scores, 2, 0, reduction}, true, dtype, in, out, weighted);
          check({scores, 2, 0.1, reduction}, true, dtype, in, out, weighted);
          check({scores, 2, 0, reduction}, false, dtype, in, out, weighted);
        }
      });
    }
  }
}

TEST(Loss, OneSample) {
  check({{5}, -100, 0, "mean"}, true, DType::kFloat64, Layout::kPlain, Layout::kPlain, false);
  check({{5}, -100, 0.2, "sum"}, true, DType::kFloat64, Layout::kPlain, Layout::kPlain, true);
}

TEST(Loss, ManyClassesAreStable) {
  Array x(DType::kFloat32, {2, 5000}), t(DType::kInt64, {2}), loss(DType::kFloat32, {2});
  Array lse(DType::kFloat32, {2}), total(DType::kFloat32, {});
  x.fill(-1000);
  for (int64_t i = 0; i < 5000; ++i) x.set(5000 + i, 1000 + static_cast<double>(i) * 0.01);
  t.fill(4999);
  ASSERT_TRUE(
      run("cross_entropy", {&x, &t, nullptr}, {&loss, &lse, &total}, {"none", -100, 0.0}).ok());
  EXPECT_NEAR(loss.get(0), std::log(5000.0), 1e-4);
  double sum = 0;
  for (int64_t i = 0; i < 5000; ++i) sum += std::exp(x.get(5000 + i) - x.get(9999));
  EXPECT_NEAR(loss.get(1), std::log(sum), 1e-3);
}

TEST(Loss, IgnoredAndEmpty) {
  for (std::string name : {"cross_entropy", "nll_loss"}) {
    for (int64_t n : {0, 3}) {
      Array x(DType::kFloat32, {n, 4}), t(DType::kInt64, {n}), loss(DType::kFloat32, {});
      Array lse(DType::kFloat32, {n}), total(DType::kFloat32, {});
      x.random(1);
      t.fill(-100);
      std::vector<Array*> outputs = {&loss, &total};
      if (name == "cross_entropy") outputs.insert(outputs.begin() + 1, &lse);
      AttributeList attributes = {"mean", -100, 0.0};
      ASSERT_TRUE(run(name, {&x, &t, nullptr}, outputs, attributes).ok());
      EXPECT_TRUE(std::isnan(loss.get(0)));
      attributes[0] = "sum";
      ASSERT_TRUE(run(name, {&x, &t, nullptr}, outputs, attributes).ok());
      EXPECT_EQ(loss.get(0), 0);
    }
  }
}

TEST(Loss, TargetOutOfRange) {
  for (std::string name : {"cross_entropy", "nll_loss"}) {
    for (int64_t bad : {11, -1}) {
      Array x(DType::kFloat32, {3, 10}), t(DType::kInt64, {3}), loss(DType::kFloat32, {});
      Array lse(DType::kFloat32, {3}), total(DType::kFloat32, {});
      x.random(1);
      t.fill(1);
      t.set(2, static_cast<double>(bad));
      loss.fill(7);
      std::vector<Array*> outputs = {&loss, &total};
      if (name == "cross_entropy") outputs.insert(outputs.begin() + 1, &lse);
      absl::Status status = run(name, {&x, &t, nullptr}, outputs, {"mean", -100, 0.0});
      EXPECT_EQ(error_kind(status), ErrorKind::kIndex);
      EXPECT_EQ(status.message(),
                "[" + name + "] Target " + std::to_string(bad) + " is out of bounds.");
      EXPECT_EQ(loss.get(0), 7);
    }
  }
}

}  // namespace
}  // namespace gradwire::cpu::testing
