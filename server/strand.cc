#include "server/strand.h"

namespace gradwire::server {

StrandPool::StrandPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

StrandPool::~StrandPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void StrandPool::schedule(const std::shared_ptr<Strand>& strand) {
  int state = strand->state_.load(std::memory_order_acquire);
  for (;;) {
    int wanted;
    if (state == Strand::kIdle) {
      wanted = Strand::kQueued;
    } else if (state == Strand::kRunning) {
      wanted = Strand::kAgain;
    } else {
      wanted = state;
    }
    // Even an unchanged state is written: the turn to come must see what the caller did before.
    if (strand->state_.compare_exchange_weak(state, wanted, std::memory_order_acq_rel)) break;
  }
  if (state == Strand::kIdle) enqueue(strand);
}

void StrandPool::enqueue(std::shared_ptr<Strand> strand) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(strand));
  }
  wake_.notify_one();
}

void StrandPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    std::shared_ptr<Strand> strand = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();

    strand->state_.exchange(Strand::kRunning, std::memory_order_acq_rel);
    const bool more = strand->run();
    int running = Strand::kRunning;
    if (more || !strand->state_.compare_exchange_strong(running, Strand::kIdle,
                                                        std::memory_order_acq_rel)) {
      strand->state_.exchange(Strand::kQueued, std::memory_order_acq_rel);
      enqueue(std::move(strand));
    }
    strand.reset();
    lock.lock();
  }
}

}  // namespace gradwire::server
