// Runs the sessions' tasks on one device, on a thread of its own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/exec/fuser.h"
#include "engine/exec/queue.h"
#include "kernels/backend.h"

namespace gradwire {

// Takes tasks from the queues by measured fair share, looks ahead within one queue, fuses
// pointwise chains, makes memory when a task runs and drops it at last use.
//
// Errors: a task whose input is poisoned does not run and poisons its outputs with the same root
// cause; a committing one leaves its outputs as they are and reports.
class Executor {
 public:
  Executor(Backend& backend, bool fusion);
  // Stops after the running task; what is queued is dropped, its callbacks get an error. What the
  // device has begun is waited for: no callback runs later.
  ~Executor();

  // A queue is served from here on, until remove().
  void add(std::shared_ptr<TaskQueue> queue);
  // Drops the queue's tasks and waits until none of them runs, on the device neither: their
  // callbacks have returned.
  void remove(const std::shared_ptr<TaskQueue>& queue);
  // Call after pushing.
  void notify();

  Backend& backend() { return backend_; }
  bool fusion() const { return fusion_.load(std::memory_order_relaxed); }
  void set_fusion(bool on) { fusion_.store(on, std::memory_order_relaxed); }

 private:
  struct Group;

  void run();
  std::shared_ptr<TaskQueue> pick(std::unique_lock<std::mutex>& lock);
  double serve(TaskQueue& queue);  // seconds of device time
  bool start_upload(const std::shared_ptr<TaskQueue>& queue);
  void drop_all(TaskQueue& queue);

  Backend& backend_;
  std::atomic<bool> fusion_;
  FusedReductions reductions_;  // the thread's own
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::vector<std::shared_ptr<TaskQueue>> queues_;
  TaskQueue* serving_ = nullptr;
  bool pending_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gradwire
