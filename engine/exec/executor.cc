#include "engine/exec/executor.h"

#include <algorithm>
#include <chrono>

#include "engine/exec/drain.h"
#include "engine/exec/launch.h"
#include "engine/io/upload.h"

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;

// One turn of a queue: long enough to amortise the choice, short enough that another session's
// small read does not wait.
constexpr auto kTurn = std::chrono::milliseconds(2);

ErrorRef cancelled_error(const Task& task) {
  return error_of(task, make_error(ErrorKind::kCancelled, "cancelled before it ran"));
}

}  // namespace

Executor::Executor(Backend& backend, bool fusion)
    : backend_(backend), fusion_(fusion), reductions_(backend) {
  thread_ = std::thread([this] { run(); });
}

Executor::~Executor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  for (auto& queue : queues_) drop_all(*queue);
  drain(backend_);
}

void Executor::add(std::shared_ptr<TaskQueue> queue) {
  std::lock_guard lock(mutex_);
  double least = 0;
  bool any = false;
  for (auto& other : queues_) {
    least = any ? std::min(least, other->virtual_time_) : other->virtual_time_;
    any = true;
  }
  queue->virtual_time_ = least;
  queues_.push_back(std::move(queue));
}

void Executor::remove(const std::shared_ptr<TaskQueue>& queue) {
  std::unique_lock lock(mutex_);
  std::erase(queues_, queue);
  idle_.wait(lock, [&] { return serving_ != queue.get(); });
  lock.unlock();
  drop_all(*queue);
  drain(backend_);
}

void Executor::drop_all(TaskQueue& queue) {
  while (queue.collect()) {
    uint64_t dropped = 0;
    while (!queue.ready_.empty()) {
      std::unique_ptr<Task> task = std::move(queue.ready_.front());
      queue.ready_.pop_front();
      task->sink = nullptr;
      skip_task(*task, error_of(*task, make_error(ErrorKind::kCancelled, "the session ended")));
      ++dropped;
    }
    queue.finished(dropped);
  }
}

void Executor::notify() {
  {
    std::lock_guard lock(mutex_);
    pending_ = true;
  }
  wake_.notify_one();
}

std::shared_ptr<TaskQueue> Executor::pick(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (stopping_) return nullptr;
    pending_ = false;
    std::shared_ptr<TaskQueue> best;
    double least_active = 0;
    for (auto& queue : queues_) {
      if (!queue->collect() || queue->blocked_) continue;
      if (!best || queue->virtual_time_ < best->virtual_time_) best = queue;
    }
    if (best) {
      // A queue that was idle must not save up its idle time.
      least_active = best->virtual_time_;
      for (auto& queue : queues_) {
        if (queue->ready_.empty() && queue->virtual_time_ < least_active) {
          queue->virtual_time_ = least_active;
        }
      }
      return best;
    }
    wake_.wait(lock, [&] { return pending_ || stopping_; });
  }
}

void Executor::run() {
  std::unique_lock lock(mutex_);
  while (auto queue = pick(lock)) {
    serving_ = queue.get();
    lock.unlock();
    double seconds = start_upload(queue) ? 0 : serve(*queue);
    lock.lock();
    queue->virtual_time_ += seconds / queue->weight;
    serving_ = nullptr;
    idle_.notify_all();
  }
}

// True when the head of the queue is an upload still on its way: the queue then waits for it.
bool Executor::start_upload(const std::shared_ptr<TaskQueue>& queue) {
  const Task& head = *queue->ready_.front();
  if (head.kind != TaskKind::kCopyIn || !head.upload || head.upload->ready() ||
      queue->cancelled(head)) {
    return false;
  }
  {
    std::lock_guard lock(mutex_);
    queue->blocked_ = true;
  }
  std::weak_ptr<TaskQueue> weak = queue;
  head.upload->on_ready([this, weak] {
    if (auto blocked = weak.lock()) {
      {
        std::lock_guard lock(mutex_);
        blocked->blocked_ = false;
      }
      notify();
    }
  });
  return true;
}

double Executor::serve(TaskQueue& queue) {
  auto start = Clock::now();
  auto now = start;
  uint64_t tasks = 0, kernels = 0, fused = 0;
  bool fuse = fusion();
  std::vector<const std::unique_ptr<Task>*> members;
  while (!queue.ready_.empty() && now - start < kTurn) {
    Task& head = *queue.ready_.front();
    if (queue.cancelled(head)) {
      skip_task(head, cancelled_error(head));
      queue.ready_.pop_front();
      ++tasks;
      continue;
    }
    if (head.kind == TaskKind::kCopyIn && head.upload && !head.upload->ready()) break;
    size_t done = 1;
    LaunchResult result;
    if (fuse && head.kind == TaskKind::kPointwise) {
      if (queue.ready_.size() < 8) queue.collect();  // look ahead as far as dispatch has come
      FusionGroup group = find_group(queue.ready_, queue.ready_.size(), reductions_);
      if (group.tasks > 1) {
        members.clear();
        for (size_t i = 0; i < group.tasks; ++i) members.push_back(&queue.ready_[i]);
        result = run_group(backend_, group, members);
        fused += group.tasks - 1;
        done = group.tasks;
      } else {
        result = run_task(backend_, head);
      }
    } else {
      result = run_task(backend_, head);
    }
    kernels += result.kernels;
    if (result.failure) queue.note_failure(std::move(result.failure));
    for (size_t i = 0; i < done; ++i) queue.ready_.pop_front();
    tasks += done;
    now = Clock::now();
  }
  auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(now - start).count();
  queue.device_ns.fetch_add(spent, std::memory_order_relaxed);
  queue.tasks_run.fetch_add(tasks, std::memory_order_relaxed);
  queue.kernels_run.fetch_add(kernels, std::memory_order_relaxed);
  queue.fused.fetch_add(fused, std::memory_order_relaxed);
  queue.finished(tasks);
  return static_cast<double>(spent) * 1e-9;
}

}  // namespace gradwire
