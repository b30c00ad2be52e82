#include "engine/exec/queue.h"

namespace gradwire {

bool TaskQueue::push(std::unique_ptr<Task> task) {
  constexpr size_t kBatch = 32;
  staged_.push_back(std::move(task));
  return staged_.size() >= kBatch;
}

bool TaskQueue::publish() {
  if (staged_.empty()) return false;
  depth_.fetch_add(staged_.size(), std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  bool idle = incoming_.empty();
  if (idle) {
    incoming_.swap(staged_);
  } else {
    for (auto& task : staged_) incoming_.push_back(std::move(task));
    staged_.clear();
  }
  return idle;
}

void TaskQueue::on_space(std::function<void()> fn) {
  {
    std::lock_guard lock(mutex_);
    if (depth() > kLimit / 2) {
      space_waiters_.push_back(std::move(fn));
      return;
    }
  }
  fn();
}

void TaskQueue::cancel(uint32_t slot, uint64_t number) {
  std::lock_guard lock(mutex_);
  uint64_t& upto = cancelled_[slot];
  if (number > upto) upto = number;
  any_cancelled_.store(true, std::memory_order_release);
}

bool TaskQueue::cancelled(const Task& task) const {
  if (!any_cancelled_.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(mutex_);
  auto it = cancelled_.find(task.slot);
  return it != cancelled_.end() && task.number <= it->second;
}

void TaskQueue::note_failure(ErrorRef error) {
  constexpr size_t kMaxFailures = 64;
  std::lock_guard lock(mutex_);
  if (failures_.size() == kMaxFailures) failures_.pop_front();
  failures_.push_back(std::move(error));
}

std::vector<ErrorRef> TaskQueue::take_failures(uint32_t slot) {
  std::lock_guard lock(mutex_);
  std::vector<ErrorRef> taken;
  std::erase_if(failures_, [&](ErrorRef& error) {
    if (error->slot != slot) return false;
    taken.push_back(std::move(error));
    return true;
  });
  return taken;
}

bool TaskQueue::collect() {
  std::lock_guard lock(mutex_);
  for (auto& task : incoming_) ready_.push_back(std::move(task));
  incoming_.clear();
  return !ready_.empty();
}

void TaskQueue::finished(uint64_t tasks) {
  uint64_t left = depth_.fetch_sub(tasks, std::memory_order_relaxed) - tasks;
  if (left > kLimit / 2) return;
  std::vector<std::function<void()>> waiters;
  {
    std::lock_guard lock(mutex_);
    waiters.swap(space_waiters_);
  }
  for (auto& fn : waiters) fn();
}

}  // namespace gradwire
