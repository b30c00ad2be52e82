// A session's tasks between dispatch and the executor, in program order.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/exec/task.h"

namespace gradwire {

class Executor;

// push and publish: the session's strand. cancel and the counters: any thread. The rest belongs to
// the executor.
class TaskQueue {
 public:
  // Tasks queued at most before dispatch is asked to wait.
  static constexpr uint64_t kLimit = 1 << 16;

  // Stages a task; the executor sees it from the next publish() on. True when enough are staged
  // that publishing should not wait for the end of a frame.
  bool push(std::unique_ptr<Task> task);
  // Hands over what is staged. True when the executor may be asleep and must be notified.
  bool publish();
  // Tasks published and not yet run.
  uint64_t depth() const { return depth_.load(std::memory_order_relaxed); }
  bool full() const { return depth() >= kLimit; }
  // Calls fn once when the queue has drained to half its limit.
  void on_space(std::function<void()> fn);

  // Tasks of the slot up to that command number fail as cancelled instead of running.
  void cancel(uint32_t slot, uint64_t number);
  bool cancelled(const Task& task) const;

  double weight = 1.0;  // share of device time, set before the first push

  // Root causes that tasks found since the last take, oldest first, at most 64. Any thread.
  void note_failure(ErrorRef error);
  std::vector<ErrorRef> take_failures(uint32_t slot);

  // Counters for stats.
  std::atomic<uint64_t> tasks_run{0};
  std::atomic<uint64_t> kernels_run{0};
  std::atomic<uint64_t> fused{0};  // tasks that ran inside another's launch
  std::atomic<uint64_t> device_ns{0};

 private:
  friend class Executor;

  // Moves what was pushed to `ready`. False when nothing is there.
  bool collect();
  void finished(uint64_t tasks);

  std::vector<std::unique_ptr<Task>> staged_;  // the strand's own

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Task>> incoming_;
  std::vector<std::function<void()>> space_waiters_;
  std::deque<ErrorRef> failures_;
  absl::flat_hash_map<uint32_t, uint64_t> cancelled_;
  std::atomic<bool> any_cancelled_{false};
  std::atomic<uint64_t> depth_{0};

  // Executor only.
  std::deque<std::unique_ptr<Task>> ready_;
  bool blocked_ = false;     // the head waits for an upload
  double virtual_time_ = 0;  // seconds of device time divided by weight
};

}  // namespace gradwire
