#include "kernels/cpu/pointwise.h"

#include <cmath>
#include <numeric>

#include "tests/kernels/pointwise_fixture.h"

namespace gradwire {
namespace {

using expr::Builder;
using expr::E;
using expr::Graph;
using expr::Program;

Graph add_graph() {
  Builder b;
  return b.finish(b.operand(0) + b.operand(1));
}

Graph identity_graph() {
  Builder b;
  return b.finish(b.operand(0));
}

const Program* add_of(DType t) {
  expr::OperandType operands[] = {tensor_of(t), tensor_of(t)};
  return expr::instantiate(add_graph(), t, operands, t);
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes, const std::vector<int>& order) {
  std::vector<int64_t> strides(sizes.size());
  int64_t at = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[*d] = at;
    at *= sizes[*d];
  }
  return strides;
}

// Sizes with broadcast, permuted, gapped and plain operands, in every combination.
TEST(Pointwise, EveryStridePattern) {
  std::mt19937_64 rng(1);
  const std::vector<std::vector<int64_t>> shapes = {
      {},         {1},       {5},       {31},         {32},         {257},
      {1000},     {3, 1, 7}, {64, 33},  {2, 3, 4, 5}, {300, 3},     {7, 300},
      {2, 5, 64}, {1, 1, 1}, {4, 0, 3}, {2, 3, 64},   {16, 16, 16}, {2, 2, 2, 2, 2, 2, 2, 3}};
  for (const auto& sizes : shapes) {
    int rank = static_cast<int>(sizes.size());
    std::vector<int> plain(rank), reversed(rank);
    std::iota(plain.begin(), plain.end(), 0);
    for (int d = 0; d < rank; ++d) reversed[d] = rank - 1 - d;
    std::vector<std::vector<int64_t>> patterns = {strides_of(sizes, plain),
                                                  strides_of(sizes, reversed)};
    auto gapped = patterns[0];
    for (auto& s : gapped) s = s * 3 + 0;
    patterns.push_back(gapped);
    size_t writable = patterns.size();
    patterns.push_back(std::vector<int64_t>(rank, 0));
    for (int d = 0; d < rank; ++d) {
      auto broadcast = patterns[0];
      broadcast[d] = 0;
      patterns.push_back(broadcast);
    }
    for (size_t o = 0; o < writable; ++o) {
      for (size_t x = 0; x < patterns.size(); ++x) {
        for (size_t y = 0; y < patterns.size(); y += 1 + x % 2) {
          for (DType t : {DType::kFloat32, DType::kInt8, DType::kBFloat16}) {
            TestTensor out(t, sizes, patterns[o]), a(t, sizes, patterns[x]),
                b(t, sizes, patterns[y]);
            a.randomize(rng);
            b.randomize(rng);
            out.randomize(rng);
            TestTensor before = out;
            ASSERT_TRUE(launch(add_of(t), {a.view(), b.view()}, {out.view()}).ok());
            std::vector<bool> written(out.elements(), false);
            for (int64_t i = 0; i < out.numel(); ++i) {
              TestTensor want(t, {1});
              want.set(0, a.number(i) + b.number(i));
              ASSERT_EQ(out.number(i), want.number(0)) << "element " << i;
              written[out.offset(i)] = true;
            }
            for (int64_t at = 0; at < out.elements(); ++at) {
              if (written[at]) continue;
              ASSERT_EQ(out.number_at(at), before.number_at(at));
            }
          }
        }
      }
    }
  }
}

TEST(Pointwise, InPlace) {
  std::mt19937_64 rng(2);
  for (auto strides : {std::vector<int64_t>{300, 1}, {1, 7}, {900, 3}}) {
    for (DType t : kFloats) {
      Builder b;
      E x = b.operand(0), y = b.operand(1);
      // Reads x after the value that the output could first be written with.
      Graph graph = b.finish((x + y) * x - y);
      expr::OperandType operands[] = {tensor_of(t), tensor_of(t)};
      const Program* program = expr::instantiate(graph, t, operands, t);
      TestTensor a(t, {7, 300}, strides), c(t, {7, 300}), fresh(t, {7, 300});
      a.randomize(rng);
      c.randomize(rng);
      ASSERT_TRUE(launch(program, {a.view(), c.view()}, {fresh.view()}).ok());
      ASSERT_TRUE(launch(program, {a.view(), c.view()}, {a.view()}).ok());
      for (int64_t i = 0; i < a.numel(); ++i) ASSERT_EQ(a.number(i), fresh.number(i));
    }
  }
}

// A program of several outputs may write each over an input.
TEST(Pointwise, SwapInPlace) {
  for (DType t : kAllDTypes) {
    expr::OperandType operand[] = {tensor_of(t)};
    const Program* copy = expr::instantiate(identity_graph(), t, operand, t);
    expr::Member members[] = {{copy, {0}, 1}, {copy, {1}, 0}};
    const Program* swap = expr::merge(members);
    std::mt19937_64 rng(3);
    TestTensor a(t, {1000}), b(t, {1000});
    a.randomize(rng);
    b.randomize(rng);
    TestTensor a0 = a, b0 = b;
    ASSERT_TRUE(launch(swap, {a.view(), b.view()}, {a.view(), b.view()}).ok());
    for (int64_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(a.number(i), b0.number(i));
      ASSERT_EQ(b.number(i), a0.number(i));
    }
  }
}

TEST(Pointwise, CopiesAndCasts) {
  std::mt19937_64 rng(4);
  for (DType from : kAllDTypes) {
    for (DType to : kAllDTypes) {
      expr::OperandType operand[] = {tensor_of(from)};
      const Program* program = expr::instantiate(identity_graph(), to, operand, to);
      for (auto strides : {std::vector<int64_t>{70, 1}, {1, 9}, {0, 1}, {0, 0}}) {
        TestTensor in(from, {9, 70}, strides), out(to, {9, 70});
        in.randomize(rng);
        ASSERT_TRUE(launch(program, {in.view()}, {out.view()}).ok());
        for (int64_t i = 0; i < out.numel(); ++i) {
          double v = in.number(i);
          if (to == DType::kBool) {
            v = v != 0;
          } else if (!is_floating(to)) {
            v = std::trunc(v);
          }
          TestTensor want(to, {1});
          want.set(0, v);
          ASSERT_EQ(out.number(i), want.number(0))
              << dtype_name(from) << " to " << dtype_name(to) << " of " << in.number(i);
        }
      }
    }
  }
}

TEST(Pointwise, TransposedInputs) {
  std::mt19937_64 rng(9);
  const std::vector<int64_t> sizes = {2, 130, 150};
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kBFloat16}) {
    for (int threads : {1, 2}) {
      for (auto strides : {strides_of(sizes, {0, 2, 1}), strides_of(sizes, {2, 1, 0}),
                           std::vector<int64_t>{0, 1, 130}, std::vector<int64_t>{1, 0, 2}}) {
        TestTensor x(t, sizes, strides), y(t, sizes, strides_of(sizes, {2, 0, 1})), out(t, sizes);
        x.randomize(rng);
        y.randomize(rng);
        ASSERT_TRUE(launch(add_of(t), {x.view(), y.view()}, {out.view()}, {}, threads).ok());
        for (int64_t i = 0; i < out.numel(); ++i) {
          TestTensor want(t, {1});
          want.set(0, x.number(i) + y.number(i));
          ASSERT_EQ(out.number(i), want.number(0)) << i;
        }
      }
    }
  }
}

// Rows and blocks that outer dimensions repeat, longer than a tile and shorter.
TEST(Pointwise, RepeatingOperands) {
  std::mt19937_64 rng(7);
  struct Case {
    std::vector<int64_t> sizes, strides;
  };
  const Case cases[] = {{{3000, 3}, {0, 1}},
                        {{100, 257}, {0, 1}},
                        {{20, 1000}, {0, 1}},
                        {{9, 1100}, {0, 1}},
                        {{50, 7, 33}, {0, 1, 0}},
                        {{50, 7, 33}, {0, 1, 7}},
                        {{40, 16, 64}, {0, 64, 1}},
                        {{5, 10, 11, 12}, {0, 0, 12, 1}},
                        {{5, 10, 11, 12}, {0, 1, 0, 10}}};
  for (const Case& c : cases) {
    for (DType t : {DType::kFloat32, DType::kInt8, DType::kFloat16}) {
      for (int threads : {1, 2}) {
        TestTensor x(t, c.sizes, c.strides), y(t, c.sizes), out(t, c.sizes);
        x.randomize(rng);
        y.randomize(rng);
        ASSERT_TRUE(launch(add_of(t), {x.view(), y.view()}, {out.view()}, {}, threads).ok());
        for (int64_t i = 0; i < out.numel(); ++i) {
          TestTensor want(t, {1});
          want.set(0, x.number(i) + y.number(i));
          ASSERT_EQ(out.number(i), want.number(0)) << i;
        }
      }
    }
  }
}

// More buffers than fit on a stack.
TEST(Pointwise, LongPrograms) {
  constexpr int kMembers = 48;
  Builder b;
  E x = b.operand(0), s = b.operand(1), t = b.operand(2);
  expr::OperandType types[] = {tensor_of(DType::kFloat64), scalar_operand(), scalar_operand()};
  const Program* step =
      expr::instantiate(b.finish(expr::sin(x * s) + t), DType::kFloat64, types, DType::kFloat64);
  std::vector<expr::Member> members;
  std::vector<ScalarValue> scalars;
  TestTensor start(DType::kFloat64, {1003}), one(DType::kFloat64, {1003}), all = one;
  std::mt19937_64 rng(8);
  start.randomize(rng);
  one = start;
  for (int m = 0; m < kMembers; ++m) {
    members.push_back({step, {m == 0 ? 0 : -m}, m == kMembers - 1 ? 0 : -1});
    std::vector<ScalarValue> own = {float_scalar(1 + 0.1 * m), float_scalar(0.01 * m)};
    scalars.insert(scalars.end(), own.begin(), own.end());
    ASSERT_TRUE(launch(step, {one.view()}, {one.view()}, own).ok());
  }
  ASSERT_TRUE(launch(expr::merge(members), {start.view()}, {all.view()}, scalars, 2).ok());
  EXPECT_TRUE(std::equal(one.words().begin(), one.words().end(), all.words().begin()));
}

TEST(Pointwise, TransposingCopies) {
  std::mt19937_64 rng(6);
  struct Case {
    std::vector<int64_t> sizes;
    std::vector<int> from, to;  // dimensions from the outermost in memory to the innermost
  };
  const Case cases[] = {{{64, 64}, {1, 0}, {0, 1}},
                        {{100, 37}, {1, 0}, {0, 1}},
                        {{8, 300}, {0, 1}, {1, 0}},
                        {{3, 70, 40}, {0, 2, 1}, {0, 1, 2}},
                        {{3, 70, 40}, {2, 0, 1}, {0, 1, 2}},
                        {{20, 9, 33}, {2, 1, 0}, {0, 1, 2}},
                        {{2, 16, 9, 9}, {0, 2, 3, 1}, {0, 1, 2, 3}},
                        {{2, 16, 9, 9}, {0, 1, 2, 3}, {0, 2, 3, 1}}};
  for (const Case& c : cases) {
    for (DType t : kAllDTypes) {
      expr::OperandType operand[] = {tensor_of(t)};
      const Program* program = expr::instantiate(identity_graph(), t, operand, t);
      TestTensor in(t, c.sizes, strides_of(c.sizes, c.from));
      TestTensor out(t, c.sizes, strides_of(c.sizes, c.to));
      in.randomize(rng);
      ASSERT_TRUE(launch(program, {in.view()}, {out.view()}, {}, 2).ok());
      for (int64_t i = 0; i < in.numel(); ++i) ASSERT_EQ(out.number(i), in.number(i)) << i;
    }
  }
}

// As torch on x86: by way of int32 or int64, whose least value stands for what does not fit.
TEST(Pointwise, FloatToInteger) {
  const double inf = std::numeric_limits<double>::infinity();
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    for (DType from : {DType::kFloat32, DType::kFloat64}) {
      for (DType to : kIntegers) {
        expr::OperandType operand[] = {tensor_of(from)};
        const Program* program = expr::instantiate(identity_graph(), to, operand, to);
        const double values[] = {inf,  -inf, std::nan(""), 1e30,        -1e30,       -1.9,
                                 -1.0, 300,  3e9,          -2147483648, -4294967296, 100.99};
        TestTensor in(from, {12}), out(to, {12}), want(to, {12});
        for (int i = 0; i < 12; ++i) {
          in.set(i, values[i]);
          bool wide = to == DType::kInt64;
          double room = wide ? 0x1p63 : 0x1p31;
          bool fits = values[i] >= -room && values[i] < room;
          int64_t whole = wide ? INT64_MIN : INT32_MIN;
          if (fits) whole = static_cast<int64_t>(values[i]);
          want.set_integer(i, whole);
        }
        ASSERT_TRUE(launch(program, {in.view()}, {out.view()}).ok());
        for (int i = 0; i < 12; ++i) {
          EXPECT_EQ(out.integer(i), want.integer(i)) << dtype_name(to) << " " << values[i];
        }
      }
    }
  }
}

TEST(Pointwise, ScalarsKeepTheirKind) {
  Builder b;
  Graph graph = b.finish(b.operand(0) * b.operand(1));
  auto run = [&](DType t, ScalarValue s) {
    expr::OperandType operands[] = {tensor_of(t), scalar_operand()};
    const Program* program = expr::instantiate(graph, t, operands, t);
    TestTensor x(t, {1}), y(t, {1});
    x.set(0, 1);
    EXPECT_TRUE(launch(program, {x.view()}, {y.view()}, {s}).ok());
    return y.number(0);
  };
  EXPECT_EQ(run(DType::kInt8, int_scalar(300)), 44);  // wraps
  EXPECT_EQ(run(DType::kInt64, int_scalar(INT64_MAX)), static_cast<double>(INT64_MAX));
  EXPECT_EQ(run(DType::kFloat32, float_scalar(0.1)), 0.1f);
  EXPECT_EQ(run(DType::kFloat64, float_scalar(0.1)), 0.1);
  EXPECT_EQ(run(DType::kBFloat16, float_scalar(0.1)), static_cast<float>(BFloat16(0.1f)));
}

// A 16-bit op does not round its scalar: only the result is rounded.
TEST(Pointwise, SixteenBitScalarStaysFloat) {
  Builder b;
  Graph graph = b.finish(b.operand(0) + b.operand(1));
  expr::OperandType operands[] = {tensor_of(DType::kBFloat16), scalar_operand()};
  const Program* program = expr::instantiate(graph, DType::kBFloat16, operands, DType::kFloat32);
  TestTensor x(DType::kBFloat16, {1}), y(DType::kFloat32, {1});
  x.set(0, 1);
  ASSERT_TRUE(launch(program, {x.view()}, {y.view()}, {float_scalar(1e-4)}).ok());
  EXPECT_EQ(y.number(0), 1.0f + 1e-4f);
}

TEST(Pointwise, ZeroDivisionFailsBeforeWriting) {
  for (auto divide : {expr::floor_divide, expr::remainder, expr::fmod}) {
    for (DType t : kIntegers) {
      Builder b;
      Graph graph = b.finish(divide(b.operand(0), b.operand(1)));
      expr::OperandType operands[] = {tensor_of(t), tensor_of(t)};
      const Program* program = expr::instantiate(graph, t, operands, t);
      EXPECT_TRUE(program->can_fail);
      for (int64_t n : {1, 40, 100000}) {
        for (int64_t zero : {int64_t{0}, n - 1, int64_t{-1}}) {
          TestTensor x(t, {n}), y(t, {n}), out(t, {n});
          for (int64_t i = 0; i < n; ++i) {
            x.set_integer(i, i % 50);
            y.set_integer(i, i == zero ? 0 : 7);
            out.set_integer(i, 99);
          }
          absl::Status status = launch(program, {x.view(), y.view()}, {out.view()}, {}, 2);
          if (zero < 0) {
            EXPECT_TRUE(status.ok());
            continue;
          }
          EXPECT_EQ(error_kind(status), ErrorKind::kZeroDivision);
          for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out.integer(i), 99);
        }
      }
      expr::OperandType by_scalar[] = {tensor_of(t), scalar_operand()};
      const Program* scalar = expr::instantiate(graph, t, by_scalar, t);
      TestTensor x(t, {100}), out(t, {100});
      for (int64_t i = 0; i < 100; ++i) x.set_integer(i, i);
      EXPECT_EQ(error_kind(launch(scalar, {x.view()}, {out.view()}, {int_scalar(0)})),
                ErrorKind::kZeroDivision);
      EXPECT_TRUE(launch(scalar, {x.view()}, {out.view()}, {int_scalar(3)}).ok());
    }
  }
  Builder b;
  Graph by_constant = b.finish(expr::floor_divide(b.operand(0), b.constant(4)));
  expr::OperandType operand[] = {tensor_of(DType::kInt32)};
  EXPECT_FALSE(expr::instantiate(by_constant, DType::kInt32, operand, DType::kInt32)->can_fail);
}

TEST(Pointwise, RefusesWhatDoesNotFit) {
  TestTensor a(DType::kFloat32, {4}), b(DType::kFloat64, {4}), c(DType::kFloat32, {5});
  const Program* add = add_of(DType::kFloat32);
  EXPECT_EQ(error_kind(launch(nullptr, {}, {a.view()})), ErrorKind::kInternal);
  EXPECT_EQ(error_kind(launch(add, {a.view()}, {a.view()})), ErrorKind::kInternal);
  EXPECT_EQ(error_kind(launch(add, {a.view(), b.view()}, {a.view()})), ErrorKind::kInternal);
  EXPECT_EQ(error_kind(launch(add, {a.view(), c.view()}, {a.view()})), ErrorKind::kInternal);
  Builder builder;
  Graph exp = builder.finish(expr::exp(builder.operand(0)));
  expr::OperandType operand[] = {tensor_of(DType::kInt32)};
  TestTensor i(DType::kInt32, {4});
  EXPECT_EQ(error_kind(launch(expr::instantiate(exp, DType::kInt32, operand, DType::kInt32),
                              {i.view()}, {i.view()})),
            ErrorKind::kInternal);
}

// Neither the number of threads nor an element's place changes a bit of it.
TEST(Pointwise, ThreadsAndPlaceDoNotMatter) {
  std::mt19937_64 rng(5);
  Builder b;
  E x = b.operand(0), y = b.operand(1);
  Graph graph = b.finish(expr::tanh(x) * expr::exp(y) + expr::pow(expr::abs(x), y) / expr::erf(y));
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    for (DType t : kFloats) {
      expr::OperandType operands[] = {tensor_of(t), tensor_of(t)};
      const Program* program = expr::instantiate(graph, t, operands, t);
      int64_t n = 150001;
      TestTensor a(t, {n}), c(t, {n}), one(t, {n}), two(t, {n});
      a.randomize(rng);
      c.randomize(rng);
      ASSERT_TRUE(launch(program, {a.view(), c.view()}, {one.view()}, {}, 1).ok());
      ASSERT_TRUE(launch(program, {a.view(), c.view()}, {two.view()}, {}, 2).ok());
      EXPECT_TRUE(std::equal(one.words().begin(), one.words().end(), two.words().begin()));
      for (int64_t start : {int64_t{1}, int64_t{33}, int64_t{1000}, n - 1}) {
        int64_t count = std::min<int64_t>(n - start, 77);
        TestTensor part(t, {count});
        TensorView pa = a.view(), pc = c.view();
        for (TensorView* v : {&pa, &pc}) {
          v->data = v->as<char>() + start * dtype_size(t);
          v->sizes[0] = count;
        }
        ASSERT_TRUE(launch(program, {pa, pc}, {part.view()}).ok());
        for (int64_t i = 0; i < count; ++i) {
          double got = part.number(i), want = one.number(start + i);
          ASSERT_TRUE(got == want || (got != got && want != want));
        }
      }
    }
  }
}

TEST(Pointwise, BigStreamedOutputs) {
  for (int64_t n : {int64_t{3} << 20, (int64_t{3} << 20) + 5}) {
    for (int threads : {1, 2}) {
      TestTensor a(DType::kFloat32, {n}), b(DType::kFloat32, {n});
      std::vector<float> room(n + 64, -1.f);
      float* aligned =
          reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
      TensorView out = a.view();
      out.data = aligned;
      for (int64_t i = 0; i < n; ++i) {
        a.raw<float>(i) = static_cast<float>(i);
        b.raw<float>(i) = 0.5f;
      }
      ASSERT_TRUE(launch(add_of(DType::kFloat32), {a.view(), b.view()}, {out}, {}, threads).ok());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(aligned[i], static_cast<float>(i) + 0.5f);
      ASSERT_EQ(aligned[n], -1.f);
    }
  }
}

}  // namespace
}  // namespace gradwire
