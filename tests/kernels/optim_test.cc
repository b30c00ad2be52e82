#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

const std::vector<Sizes> kParameters = {{3, 5}, {}, {0, 4}, {70, 33, 17}, {1}, {4, 3, 2, 2}};

// Lists of tensors for a step; every other gradient lies differently from its parameter.
struct Step {
  std::vector<std::vector<Array>> groups;

  Step(DType dtype, size_t n, Layout layout) : groups(n) {
    unsigned seed = 1;
    for (size_t g = 0; g < n; ++g) {
      for (size_t p = 0; p < kParameters.size(); ++p) {
        bool other = g == 1 && p % 2 == 1;
        groups[g].emplace_back(dtype, kParameters[p], other ? Layout::kReversed : layout);
        groups[g].back().random(seed++, g >= 2 ? 0 : -1, 1);
      }
    }
  }
  size_t count() const { return kParameters.size(); }
  std::vector<Array*> inputs(size_t used) {
    std::vector<Array*> list;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (Array& a : groups[g]) list.push_back(g < used ? &a : nullptr);
    }
    return list;
  }
  std::vector<Array*> outputs(size_t used) {
    std::vector<Array*> list;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (g == 1) continue;
      for (Array& a : groups[g]) list.push_back(g < used ? &a : nullptr);
    }
    return list;
  }
  std::vector<std::vector<std::vector<double>>> values() const {
    std::vector<std::vector<std::vector<double>>> all;
    for (const auto& group : groups) {
      all.emplace_back();
      for (const Array& a : group) all.back().push_back(a.values());
    }
    return all;
  }
};

TEST(Optim, Sgd) {
  for (DType dtype : kFloats) {
    for (Layout layout : kOutputLayouts) {
      for (int variant = 0; variant < 6; ++variant) {
        double lr = 0.1, momentum = variant >= 2 ? 0.9 : 0, dampening = variant == 3 ? 0.3 : 0;
        double decay = variant % 2 ? 0.05 : 0;
        bool nesterov = variant == 4, maximize = variant == 5;
        Step step(dtype, 3, layout);
        IntList first;
        for (size_t p = 0; p < step.count(); ++p) first.push_back(p % 2);
        auto old = step.values();
        size_t used = momentum != 0 ? 3 : 2;
        ASSERT_TRUE(run("sgd_step", step.inputs(used), step.outputs(used),
                        {lr, momentum, dampening, decay, nesterov, maximize, first})
                        .ok());
        for (size_t p = 0; p < step.count(); ++p) {
          std::vector<double> param, buffer;
          for (size_t i = 0; i < old[0][p].size(); ++i) {
            double g = (maximize ? -1 : 1) * old[1][p][i] + decay * old[0][p][i];
            double b = first[p] ? g : momentum * old[2][p][i] + (1 - dampening) * g;
            buffer.push_back(b);
            double d = momentum == 0 ? g : nesterov ? g + momentum * b : b;
            param.push_back(old[0][p][i] - lr * d);
          }
          expect_near(step.groups[0][p], param, tolerance(dtype), "sgd parameter");
          if (used == 3) expect_near(step.groups[2][p], buffer, tolerance(dtype), "sgd buffer");
        }
      }
    }
  }
}

TEST(Optim, Adam) {
  for (DType dtype : kFloats) {
    for (Layout layout : kOutputLayouts) {
      for (int variant = 0; variant < 5; ++variant) {
        double lr = 0.01, beta1 = variant == 1 ? 0.3 : 0.9, beta2 = 0.99, eps = 1e-3;
        double decay = variant >= 2 ? 0.1 : 0;
        bool amsgrad = variant == 3, maximize = variant == 1, decoupled = variant == 4;
        Step step(dtype, 5, layout);
        IntList steps;
        for (size_t p = 0; p < step.count(); ++p) steps.push_back(static_cast<int64_t>(1 + 3 * p));
        auto old = step.values();
        size_t used = amsgrad ? 5 : 4;
        ASSERT_TRUE(run("adam_step", step.inputs(used), step.outputs(used),
                        {lr, beta1, beta2, eps, decay, amsgrad, maximize, decoupled, steps})
                        .ok());
        for (size_t p = 0; p < step.count(); ++p) {
          auto t = static_cast<double>(steps[p]);
          std::vector<double> param, average, square, greatest;
          for (size_t i = 0; i < old[0][p].size(); ++i) {
            double w = old[0][p][i], g = (maximize ? -1 : 1) * old[1][p][i];
            if (decoupled) {
              w *= 1 - lr * decay;
            } else {
              g += decay * w;
            }
            double m = beta1 * old[2][p][i] + (1 - beta1) * g;
            double v = beta2 * old[3][p][i] + (1 - beta2) * g * g;
            average.push_back(m);
            square.push_back(v);
            if (amsgrad) v = std::max(v, old[4][p][i]);
            greatest.push_back(v);
            double c1 = 1 - std::pow(beta1, t), c2 = 1 - std::pow(beta2, t);
            param.push_back(w - lr / c1 * m / (std::sqrt(v) / std::sqrt(c2) + eps));
          }
          expect_near(step.groups[0][p], param, tolerance(dtype), "adam parameter");
          expect_near(step.groups[2][p], average, tolerance(dtype), "adam average");
          expect_near(step.groups[3][p], square, tolerance(dtype), "adam square");
          if (amsgrad) expect_near(step.groups[4][p], greatest, tolerance(dtype), "adam greatest");
        }
      }
    }
  }
}

TEST(Optim, MixedDtypes) {
  Array a(DType::kFloat32, {5}), b(DType::kBFloat16, {7}), c(DType::kFloat32, {3});
  Array ga = a, gb = b, gc = c;
  for (Array* x : {&a, &b, &c}) x->fill(1);
  for (Array* x : {&ga, &gb, &gc}) x->fill(2);
  std::vector<Array*> inputs = {&a, &b, &c, &ga, &gb, &gc, nullptr, nullptr, nullptr};
  ASSERT_TRUE(run("sgd_step", inputs, {&a, &b, &c, nullptr, nullptr, nullptr},
                  {0.25, 0.0, 0.0, 0.0, false, false, IntList{0, 0, 0}})
                  .ok());
  for (Array* x : {&a, &b, &c}) expect_near(*x, std::vector<double>(x->size(), 0.5), 0, "mixed");
}

TEST(Optim, NothingIsWrittenOnError) {
  Array a(DType::kFloat32, {5}), b(DType::kFloat32, {4}), ga(DType::kFloat32, {5});
  Array wrong(DType::kFloat64, {4}), shape(DType::kFloat32, {3});
  a.fill(1);
  b.fill(1);
  ga.fill(1);
  AttributeList attributes = {0.25, 0.0, 0.0, 0.0, false, false, IntList{0, 0}};
  for (Array* bad : {&wrong, &shape}) {
    absl::Status status = run("sgd_step", {&a, &b, &ga, bad, nullptr, nullptr},
                              {&a, &b, nullptr, nullptr}, attributes);
    EXPECT_EQ(error_kind(status), ErrorKind::kRuntime);
    EXPECT_EQ(a.get(0), 1);
    EXPECT_EQ(b.get(0), 1);
  }
}

TEST(Optim, NoParameters) {
  EXPECT_TRUE(run("sgd_step", {}, {}, {0.1, 0.0, 0.0, 0.0, false, false, IntList{}}).ok());
  EXPECT_TRUE(
      run("adam_step", {}, {}, {0.1, 0.9, 0.99, 1e-8, 0.0, false, false, false, IntList{}}).ok());
}

}  // namespace
}  // namespace gradwire::cpu::testing
