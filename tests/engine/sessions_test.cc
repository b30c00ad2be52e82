// Sessions that run side by side, each on a strand of its own, see nothing of each other.
#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/sequence_generator.h"

namespace gradwire::testing {
namespace {

// A few steps of a small network; the losses and weights as bytes.
std::string train(SessionClient& c) {
  auto values = [](size_t n) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i % 7) / 8 - 0.375f;
    return v;
  };
  auto leaf = [&](const IntList& shape, size_t n) {
    Id id = c.floats(shape, values(n));
    c.send("session.requires_grad_", {id}, {true}, 0);
    return id;
  };
  Id weight = leaf({3, 4}, 12), bias = leaf({3}, 3);
  Id opt = c.call("optim.Adam", {weight, bias}, {0.01});
  Id x = c.floats({5, 4}, values(20));
  std::vector<int64_t> labels{0, 1, 2, 1, 0};
  Id y = c.constant(DType::kInt64, {5}, labels.data(), labels.size() * 8);
  std::string seen;
  for (int step = 0; step < 5; ++step) {
    Id h = c.call("tanh", {c.call("nn.functional.linear", {x, weight, bias})});
    Id loss = c.call("nn.functional.cross_entropy", {h, y, 0});
    c.send("session.optimizer_zero_grad", {opt}, {true}, 0);
    c.send("session.backward", {loss}, {1, 0, 0}, 0);
    c.send("session.optimizer_step", {opt}, {}, 0);
    seen += *c.read(loss).data;
  }
  return seen + *c.read(weight).data + *c.read(bias).data;
}

std::string run(Worker& worker, uint64_t first_seed) {
  SessionClient client(worker);
  std::string seen = train(client);
  for (uint64_t seed = first_seed; seed < first_seed + 25; ++seed) {
    seen += SequenceGenerator(client, seed).run();
  }
  return seen;
}

TEST(Sessions, SideBySideGiveWhatTheyGiveAlone) {
  constexpr int kSessions = 4;
  auto worker = std::move(Worker::create({.threads = 2}).value());
  std::string together[kSessions];
  std::vector<std::thread> strands;
  for (int i = 0; i < kSessions; ++i) {
    strands.emplace_back([&, i] { together[i] = run(*worker, 1 + 25 * i); });
  }
  for (std::thread& strand : strands) strand.join();
  EXPECT_EQ(worker->allocator().used(), 0u);
  for (int i = 0; i < kSessions; ++i) {
    EXPECT_EQ(together[i], run(*worker, 1 + 25 * i)) << "session " << i;
  }
}

}  // namespace
}  // namespace gradwire::testing
