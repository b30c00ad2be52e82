// The tape: faults that must be told apart, in-place writes through views, long graphs, and steps
// that are all or nothing.
#include <gtest/gtest.h>

#include "tests/engine/session_client.h"

namespace gradwire::testing {
namespace {

class AutogradTest : public ::testing::Test {
 protected:
  AutogradTest() : worker_(std::move(Worker::create({.threads = 1}).value())), c(*worker_) {}

  Id leaf(const IntList& shape, const std::vector<float>& values) {
    Id id = c.floats(shape, values);
    c.send("session.requires_grad_", {id}, {true}, 0);
    return id;
  }
  void backward(Id root) { c.send("session.backward", {root}, {1, 0, 0}, 0); }
  std::vector<float> grad(Id id) {
    Id g = c.send("session.grad", {id}, {}, 1)[0];
    Reply reply = c.answer();
    auto* metas = std::get_if<MetasReply>(&reply);
    if (!metas || !metas->metas[0].defined) return {};
    return c.read_floats(g);
  }
  std::string only_refusal() {
    std::vector<ErrorRef> errors = c.refused();
    EXPECT_EQ(errors.size(), 1u);
    return errors.empty() ? "" : errors[0]->message;
  }

  std::unique_ptr<Worker> worker_;
  SessionClient c;
};

TEST_F(AutogradTest, SecondBackwardIsRefusedAndGradientsStay) {
  Id x = leaf({2}, {1, 2});
  Id y = c.call("sum", {c.call("mul", {x, x})});
  backward(y);
  EXPECT_EQ(grad(x), (std::vector<float>{2, 4}));
  backward(y);
  EXPECT_NE(only_refusal().find("second time"), std::string::npos);
  EXPECT_EQ(grad(x), (std::vector<float>{2, 4}));
}

TEST_F(AutogradTest, RetainGraphAccumulates) {
  Id x = leaf({2}, {1, 2});
  Id y = c.call("sum", {c.call("mul", {x, x})});
  c.send("session.backward", {y}, {1, 0, 0, true}, 0);
  backward(y);
  EXPECT_EQ(grad(x), (std::vector<float>{4, 8}));
}

TEST_F(AutogradTest, AChangedSavedTensorIsFound) {
  Id x = leaf({2}, {1, 2});
  Id h = c.call("mul", {x, 0}, {{}, 3.0});
  Id y = c.call("sum", {c.call("mul", {h, h})});
  c.in_place("add", {h, 0}, {{}, 1.0, 1});
  backward(y);
  EXPECT_NE(only_refusal().find("modified by an inplace operation"), std::string::npos);
  EXPECT_EQ(grad(x), (std::vector<float>{}));
}

TEST_F(AutogradTest, InPlaceOnALeafIsRefused) {
  Id x = leaf({2}, {1, 2});
  c.in_place("add", {x, 0}, {{}, 1.0, 1});
  EXPECT_NE(only_refusal().find("leaf Variable that requires grad"), std::string::npos);
  c.in_place("add", {c.call("select", {x}, {0, 0}), 0}, {{}, 1.0, 1});
  EXPECT_NE(only_refusal().find("view of a leaf"), std::string::npos);
  EXPECT_EQ(c.read_floats(x), (std::vector<float>{1, 2}));
}

TEST_F(AutogradTest, InPlaceThroughAViewRewritesTheBase) {
  // y = 2x; y[1] *= y[0] * 5; sum(y): d/dx0 = 2 + 20 x1, d/dx1 = 20 x0.
  Id x = leaf({2}, {3, 4});
  Id y = c.call("mul", {x, 0}, {{}, 2.0});
  Id first = c.call("mul", {c.call("select", {y}, {0, 0}), 0}, {{}, 5.0});
  Id second = c.call("select", {y}, {0, 1});
  c.in_place("mul", {second, first});
  Id total = c.call("sum", {y});
  EXPECT_EQ(c.read_floats(total), (std::vector<float>{6 + 8 * 30}));
  backward(total);
  EXPECT_EQ(grad(x), (std::vector<float>{2 + 20 * 4, 20 * 3}));
}

TEST_F(AutogradTest, AViewMadeBeforeTheWriteFollows) {
  Id x = leaf({2}, {3, 4});
  Id y = c.call("mul", {x, 0}, {{}, 2.0});
  Id view = c.call("slice", {y}, {0, 0, 2, 1});
  c.in_place("mul", {y, 0}, {{}, 7.0});
  backward(c.call("sum", {view}));
  EXPECT_EQ(grad(x), (std::vector<float>{14, 14}));
}

TEST_F(AutogradTest, GradientsOfGradients) {
  Id x = leaf({2}, {2, 3});
  Id y = c.call("sum", {c.call("mul", {c.call("mul", {x, x}), x})});
  Id g = c.send("session.autograd_grad", {y, x}, {1, 1, 0, {}, true, false}, 1)[0];
  c.answer();
  EXPECT_EQ(c.read_floats(g), (std::vector<float>{12, 27}));
  Id h =
      c.send("session.autograd_grad", {c.call("sum", {g}), x}, {1, 1, 0, {}, false, false}, 1)[0];
  c.answer();
  EXPECT_EQ(c.read_floats(h), (std::vector<float>{12, 18}));
}

// A Function of one input whose backward the test answers.
TEST_F(AutogradTest, AFunctionAsksItsClient) {
  Id x = leaf({2}, {1, 2});
  Id h = c.call("mul", {x, 0}, {{}, 3.0});
  c.send("session.set_grad_mode", {}, {false}, 0);
  Id y = c.call("exp", {h});
  c.send("session.set_grad_mode", {}, {true}, 0);
  c.send("session.function", {h, y, h}, {1, 1, 1, 77, "Exp", IntList{0}, IntList{}, true}, 0);
  Id total = c.call("sum", {y});
  c.send("session.backward_watched", {total}, {1, 0, 0}, 0);
  Reply reply = c.answer();
  auto* asked = std::get_if<CallbackReply>(&reply);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->code, 77u);
  EXPECT_EQ(asked->kind, CallbackReply::Kind::kFunction);
  EXPECT_EQ(asked->split, 1u);
  ASSERT_EQ(asked->tensors.size(), 2u);
  EXPECT_EQ(c.read_floats(asked->tensors[1]), (std::vector<float>{3, 6}));
  Id answer = c.call("mul", {asked->tensors[0], 0}, {{}, 10.0});
  c.send("session.callback_return", {answer}, {static_cast<int64_t>(asked->callback)}, 0);
  EXPECT_TRUE(std::get_if<MetasReply>(&static_cast<const Reply&>(reply = c.answer())));
  EXPECT_EQ(grad(x), (std::vector<float>{30, 30}));
}

TEST_F(AutogradTest, AnswersOfTheWrongKindEndTheRun) {
  Id x = leaf({2}, {1, 2});
  c.send("session.tensor_hook", {x}, {5, false}, 0);
  Id y = c.call("sum", {x});
  auto ask = [&] {
    c.send("session.backward_watched", {y}, {1, 0, 0}, 0);
    Reply reply = c.answer();
    return static_cast<int64_t>(std::get<CallbackReply>(reply).callback);
  };
  auto refused = [&](std::vector<Id> results, int64_t callback) {
    c.send("session.callback_return", std::move(results), {callback}, 0);
    Reply reply = c.answer();
    auto* error = std::get_if<ErrorReply>(&reply);
    return error ? error->error->message : "";
  };
  EXPECT_NE(refused({c.floats({3}, {1, 2, 3})}, ask()).find("changed the size"), std::string::npos);
  EXPECT_NE(refused({x, x}, ask()).find("incorrect number"), std::string::npos);
  int64_t callback = ask();
  EXPECT_NE(refused({}, callback + 1).find("no backward waits"), std::string::npos);
  c.send("session.callback_abort", {}, {callback}, 0);
  EXPECT_NE(refused({}, callback).find("no backward waits"), std::string::npos);
  backward(y);
  EXPECT_NE(only_refusal().find("backward_watched"), std::string::npos);
  c.send("session.remove_hook", {}, {5}, 0);
  backward(y);
  EXPECT_EQ(grad(x), (std::vector<float>{1, 1}));
}

TEST_F(AutogradTest, LongGraphsAreFreedWithoutRecursion) {
  constexpr int kNodes = 200000;
  Id x = leaf({1}, {1});
  Id y = c.call("mul", {x, 0}, {{}, 1.0});
  for (int i = 0; i < kNodes; ++i) {
    Id next = c.call("neg", {y});
    c.release({y});
    y = next;
  }
  backward(y);
  EXPECT_EQ(grad(x), (std::vector<float>{1}));
  c.release({y});
  EXPECT_EQ(c.read_floats(x), (std::vector<float>{1}));
}

TEST_F(AutogradTest, LongChainsOfGradientsAreFreedWithoutRecursion) {
  constexpr int kTensors = 200000;
  Id x = c.floats({1}, {1});
  for (int i = 0; i < kTensors; ++i) {
    Id next = c.floats({1}, {1});
    c.send("session.set_grad", {next, x}, {}, 0);
    c.release({x});
    x = next;
  }
  c.release({x});
  Id y = c.floats({1}, {2});
  EXPECT_EQ(c.read_floats(y), (std::vector<float>{2}));
  c.release({y});
  c.send("session.synchronize", {}, {}, 0);
  c.answer();
  EXPECT_EQ(c.state().account->used(), 0u);
}

// Tensors that lead back to themselves outlive their handles, but not the session.
TEST_F(AutogradTest, TheEndOfASessionFreesCycles) {
  auto other = std::make_unique<SessionClient>(*worker_);
  auto leaf = [&] {
    Id id = other->floats({2}, {1, 2});
    other->send("session.requires_grad_", {id}, {true}, 0);
    return id;
  };
  Id x = leaf(), y = leaf(), z = leaf();
  other->send("session.set_grad", {x, x}, {}, 0);
  other->send("session.set_grad", {y, z}, {}, 0);
  other->send("session.set_grad", {z, other->call("slice", {y}, {0, 0, 2, 1})}, {}, 0);
  // A gradient with a graph.
  Id w = leaf();
  Id square = other->call("sum", {other->call("mul", {other->call("mul", {w, w}), w})});
  other->send("session.backward", {square}, {1, 0, 0, {}, true}, 0);
  // A leaf whose base was made from it.
  Id base = other->floats({2}, {0, 0});
  Id part = other->call("slice", {base}, {0, 0, 2, 1});
  other->send("session.requires_grad_", {part}, {true}, 0);
  other->in_place("add", {base, part}, {{}, {}, 1});
  EXPECT_TRUE(other->refused().empty());
  EXPECT_EQ(other->read_floats(w), (std::vector<float>{1, 2}));
  EXPECT_GT(worker_->allocator().used(), 0u);
  other.reset();
  EXPECT_EQ(worker_->allocator().used(), 0u);
}

TEST_F(AutogradTest, AStepIsAllOrNothingAcrossGroups) {
  Id good = leaf({2}, {1, 2}), bad = leaf({2, 2}, {1, 2, 3, 4});
  Id opt = c.call("optim.Adam", {good}, {0.5});
  c.send("session.optimizer_add_group", {opt, bad}, {FloatList{0.5, 0.9, 0.999, 1e-8, 0, 0, 0}}, 0);
  auto step = [&](int64_t row) {
    c.send("session.optimizer_zero_grad", {opt}, {true}, 0);
    Id index = c.constant(DType::kInt64, {1}, &row, sizeof row);
    Id picked = c.call("nn.functional.embedding", {bad, index});
    backward(c.call("add", {c.call("sum", {picked}), c.call("sum", {good})}, {{}, {}, 1}));
    c.send("session.optimizer_step", {opt}, {}, 0);
  };
  step(0);
  std::vector<float> good_before = c.read_floats(good), bad_before = c.read_floats(bad);
  EXPECT_NE(good_before, (std::vector<float>{1, 2}));
  std::vector<Id> state = c.send("session.optimizer_state", {opt}, {0}, 3);
  c.answer();
  std::vector<float> moment = c.read_floats(state[1]);
  step(9);  // out of range: found by the kernel, long after dispatch
  EXPECT_EQ(c.read_floats(good), good_before);
  EXPECT_EQ(c.read_floats(bad), bad_before);
  state = c.send("session.optimizer_state", {opt}, {0}, 3);
  c.answer();
  EXPECT_EQ(c.read_floats(state[0]), (std::vector<float>{1}));
  EXPECT_EQ(c.read_floats(state[1]), moment);
  step(1);
  EXPECT_NE(c.read_floats(good), good_before);
}

}  // namespace
}  // namespace gradwire::testing
