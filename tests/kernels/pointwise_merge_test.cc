// A merged Program gives the bits of its members one after another.
#include "tests/kernels/pointwise_fixture.h"

namespace gradwire {
namespace {

using expr::Builder;
using expr::E;
using expr::Graph;
using expr::Prim;
using expr::Program;

template <class T, size_t N>
const T& any(std::mt19937_64& rng, const T (&from)[N]) {
  return from[rng() % N];
}

// A random op of 1 to 4 primitives on 1 to 3 operands, in one of the dtypes' types.
Graph random_graph(std::mt19937_64& rng, DType compute, int operands) {
  static constexpr Prim kFloat1[] = {Prim::kNeg,  Prim::kAbs,       Prim::kSign,  Prim::kSquare,
                                     Prim::kExp,  Prim::kTanh,      Prim::kErf,   Prim::kSigmoid,
                                     Prim::kSqrt, Prim::kRsqrt,     Prim::kFloor, Prim::kRound,
                                     Prim::kSin,  Prim::kReciprocal};
  static constexpr Prim kFloat2[] = {Prim::kAdd,  Prim::kSub,   Prim::kMul,
                                     Prim::kDiv,  Prim::kPow,   Prim::kMinimum,
                                     Prim::kFmax, Prim::kAtan2, Prim::kRemainder};
  static constexpr Prim kInt1[] = {Prim::kNeg, Prim::kAbs, Prim::kSign, Prim::kSquare,
                                   Prim::kBitNot};
  static constexpr Prim kInt2[] = {Prim::kAdd,    Prim::kSub,     Prim::kMul,
                                   Prim::kBitXor, Prim::kMinimum, Prim::kShiftRight};
  static constexpr Prim kBool1[] = {Prim::kLogicalNot};
  static constexpr Prim kBool2[] = {Prim::kLogicalAnd, Prim::kLogicalOr, Prim::kLogicalXor};
  Builder b;
  std::vector<E> values;
  for (int i = 0; i < operands; ++i) values.push_back(b.operand(i));
  auto pick = [&] { return values[rng() % values.size()]; };
  bool is_bool = compute == DType::kBool;
  if (!is_bool && rng() % 3 == 0) values.push_back(b.constant(static_cast<double>(rng() % 5)));
  for (int i = 0, n = 1 + static_cast<int>(rng() % 4); i < n; ++i) {
    bool one = rng() % 2 == 0;
    if (!is_bool && rng() % 5 == 0) {
      values.push_back(select(pick() < pick(), pick(), pick()));
    } else if (is_bool) {
      values.push_back(one ? b.apply(any(rng, kBool1), pick())
                           : b.apply(any(rng, kBool2), pick(), pick()));
    } else if (is_floating(compute)) {
      values.push_back(one ? b.apply(any(rng, kFloat1), pick())
                           : b.apply(any(rng, kFloat2), pick(), pick()));
    } else {
      values.push_back(one ? b.apply(any(rng, kInt1), pick())
                           : b.apply(any(rng, kInt2), pick(), pick()));
    }
  }
  E result = values.back();
  for (int i = 0; i < operands; ++i) {  // every operand counts
    if (!is_bool) result = select(equal(values[i], 100.0), values[i], result);
  }
  Graph graph = b.finish(result);
  graph.operands = operands;
  return graph;
}

struct Case {
  std::vector<TestTensor> inputs;  // of the group
  std::vector<expr::Member> members;
  std::vector<std::vector<ScalarValue>> scalars;  // by member
  std::vector<DType> stored;                      // by member
};

Case random_case(std::mt19937_64& rng, const std::vector<int64_t>& sizes) {
  Case c;
  int64_t rows = sizes[0], columns = sizes[1];
  std::vector<std::vector<int64_t>> patterns = {{columns, 1}, {columns, 1}, {1, rows},
                                                {0, 1},       {1, 0},       {0, 0}};
  int members = 2 + static_cast<int>(rng() % 6);
  for (int m = 0; m < members; ++m) {
    DType compute = any(rng, kAllDTypes);
    int count = 1 + static_cast<int>(rng() % 3);
    std::vector<expr::OperandType> types;
    expr::Member member;
    std::vector<ScalarValue> scalars;
    for (int i = 0; i < count; ++i) {
      if (compute != DType::kBool && rng() % 5 == 0) {
        types.push_back(scalar_operand());
        static constexpr double kScalars[] = {2, 3, 0.5, -1, 1, 1.5};
        bool whole = !is_floating(compute) || rng() % 2 == 0;
        scalars.push_back(whole ? int_scalar(static_cast<int64_t>(rng() % 4))
                                : float_scalar(any(rng, kScalars)));
        continue;
      }
      if (m > 0 && rng() % 3 != 0) {
        int from = static_cast<int>(rng() % m);
        types.push_back(tensor_of(c.stored[from]));
        member.inputs.push_back(-1 - from);
        continue;
      }
      if (!c.inputs.empty() && rng() % 3 == 0) {
        int old = static_cast<int>(rng() % c.inputs.size());
        types.push_back(tensor_of(c.inputs[old].dtype()));
        member.inputs.push_back(old);
        continue;
      }
      DType dtype = rng() % 2 == 0 ? compute : any(rng, kAllDTypes);
      TestTensor input(dtype, sizes, patterns[rng() % patterns.size()]);
      input.randomize(rng);
      types.push_back(tensor_of(dtype));
      member.inputs.push_back(static_cast<int>(c.inputs.size()));
      c.inputs.push_back(std::move(input));
    }
    DType output = rng() % 2 == 0 ? compute : any(rng, kAllDTypes);
    member.program = expr::instantiate(random_graph(rng, compute, count), compute, types, output);
    member.output = rng() % 2 == 0 || m == members - 1 ? 0 : -1;
    c.members.push_back(member);
    c.scalars.push_back(scalars);
    c.stored.push_back(output);
  }
  int outputs = 0;
  for (auto& member : c.members) {
    if (member.output >= 0) member.output = outputs++;
  }
  return c;
}

void run_case(std::mt19937_64& rng, const std::vector<int64_t>& sizes) {
  Case c = random_case(rng, sizes);
  std::vector<TestTensor> values;
  for (size_t m = 0; m < c.members.size(); ++m) {
    values.emplace_back(c.stored[m], sizes);
    std::vector<TensorView> inputs;
    for (int i : c.members[m].inputs) {
      inputs.push_back(i >= 0 ? c.inputs[i].view() : values[-1 - i].view());
    }
    ASSERT_TRUE(launch(c.members[m].program, inputs, {values[m].view()}, c.scalars[m]).ok());
  }
  const Program* merged = expr::merge(c.members);
  EXPECT_EQ(merged, expr::merge(c.members));
  std::vector<TensorView> inputs, outputs;
  std::vector<TestTensor> got;
  std::vector<ScalarValue> scalars;
  for (TestTensor& input : c.inputs) inputs.push_back(input.view());
  inputs.resize(merged->inputs);
  for (size_t m = 0; m < c.members.size(); ++m) {
    scalars.insert(scalars.end(), c.scalars[m].begin(), c.scalars[m].end());
    if (c.members[m].output >= 0) got.emplace_back(c.stored[m], sizes);
  }
  for (TestTensor& tensor : got) outputs.push_back(tensor.view());
  absl::Status status = launch(merged, inputs, outputs, scalars, 2);
  ASSERT_TRUE(status.ok()) << status;
  for (size_t m = 0; m < c.members.size(); ++m) {
    if (c.members[m].output < 0) continue;
    TestTensor& merged_value = got[c.members[m].output];
    ASSERT_TRUE(std::equal(merged_value.words().begin(), merged_value.words().end(),
                           values[m].words().begin()))
        << "member " << m << " of\n"
        << to_string(*merged);
  }
}

TEST(PointwiseMerge, BitwiseLikeItsMembers) {
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    std::mt19937_64 rng(11);
    for (int i = 0; i < 400; ++i) {
      int64_t rows = 1 + static_cast<int64_t>(rng() % 20);
      run_case(rng, {rows, 1 + static_cast<int64_t>(rng() % 60)});
      if (HasFatalFailure()) return;
    }
    for (int i = 0; i < 10; ++i) {
      run_case(rng, {300, 301});
      if (HasFatalFailure()) return;
    }
  }
}

// Pairs that the interpreter joins in one loop, NaNs' bits included.
TEST(PointwiseMerge, PairsOfArithmetic) {
  constexpr Prim kArithmetic[] = {Prim::kAdd, Prim::kSub, Prim::kMul, Prim::kDiv};
  for (cpu::Isa isa : isas()) {
    IsaGuard guard(isa);
    std::mt19937_64 rng(12);
    for (DType t : {DType::kFloat32, DType::kFloat64}) {
      TestTensor a(t, {500}), b(t, {500}), c(t, {500}), inner(t, {500}), one(t, {500}),
          two(t, {500});
      for (TestTensor* x : {&a, &b, &c}) {
        x->randomize(rng);
        for (int i = 0; i < 500; ++i) {
          if (rng() % 3 != 0) continue;
          if (t == DType::kFloat32) {
            x->raw<uint32_t>(i) = 0x7fc00000u | static_cast<uint32_t>(rng() & 0x803fffffu);
          } else {
            x->raw<uint64_t>(i) = 0x7ff8000000000000u | (rng() & 0x8007ffffffffffffu);
          }
        }
      }
      for (Prim first : kArithmetic) {
        for (Prim second : kArithmetic) {
          for (bool left : {true, false}) {
            auto graph_of = [](Prim prim) {
              Builder builder;
              E x = builder.operand(0), y = builder.operand(1);
              return builder.finish(builder.apply(prim, x, y));
            };
            expr::OperandType types[] = {tensor_of(t), tensor_of(t)};
            const Program* p = expr::instantiate(graph_of(first), t, types, t);
            const Program* q = expr::instantiate(graph_of(second), t, types, t);
            auto inputs = left ? std::vector<int>{-1, 2} : std::vector<int>{2, -1};
            expr::Member members[] = {{p, {0, 1}, -1}, {q, inputs, 0}};
            ASSERT_TRUE(launch(p, {a.view(), b.view()}, {inner.view()}).ok());
            auto outer = left ? std::vector<TensorView>{inner.view(), c.view()}
                              : std::vector<TensorView>{c.view(), inner.view()};
            ASSERT_TRUE(launch(q, outer, {one.view()}).ok());
            ASSERT_TRUE(
                launch(expr::merge(members), {a.view(), b.view(), c.view()}, {two.view()}).ok());
            ASSERT_TRUE(std::equal(one.words().begin(), one.words().end(), two.words().begin()))
                << to_string(*expr::merge(members));
          }
        }
      }
    }
  }
}

TEST(PointwiseMerge, ProgramsAreInterned) {
  Builder b;
  Graph graph = b.finish(b.operand(0) * 2.0);
  expr::OperandType operand[] = {tensor_of(DType::kFloat32)};
  const Program* twice = expr::instantiate(graph, DType::kFloat32, operand, DType::kFloat32);
  EXPECT_EQ(twice, expr::instantiate(graph, DType::kFloat32, operand, DType::kFloat32));
  expr::OperandType other[] = {tensor_of(DType::kFloat64)};
  EXPECT_NE(twice, expr::instantiate(graph, DType::kFloat32, other, DType::kFloat32));
  expr::Member alone[] = {{twice, {0}, 0}};
  const Program* merged = expr::merge(alone);
  EXPECT_EQ(merged->hash, expr::merge(alone)->hash);
  expr::Member chain[] = {{twice, {0}, -1}, {twice, {-1}, 0}};
  EXPECT_NE(expr::merge(chain), merged);
  EXPECT_EQ(expr::merge(chain)->outputs, 1);
  EXPECT_EQ(expr::merge(chain)->inputs, 1);
}

}  // namespace
}  // namespace gradwire
