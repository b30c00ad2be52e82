// A plug-in backend trains like the CPU, bit for bit, though its queue runs late and its memory is
// closed to everybody else.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/engine/session_client.h"

namespace gradwire::testing {
namespace {

std::unique_ptr<Worker> make_worker(const std::string& backend, const std::string& options,
                                    uint64_t memory_limit = 0) {
  WorkerOptions o;
  o.backend = backend;
  o.backend_options = options;
  o.threads = 1;
  o.memory_limit = memory_limit;
  auto worker = Worker::create(o);
  EXPECT_TRUE(worker.ok()) << worker.status();
  return worker.ok() ? std::move(*worker) : nullptr;
}

std::vector<float> random_floats(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}

// Everything that was read on the way, as bytes.
std::string train_mlp(SessionClient& c, const std::string& optimizer) {
  auto leaf = [&](IntList shape, uint64_t seed) {
    size_t n = 1;
    for (int64_t s : shape) n *= static_cast<size_t>(s);
    Id id = c.floats(shape, random_floats(n, seed));
    c.send("session.requires_grad_", {id}, {true}, 0);
    return id;
  };
  std::vector<Id> params{leaf({32, 20}, 1), leaf({32}, 2), leaf({5, 32}, 3), leaf({5}, 4)};
  Id opt = optimizer == "optim.SGD" ? c.call(optimizer, params, {0.05, 0.9, 0.0, 1e-4, true, false})
                                    : c.call(optimizer, params, {0.01});
  std::string seen;
  std::vector<Id> losses;  // read at the end, so that nothing waits for the late queue on the way
  auto note = [&](Id id) {
    HostTensor value = c.read(id);
    ASSERT_FALSE(value.error) << value.error->message;
    seen += *value.data;
  };
  for (int step = 0; step < 30; ++step) {
    Id x = c.floats({16, 20}, random_floats(320, 100 + step));
    std::vector<int64_t> labels(16);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>((i + step) % 5);
    Id y = c.constant(DType::kInt64, {16}, labels.data(), labels.size() * 8);
    Id h = c.call("nn.functional.linear", {x, params[0], params[1]});
    Id r = c.call("relu", {h});
    Id z = c.call("nn.functional.linear", {r, params[2], params[3]});
    Id loss = c.call("nn.functional.cross_entropy", {z, y, 0});
    c.send("session.optimizer_zero_grad", {opt}, {true}, 0);
    c.send("session.backward", {loss}, {1, 0, 0}, 0);
    c.send("session.optimizer_step", {opt}, {}, 0);
    if (step % 7 == 0) note(loss);
    losses.push_back(loss);
    c.release({x, y, h, r, z});
  }
  for (Id loss : losses) note(loss);
  for (Id p : params) note(p);
  return seen;
}

class BackendTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BackendTest, TrainsLikeTheCpu) {
  auto cpu = make_worker("cpu", "");
  ASSERT_TRUE(cpu);
  std::string expected;
  {
    SessionClient c(*cpu);
    expected = train_mlp(c, GetParam());
  }
  ASSERT_FALSE(expected.empty());
  for (const char* seed : {"1", "2", "3", "4"}) {
    auto late = make_worker(LATE_BACKEND, seed);
    ASSERT_TRUE(late);
    EXPECT_EQ(late->device(), "late");
    SessionClient c(*late);
    EXPECT_EQ(train_mlp(c, GetParam()), expected) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, BackendTest, ::testing::Values("optim.SGD", "optim.Adam"));

TEST(LateBackend, MemoryIsReusedOnlyInOrder) {
  auto late = make_worker(LATE_BACKEND, "9");
  ASSERT_TRUE(late);
  SessionClient c(*late);
  std::vector<float> base = random_floats(5000, 7);
  Id x = c.floats({5000}, base);
  for (int i = 0; i < 50; ++i) {
    Id y = c.call("mul", {x, 0}, {{}, 2.0});
    Id z = c.call("cumsum", {y}, {0, {}});
    Id up = c.floats({5000}, random_floats(5000, 50 + i));
    c.in_place("add", {up, y}, {{}, {}, 1});
    std::vector<float> read = c.read_floats(up);
    std::vector<float> own = random_floats(5000, 50 + i);
    for (size_t k = 0; k < own.size(); ++k) ASSERT_EQ(read[k], own[k] + base[k] * 2) << i;
    c.release({y, z, up});
  }
}

TEST(LateBackend, ErrorsOfKernelsPoisonWhatDepends) {
  auto late = make_worker(LATE_BACKEND, "5");
  ASSERT_TRUE(late);
  SessionClient c(*late);
  Id weight = c.floats({4, 2}, random_floats(8, 1));
  int64_t bad = 9;
  Id index = c.constant(DType::kInt64, {1}, &bad, sizeof bad);
  Id rows = c.call("nn.functional.embedding", {weight, index});
  Id twice = c.call("mul", {rows, 0}, {{}, 2.0});
  Id other = c.call("sum", {weight});
  HostTensor value = c.read(twice);
  ASSERT_TRUE(value.error) << (value.data ? value.data->size() : 0);
  EXPECT_EQ(value.error->kind, ErrorKind::kIndex);
  EXPECT_EQ(value.error->op, "nn.functional.embedding");
  EXPECT_EQ(value.error->site, "test.py:1 in main");
  EXPECT_FALSE(c.read(other).error);
}

TEST(LateBackend, AStepFedByAFailedKernelChangesNothing) {
  auto late = make_worker(LATE_BACKEND, "6");
  ASSERT_TRUE(late);
  SessionClient c(*late);
  std::vector<float> start = random_floats(8, 1);
  Id weight = c.floats({4, 2}, start);
  c.send("session.requires_grad_", {weight}, {true}, 0);
  Id opt = c.call("optim.SGD", {weight}, {0.1});
  auto step = [&](int64_t row) {
    Id index = c.constant(DType::kInt64, {1}, &row, sizeof row);
    Id loss = c.call("sum", {c.call("nn.functional.embedding", {weight, index})});
    c.send("session.optimizer_zero_grad", {opt}, {true}, 0);
    c.send("session.backward", {loss}, {1, 0, 0}, 0);
    c.send("session.optimizer_step", {opt}, {}, 0);
  };
  step(9);
  step(2);
  // The bad step left the weight alone and the next one goes on from there.
  std::vector<float> expected = start;
  expected[4] -= 0.1f;
  expected[5] -= 0.1f;
  EXPECT_EQ(c.read_floats(weight), expected);
  EXPECT_FALSE(c.refused().empty());
}

// A limit so low that freed blocks go back to the device again and again, under a late queue.
TEST(LateBackend, TrimmingWaitsForTheDevice) {
  auto late = make_worker(LATE_BACKEND, "7", 256 << 10);
  ASSERT_TRUE(late);
  SessionClient c(*late);
  Id total = c.floats({1}, {0});
  float expected = 0;
  for (int i = 0; i < 60; ++i) {
    int64_t n = 4000 + 700 * (i % 9);
    Id x = c.call("full", {}, {IntList{n}, 1.0, DType::kFloat32});
    Id y = c.call("cumsum", {x}, {0, {}});
    Id most = c.call("amax", {y}, {IntList{0}, true});
    c.in_place("add", {total, most}, {{}, {}, 1});
    c.release({x, y, most});
    expected += static_cast<float>(n);
    if (i % 3 == 0) {
      EXPECT_EQ(c.read_floats(total), std::vector<float>{expected}) << i;
    }
  }
  EXPECT_EQ(c.read_floats(total), std::vector<float>{expected});
}

TEST(LateBackend, SynchronizeWaitsForTheDevice) {
  auto late = make_worker(LATE_BACKEND, "8");
  ASSERT_TRUE(late);
  SessionClient c(*late);
  Id x = c.floats({64, 64}, random_floats(4096, 3));
  for (int i = 0; i < 20; ++i) {
    Id y = c.call("matmul", {x, x});
    c.send("session.read", {y}, {}, 0);
    uint64_t read = c.number();
    c.send("session.synchronize", {}, {}, 0);
    c.answer();
    EXPECT_TRUE(c.answered(read)) << i;
    c.release({y});
  }
}

TEST(LateBackend, SessionsEndWithWorkUnderWay) {
  for (int i = 0; i < 20; ++i) {
    auto late = make_worker(LATE_BACKEND, std::to_string(i));
    ASSERT_TRUE(late);
    SessionClient stays(*late);
    Id kept = stays.floats({2}, {1, 2});
    {
      SessionClient c(*late);
      Id x = c.floats({64, 64}, random_floats(4096, 3));
      for (int k = 0; k < 10 + i; ++k) {
        Id y = c.call("matmul", {x, x});
        c.send("session.read", {y}, {}, 0);
        if (k % 2) c.release({y});
      }
      // An upload that never comes holds up what stands behind it.
      if (i % 2) c.call("session.upload", {}, {1, DType::kFloat32, IntList{4}});
      c.send("session.read", {x}, {}, 0);
    }
    EXPECT_EQ(stays.read_floats(kept), (std::vector<float>{1, 2}));
    stays.send("session.read", {kept}, {}, 0);
  }
}

TEST(Plugin, ABadPathIsAnError) {
  WorkerOptions o;
  o.backend = "no_such_backend.so";
  EXPECT_FALSE(Worker::create(o).ok());
}

}  // namespace
}  // namespace gradwire::testing
