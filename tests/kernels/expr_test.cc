#include "kernels/expr/expr.h"

#include <thread>

#include "tests/kernels/pointwise_fixture.h"

namespace gradwire::expr {
namespace {

TEST(Expr, BuilderSharesEqualNodesAndDropsDeadOnes) {
  Builder b;
  E x = b.operand(0);
  E unused = exp(x);
  (void)unused;
  Graph graph = b.finish(sigmoid(x) * sigmoid(x) + 1.0);
  EXPECT_EQ(to_string(graph),
            "%0 = operand 0\n%1 = sigmoid %0\n%2 = mul %1 %1\n%3 = constant 1\n%4 = add %2 %3\n"
            "return %4\n");
  EXPECT_EQ(graph.operands, 1);
}

TEST(Expr, BoolNodesAreMarked) {
  Builder b;
  E mask = b.operand(1, true);
  Graph graph = b.finish(select(logical_and(mask, b.operand(0) < 2.0), b.operand(0), 0.0));
  EXPECT_EQ(graph.operands, 2);
  int bools = 0;
  for (const Node& node : graph.nodes) bools += node.is_bool;
  EXPECT_EQ(bools, 3);
}

TEST(Expr, ReadsAndRename) {
  Builder b;
  Graph graph = b.finish(b.operand(0) * b.operand(2));
  EXPECT_EQ(reads(graph), (std::vector<bool>{true, false, true}));
  const int map[] = {1, -1, 0};
  Graph renamed = rename_operands(graph, map, 2);
  EXPECT_EQ(renamed.operands, 2);
  EXPECT_EQ(reads(renamed), (std::vector<bool>{true, true}));
}

TEST(Expr, DerivativesSaveLittle) {
  auto saved = [](E (*f)(E)) {
    Builder b;
    return reads(derivative(b.finish(f(b.operand(0))), 0));
  };
  const std::vector<bool> output_only = {false, true, true};
  const std::vector<bool> input_only = {true, false, true};
  EXPECT_EQ(saved(exp), output_only);
  EXPECT_EQ(saved(tanh), output_only);
  EXPECT_EQ(saved(sigmoid), output_only);
  EXPECT_EQ(saved(sqrt), output_only);
  EXPECT_EQ(saved(reciprocal), output_only);
  EXPECT_EQ(saved(sin), input_only);
  EXPECT_EQ(saved(floor), (std::vector<bool>{false, false, false}));
  Builder b;
  Graph sum = b.finish(b.operand(0) + b.operand(1));
  EXPECT_EQ(to_string(derivative(sum, 0)), "%0 = operand 3\nreturn %0\n");
  EXPECT_EQ(to_string(derivative(sum, 7)), "%0 = constant 0\nreturn %0\n");
  EXPECT_EQ(derivative(sum, 0).operands, 4);
}

TEST(Expr, ProgramsListed) {
  Builder b;
  E x = b.operand(0), y = b.operand(1);
  Graph graph = b.finish(x * y + 0.5);
  OperandType operands[] = {tensor_of(DType::kInt32), scalar_operand()};
  EXPECT_EQ(to_string(*instantiate(graph, DType::kBFloat16, operands, DType::kBFloat16)),
            "r0 = load 0 int32\nr3 = scalar 0 float32\nr5 = constant 0.5 float32\n"
            "r1 = cast.float32 from int32 r0\nr2 = round_to_16.float32 from bfloat16 r1\n"
            "r4 = mul.float32 r2 r3\nr6 = add.float32 r4 r5\nstore 0 bfloat16 r6\n");
}

TEST(Expr, InterningFromManyThreads) {
  std::vector<const Program*> made(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&made, t] {
      for (int i = 0; i < 200; ++i) {
        Builder b;
        Graph graph = b.finish(b.operand(0) * (1000.0 + i));
        OperandType operand[] = {tensor_of(DType::kFloat32)};
        made[t] = instantiate(graph, DType::kFloat32, operand, DType::kFloat32);
        Member members[] = {{made[t], {0}, -1}, {made[t], {-1}, 0}};
        made[t] = merge(members);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Program* program : made) EXPECT_EQ(program, made[0]);
}

}  // namespace
}  // namespace gradwire::expr
