#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/cpu/scratch.h"

namespace gradwire::cpu {
namespace {

TEST(ThreadPool, CallsEveryIndexOnce) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t n : {0, 1, 2, 3, 17, 1000}) {
      std::vector<std::atomic<int>> seen(n);
      pool.parallel_for(n, [&](int64_t i) { seen[i].fetch_add(1); });
      for (auto& s : seen) EXPECT_EQ(s.load(), 1);
    }
  }
}

TEST(ThreadPool, RangesCoverWithoutOverlap) {
  ThreadPool pool(3);
  for (int64_t n : {0, 1, 9, 10, 11, 99, 100, 101}) {
    std::vector<int> seen(n);
    pool.parallel_ranges(n, 10, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % 10, 0);
      EXPECT_LE(end - begin, 10);
      for (int64_t i = begin; i < end; ++i) ++seen[i];
    });
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), int64_t{0}), n);
  }
}

TEST(ThreadPool, WritesAreVisibleToTheCaller) {
  ThreadPool pool(4);
  std::vector<int64_t> out(64);
  for (int round = 0; round < 2000; ++round) {
    pool.parallel_for(64, [&](int64_t i) { out[i] = i + round; });
    for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], i + round);
  }
}

TEST(ThreadPool, NestedCallsRunSerially) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.parallel_for(8, [&](int64_t) {
    auto self = std::this_thread::get_id();
    pool.parallel_for(8, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      total.fetch_add(1);
    });
  });
  EXPECT_EQ(total.load(), 64);
}

TEST(ThreadPool, ManyCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int c = 0; c < 24; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        int64_t sum[16] = {};
        pool.parallel_for(16, [&](int64_t i) { sum[i] = i; });
        total.fetch_add(std::accumulate(sum, sum + 16, int64_t{0}));
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total.load(), int64_t{24} * 200 * 120);
}

TEST(ThreadPool, WakesParkedWorkers) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> count{0};
    pool.parallel_for(4, [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      count.fetch_add(1);
    });
    EXPECT_EQ(count.load(), 4);
  }
}

TEST(Scratch, NestsAlignedAndDisjoint) {
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{64}, size_t{100000}, size_t{3} << 20, size_t{40} << 20}) {
    Scratch outer(bytes);
    ASSERT_NE(outer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(outer.data()) % 64, 0u);
    Scratch inner(bytes);
    ASSERT_NE(inner.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(inner.data()) % 64, 0u);
    std::fill_n(outer.as<char>(), bytes, 'a');
    std::fill_n(inner.as<char>(), bytes, 'b');
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(outer.as<char>()[i], 'a');
  }
}

TEST(Scratch, TooMuchIsNull) {
  EXPECT_EQ(Scratch(SIZE_MAX).data(), nullptr);
}

}  // namespace
}  // namespace gradwire::cpu
