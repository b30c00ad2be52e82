// The CPU backend's threads, shared by all sessions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace gradwire::cpu {

// A fork-join pool. The caller takes part; workers spin briefly, then park. Work is claimed chunk
// by chunk, so a busy machine never makes a caller wait for a chunk nobody has started.
class ThreadPool {
 public:
  // `threads` counts the caller: 1 means no workers at all.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls fn(i) for every i in [0, n), possibly at once on several threads, and returns when all
  // have ended. Nested calls run serially. fn must not throw. Results must not depend on which
  // thread ran which i: callers cut their work by shape alone, never by threads().
  void parallel_for(int64_t n, const std::function<void(int64_t)>& fn);

  // Cuts [0, n) in ranges of `grain` (the last one shorter) and calls fn(begin, end) for each.
  // Serial when there is one range.
  void parallel_ranges(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& fn);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire::cpu
