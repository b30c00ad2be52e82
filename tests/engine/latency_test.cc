// Dispatch never waits for the device: with seconds of work queued in one session, its commands
// are all applied at once and another session's questions are answered from dispatch.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/engine/session_client.h"

namespace gradwire::testing {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

TEST(Latency, AQueueFullOfWorkHoldsNobodyUp) {
  WorkerOptions options;
  options.threads = 2;
  auto worker = std::move(Worker::create(options).value());
  SessionClient busy(*worker), other(*worker);
  constexpr int64_t kSide = 1024;
  Id x = busy.call("full", {}, {IntList{kSide, kSide}, 0.001, DType::kFloat32});
  // One product's time on this machine says how many make five seconds.
  Id warm = busy.call("matmul", {x, x});
  busy.read(warm);
  auto start = Clock::now();
  busy.read(busy.call("matmul", {x, x}));
  double one = milliseconds_since(start);
  int count = std::min(20000, static_cast<int>(5000 / one) + 1);

  std::vector<Id> products;
  start = Clock::now();
  for (int i = 0; i < count; ++i) products.push_back(busy.call("matmul", {x, x}));
  double applied = milliseconds_since(start);
  EXPECT_GT(busy.state().queue->depth(), static_cast<uint64_t>(count) / 2);
  EXPECT_LT(applied, 2500) << "dispatch waited for the device";

  std::vector<double> waits;
  Id y = other.floats({2, 3}, std::vector<float>(6, 1.0f));
  for (int i = 0; i < 9; ++i) {
    Id z = other.call("mul", {y, 0}, {{}, 2.0});
    start = Clock::now();
    other.send("session.meta", {z}, {}, 0);
    Reply reply = other.answer();
    waits.push_back(milliseconds_since(start));
    ASSERT_TRUE(std::holds_alternative<MetasReply>(reply));
    EXPECT_EQ(shape_text(std::get<MetasReply>(reply).metas[0].sizes), "[2, 3]");
  }
  std::sort(waits.begin(), waits.end());
  EXPECT_LT(waits[waits.size() / 2], 50) << "milliseconds for a meta reply";
  // A small read takes turns with the long queue instead of standing behind it.
  start = Clock::now();
  EXPECT_EQ(other.read_floats(other.call("mul", {y, 0}, {{}, 2.0})), std::vector<float>(6, 2.0f));
  EXPECT_LT(milliseconds_since(start), 2500);

  // Cancel drops the rest; what was dropped says so, and the slot goes on.
  start = Clock::now();
  EXPECT_GT(busy.dispatcher().cancel(), 0u);
  HostTensor last = busy.read(products.back());
  EXPECT_LT(milliseconds_since(start), 2500);
  ASSERT_TRUE(last.error);
  EXPECT_EQ(last.error->kind, ErrorKind::kCancelled);
  EXPECT_FALSE(busy.read(busy.call("add", {x, x}, {{}, {}, 1})).error);
}

}  // namespace
}  // namespace gradwire::testing
