// Fusion cannot be seen in the bits: the same programs with fusion off, on, and on two threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/sequence_generator.h"

namespace gradwire::testing {
namespace {

constexpr uint64_t kSequences = 10000;

std::unique_ptr<Worker> make_worker(int threads, bool fusion) {
  WorkerOptions options;
  options.threads = threads;
  options.fusion = fusion;
  return std::move(Worker::create(options).value());
}

TEST(Fusion, IsBitwiseInvisible) {
  auto plain_worker = make_worker(1, false);
  auto fused_worker = make_worker(1, true);
  auto threads_worker = make_worker(2, true);
  SessionClient plain(*plain_worker), fused(*fused_worker), threads(*threads_worker);
  uint64_t different = 0;
  for (uint64_t seed = 1; seed <= kSequences && different < 5; ++seed) {
    std::string expected = SequenceGenerator(plain, seed).run();
    for (SessionClient* client : {&fused, &threads}) {
      SequenceGenerator generator(*client, seed);
      std::string got = generator.run();
      if (got == expected) continue;
      ++different;
      auto at = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end()).first;
      ADD_FAILURE() << (client == &fused ? "fusion" : "fusion on two threads")
                    << " changes sequence " << seed << " at byte " << (at - expected.begin())
                    << " of " << expected.size() << "\n"
                    << "want "
                    << ::testing::PrintToString(expected.substr(at - expected.begin(), 200))
                    << "\n got " << ::testing::PrintToString(got.substr(at - expected.begin(), 200))
                    << "\n"
                    << generator.trace();
    }
  }
  uint64_t fused_tasks = fused.state().queue->fused.load();
  EXPECT_GT(fused_tasks, kSequences) << "fusion hardly happened";
  EXPECT_EQ(plain.state().queue->fused.load(), 0u);
  RecordProperty("fused_tasks", std::to_string(fused_tasks));
}

// A session whose limit has no room for the chain's values gets the reductions of them all the
// same.
TEST(Fusion, ReductionsOverChainsNeedNoMemoryForThem) {
  for (int threads : {1, 2}) {
    auto worker = make_worker(threads, true);
    SessionClient c(*worker, uint64_t{5} << 20);
    constexpr int64_t kRows = 1000, kColumns = 1000;
    Id x = c.call("full", {}, {IntList{kRows, kColumns}, 0.5, DType::kFloat32});
    c.read(c.call("select", {x, 0}, {0, 0}));
    for (const IntList& dims : {IntList{}, IntList{1}, IntList{0}}) {
      for (std::string_view row : {"sum", "mean", "amax"}) {
        // What is behind an upload waits for it, so that the executor sees all of it at once.
        Id gate = c.call("session.upload", {}, {int64_t{7}, DType::kUInt8, IntList{1}});
        Id a = c.call("mul", {x, 0}, {{}, 3.0});
        Id b = c.call("add", {a, x}, {{}, {}, 1});
        Id y = c.call(row, {b}, {dims, false});
        c.release({a, b, gate});
        auto upload = c.state().uploads.get(1, 7);
        ASSERT_TRUE(upload.ok());
        char byte = 0;
        ASSERT_TRUE((*upload)->start(1, c.state().account).ok());
        ASSERT_TRUE((*upload)->write(0, &byte, 1).ok());
        HostTensor read = c.read(y);
        ASSERT_FALSE(read.error) << read.error->message;
        std::vector<float> got = c.read_floats(y);
        bool sum = row == "sum";
        size_t outputs = dims.empty() ? 1 : 1000;
        float each = 2.0f * (sum ? (dims.empty() ? 1e6f : 1e3f) : 1.0f);
        EXPECT_EQ(got, std::vector<float>(outputs, each)) << row << " over " << shape_text(dims);
        c.release({y});
      }
    }
  }
}

}  // namespace
}  // namespace gradwire::testing
