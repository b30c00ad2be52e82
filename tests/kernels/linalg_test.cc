// Factorisations and solvers: their products are the matrices they came from, for every layout.
#include <cmath>

#include "tests/kernels/kernel_run.h"

namespace gradwire::cpu::testing {
namespace {

const std::vector<DType> kReal = {DType::kFloat32, DType::kFloat64};

using Values = std::vector<double>;

// Matrices of a batch, row-major.
struct Stack {
  int64_t count, rows, cols;
  Values values;

  double& at(int64_t i, int64_t r, int64_t c) { return values[(i * rows + r) * cols + c]; }
  double at(int64_t i, int64_t r, int64_t c) const { return values[(i * rows + r) * cols + c]; }
};

Stack stack_of(const Array& a) {
  TensorView v = a.view();
  int64_t rows = v.sizes[v.rank - 2], cols = v.sizes[v.rank - 1];
  return {a.size() > 0 ? a.size() / (rows * cols) : 0, rows, cols, a.values()};
}

Stack operator*(const Stack& a, const Stack& b) {
  Stack out{a.count, a.rows, b.cols, Values(a.count * a.rows * b.cols, 0)};
  for (int64_t i = 0; i < a.count; ++i) {
    for (int64_t r = 0; r < a.rows; ++r) {
      for (int64_t c = 0; c < b.cols; ++c) {
        for (int64_t k = 0; k < a.cols; ++k) out.at(i, r, c) += a.at(i, r, k) * b.at(i, k, c);
      }
    }
  }
  return out;
}

Stack transposed(const Stack& a) {
  Stack out{a.count, a.cols, a.rows, Values(a.values.size())};
  for (int64_t i = 0; i < a.count; ++i) {
    for (int64_t r = 0; r < a.rows; ++r) {
      for (int64_t c = 0; c < a.cols; ++c) out.at(i, c, r) = a.at(i, r, c);
    }
  }
  return out;
}

Stack scaled_columns(Stack a, const Array& by) {
  for (int64_t i = 0; i < a.count; ++i) {
    for (int64_t r = 0; r < a.rows; ++r) {
      for (int64_t c = 0; c < a.cols; ++c) a.at(i, r, c) *= by.get(i * a.cols + c);
    }
  }
  return a;
}

void expect_same(const Stack& a, const Stack& b, DType dtype, const std::string& what) {
  ASSERT_EQ(a.values.size(), b.values.size()) << what;
  double bound = dtype == DType::kFloat64 ? 1e-9 : 2e-3;
  for (size_t i = 0; i < a.values.size(); ++i) {
    ASSERT_NEAR(a.values[i], b.values[i], bound) << what << " element " << i;
  }
}

// Calls f(dtype, input layout, output layout).
template <class F>
void for_real(F&& f) {
  for (DType dtype : kReal) {
    for (Layout in : kInputLayouts) {
      for (Layout out : kOutputLayouts) f(dtype, in, out);
    }
  }
}

TEST(Linalg, LuOfTallSquareAndWide) {
  for_real([](DType dtype, Layout in, Layout out) {
    for (auto [m, n] : {std::pair{5, 3}, {4, 4}, {3, 6}}) {
      int64_t k = std::min(m, n);
      Array a(dtype, {3, m, n}, in), lu(dtype, {3, m, n}, out);
      Array pivots(DType::kInt32, {3, k}), info(DType::kInt32, {3}), order(DType::kInt64, {3, m});
      a.random(7);
      ASSERT_TRUE(run("linalg_lu", {&a}, {&lu, &pivots, &info}, {""}).ok());
      ASSERT_TRUE(run("linalg_lu_order", {&pivots}, {&order}, {int64_t{m}, false}).ok());
      Stack all = stack_of(lu), want = stack_of(a);
      Stack l{3, m, k, Values(3 * m * k, 0)}, u{3, k, n, Values(3 * k * n, 0)};
      Stack moved = want;
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t c = 0; c < k; ++c) l.at(i, r, c) = r > c ? all.at(i, r, c) : r == c ? 1 : 0;
          for (int64_t c = 0; c < n; ++c) {
            if (r < k && c >= r) u.at(i, r, c) = all.at(i, r, c);
            moved.at(i, r, c) = want.at(i, order.integer(i * m + r), c);
          }
        }
      }
      expect_same(l * u, moved, dtype, label(dtype, in, out));
    }
  });
}

TEST(Linalg, CholeskyReadsOneTriangle) {
  for_real([](DType dtype, Layout in, Layout out) {
    for (bool upper : {false, true}) {
      Array root(dtype, {2, 4, 4}),
          a(dtype, {2, 4, 4}, in == Layout::kBroadcast ? Layout::kPlain : in);
      root.random(3);
      Stack whole = stack_of(root) * transposed(stack_of(root));
      for (int64_t i = 0; i < a.size(); ++i) {
        int64_t r = i / 4 % 4, c = i % 4;
        whole.values[i] += r == c ? 1 : 0;
        a.set(i, (upper ? c >= r : c <= r) ? whole.values[i] : 99);
      }
      Array l(dtype, {2, 4, 4}, out), info(DType::kInt32, {2});
      ASSERT_TRUE(run("linalg_cholesky", {&a}, {&l, &info}, {upper, "linalg.cholesky"}).ok());
      Stack f = stack_of(l);
      expect_same(upper ? transposed(f) * f : f * transposed(f), whole, dtype,
                  label(dtype, in, out));
    }
  });
}

TEST(Linalg, QrSvdAndEigenvaluesMultiplyBack) {
  for_real([](DType dtype, Layout in, Layout out) {
    for (auto [m, n] : {std::pair{5, 3}, {4, 4}, {3, 5}}) {
      int64_t k = std::min(m, n);
      Array a(dtype, {2, m, n}, in), q(dtype, {2, m, k}, out), r(dtype, {2, k, n}, out);
      a.random(11);
      ASSERT_TRUE(run("linalg_qr", {&a}, {&q, &r}, {"reduced"}).ok());
      expect_same(stack_of(q) * stack_of(r), stack_of(a), dtype, "qr");
      Array u(dtype, {2, m, k}, out), s(dtype, {2, k}), vh(dtype, {2, k, n}, out);
      ASSERT_TRUE(run("linalg_svd", {&a}, {&u, &s, &vh}, {false, true, "linalg.svd"}).ok());
      expect_same(scaled_columns(stack_of(u), s) * stack_of(vh), stack_of(a), dtype, "svd");
      Array p(dtype, {2, n, m}, out);
      ASSERT_TRUE(run("linalg_pinv", {&a, nullptr, nullptr}, {&p}, {{}, {}, false}).ok());
      expect_same(stack_of(a) * stack_of(p) * stack_of(a), stack_of(a), dtype, "pinv");
      if (m != n) continue;
      Stack half = stack_of(a), symmetric = half;
      for (int64_t i = 0; i < 2; ++i) {
        for (int64_t x = 0; x < n; ++x) {
          for (int64_t y = x + 1; y < n; ++y) symmetric.at(i, x, y) = half.at(i, y, x);
        }
      }
      Array w(dtype, {2, n}, out), v(dtype, {2, n, n}, out);
      ASSERT_TRUE(run("linalg_eigh", {&a}, {&w, &v}, {false, true, "linalg.eigh"}).ok());
      expect_same(scaled_columns(stack_of(v), w) * transposed(stack_of(v)), symmetric, dtype,
                  "eigh");
    }
  });
}

TEST(Linalg, SolversSolve) {
  for_real([](DType dtype, Layout in, Layout out) {
    for (bool left : {true, false}) {
      Array a(dtype, {2, 3, 3}, in), b(dtype, left ? Sizes{2, 3, 2} : Sizes{2, 2, 3}, in);
      a.random(5);
      b.random(6);
      for (int64_t i = 0; i < 18; i += 4) a.set(i, a.get(i) + (i % 9 % 4 == 0 ? 3 : 0));
      Sizes sizes = left ? Sizes{2, 3, 2} : Sizes{2, 2, 3};
      Array x(dtype, sizes, out), lu(dtype, {2, 3, 3}), pivots(DType::kInt32, {2, 3});
      Array info(DType::kInt32, {2});
      ASSERT_TRUE(run("linalg_solve", {&a, &b}, {&x, &lu, &pivots, &info}, {left, ""}).ok());
      expect_same(left ? stack_of(a) * stack_of(x) : stack_of(x) * stack_of(a), stack_of(b), dtype,
                  "solve");
      for (bool upper : {true, false}) {
        Array triangle(dtype, {2, 3, 3});
        for (int64_t i = 0; i < 18; ++i) {
          int64_t r = i / 3 % 3, c = i % 3;
          triangle.set(i, r == c ? 2 : (upper ? c > r : c < r) ? a.get(i) : 0);
        }
        ASSERT_TRUE(
            run("linalg_solve_triangular", {&triangle, &b}, {&x}, {upper, left, false}).ok());
        expect_same(left ? stack_of(triangle) * stack_of(x) : stack_of(x) * stack_of(triangle),
                    stack_of(b), dtype, "solve_triangular");
      }
    }
  });
}

TEST(Linalg, FailuresNameTheMatrix) {
  Array a(DType::kFloat32, {2, 2, 2}), b(DType::kFloat32, {2, 2, 2}), x = b, lu = b;
  Array pivots(DType::kInt32, {2, 2}), info(DType::kInt32, {2});
  a.fill(0);
  for (int64_t i : {0, 3}) a.set(i, 1);  // the first is the identity, the second singular
  absl::Status status =
      run("linalg_solve", {&a, &b}, {&x, &lu, &pivots, &info}, {true, "linalg.inv"});
  EXPECT_EQ(error_kind(status), ErrorKind::kLinAlg);
  EXPECT_NE(status.message().find("(Batch element 1): The diagonal element 1 is zero"),
            std::string::npos)
      << status;
  EXPECT_TRUE(run("linalg_solve", {&a, &b}, {&x, &lu, &pivots, &info}, {true, ""}).ok());
  EXPECT_EQ(info.view().as<int32_t>()[0], 0);
  EXPECT_EQ(info.view().as<int32_t>()[1], 1);
  // Where LAPACK might not end.
  a.fill(NAN);
  Array u = a, s(DType::kFloat32, {2, 2}), vh = a;
  status = run("linalg_svd", {&a}, {&u, &s, &vh}, {true, true, "linalg.svd"});
  EXPECT_EQ(error_kind(status), ErrorKind::kLinAlg);
  // Pivots come from a client.
  Array order(DType::kInt64, {2, 2});
  for (int32_t bad : {0, 3, -7, INT32_MAX}) {
    for (int i = 0; i < 4; ++i) pivots.view().as<int32_t>()[i] = bad;
    EXPECT_FALSE(run("linalg_lu_order", {&pivots}, {&order}, {int64_t{2}, false}).ok());
  }
}

TEST(Linalg, ExponentialOfARotationAndOfBigNumbers) {
  for (DType dtype : kReal) {
    Array a(dtype, {3, 2, 2}), e(dtype, {3, 2, 2});
    a.fill(0);
    double turn = 30;
    a.set(1, -turn), a.set(2, turn);
    a.set(4, 3), a.set(7, -50);
    a.set(8, NAN);
    ASSERT_TRUE(run("matrix_exp", {&a}, {&e}).ok());
    double bound = dtype == DType::kFloat64 ? 1e-11 : 1e-5;
    EXPECT_NEAR(e.get(0), std::cos(turn), bound);
    EXPECT_NEAR(e.get(2), std::sin(turn), bound);
    EXPECT_NEAR(e.get(4) / std::exp(3.0), 1, bound);
    EXPECT_NEAR(e.get(7), 0, bound);
    EXPECT_TRUE(std::isnan(e.get(11)));
  }
}

TEST(Linalg, VectorNormsOfEveryOrder) {
  for_all([](DType dtype, Layout in, Layout out) {
    for (double p : {0.0, 0.5, 1.0, 2.0, 3.0, -1.0, double(INFINITY), -double(INFINITY)}) {
      Array a(dtype, {2, 5, 3}, in), y(dtype, {2, 1, 3}, out);
      a.random(9, 0.5, 2);
      Values want;
      for (int64_t i = 0; i < 6; ++i) {
        double sum = p == -double(INFINITY) ? double(INFINITY) : 0;
        for (int64_t k = 0; k < 5; ++k) {
          double v = std::abs(a.get(i / 3 * 15 + k * 3 + i % 3));
          sum = std::isinf(p) ? (p > 0 ? std::max(sum, v) : std::min(sum, v))
                : p == 0      ? sum + 1
                              : sum + std::pow(v, p);
        }
        want.push_back(std::isinf(p) || p == 0 ? sum : std::pow(sum, 1 / p));
      }
      ASSERT_TRUE(run("vector_norm_along", {&a}, {&y}, {p, IntList{1}}).ok());
      expect_near(y, want, tolerance(dtype), label(dtype, in, out) + " order " + std::to_string(p));
    }
  });
  Array big(DType::kFloat32, {100000}), y(DType::kFloat32, {1});
  big.fill(2);
  ASSERT_TRUE(run("vector_norm_along", {&big}, {&y}, {2.0, IntList{0}}).ok());
  EXPECT_FLOAT_EQ(y.get(0), 2 * std::sqrt(100000.f));
}

}  // namespace
}  // namespace gradwire::cpu::testing
