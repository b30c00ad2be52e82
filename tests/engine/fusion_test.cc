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

}  // namespace
}  // namespace gradwire::testing
