#include "kernels/cpu/thread_pool.h"

#include <emmintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace gradwire::cpu {
namespace {

using Function = std::function<void(int64_t)>;

constexpr int kSlots = 16;
constexpr int kWorkerSpins = 1500;
constexpr int kCallerSpins = 4000;

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

struct Job {
  const Function* fn;
  int64_t n;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  std::atomic<uint32_t> finished{0};  // futex word
};

// Occupies a slot whose job has ended while late workers leave it.
Job closing{nullptr, 0};

struct alignas(64) Slot {
  std::atomic<Job*> job{nullptr};
  std::atomic<int> users{0};
};

thread_local bool inside_job = false;

bool work_on(Job& job) {
  int64_t mine = 0;
  for (int64_t i; (i = job.next.fetch_add(1)) < job.n;) {
    (*job.fn)(i);
    ++mine;
  }
  if (mine == 0) return false;
  if (job.done.fetch_add(mine) + mine == job.n) {
    job.finished.store(1);
    futex_wake(job.finished, 1);
  }
  return true;
}

}  // namespace

struct ThreadPool::Impl {
  std::array<Slot, kSlots> slots;
  alignas(64) std::atomic<uint32_t> epoch{0};
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;

  bool work_once() {
    bool any = false;
    for (Slot& slot : slots) {
      if (slot.job.load() == nullptr) continue;
      slot.users.fetch_add(1);
      Job* job = slot.job.load();
      if (job != nullptr && job != &closing) any |= work_on(*job);
      slot.users.fetch_sub(1);
    }
    return any;
  }

  void run() {
    inside_job = true;
    while (!stop.load()) {
      uint32_t seen = epoch.load();
      if (work_once()) continue;
      bool changed = false;
      for (int i = 0; i < kWorkerSpins && !changed; ++i) {
        changed = epoch.load(std::memory_order_relaxed) != seen;
        _mm_pause();
      }
      if (changed) continue;
      sleepers.fetch_add(1);
      if (epoch.load() == seen && !stop.load()) futex_wait(epoch, seen);
      sleepers.fetch_sub(1);
    }
  }

  Slot* post(Job& job) {
    for (Slot& slot : slots) {
      Job* empty = nullptr;
      if (slot.job.load(std::memory_order_relaxed) == nullptr &&
          slot.job.compare_exchange_strong(empty, &job)) {
        return &slot;
      }
    }
    return nullptr;
  }

  void announce(int64_t helpers) {
    epoch.fetch_add(1);
    if (sleepers.load() > 0) {
      futex_wake(epoch, static_cast<int>(std::min<int64_t>(helpers, workers.size())));
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  // Signals belong to the process's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 1; i < threads; ++i) {
    impl_->workers.emplace_back([impl = impl_.get()] { impl->run(); });
    pthread_setname_np(impl_->workers.back().native_handle(), ("cpu-" + std::to_string(i)).c_str());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
  impl_->stop.store(true);
  impl_->epoch.fetch_add(1);
  futex_wake(impl_->epoch, static_cast<int>(impl_->workers.size()));
  for (std::thread& worker : impl_->workers) worker.join();
}

int ThreadPool::threads() const {
  return static_cast<int>(impl_->workers.size()) + 1;
}

void ThreadPool::parallel_for(int64_t n, const Function& fn) {
  if (n <= 0) return;
  Job job{&fn, n};
  Slot* slot = n > 1 && !inside_job && !impl_->workers.empty() ? impl_->post(job) : nullptr;
  if (slot == nullptr) {
    for (int64_t i = 0; i < n; ++i) fn(i);
    return;
  }
  impl_->announce(n - 1);
  inside_job = true;
  work_on(job);
  inside_job = false;
  slot->job.store(&closing);
  for (int i = 0; job.finished.load() == 0; ++i) {
    if (i < kCallerSpins) {
      _mm_pause();
    } else {
      futex_wait(job.finished, 0);
    }
  }
  for (int i = 0; slot->users.load() > 0; ++i) {
    if (i < kCallerSpins) {
      _mm_pause();
    } else {
      sched_yield();
    }
  }
  slot->job.store(nullptr);
}

void ThreadPool::parallel_ranges(int64_t n, int64_t grain,
                                 const std::function<void(int64_t, int64_t)>& fn) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t ranges = (n - 1) / grain + 1;
  if (ranges == 1) {
    fn(0, n);
    return;
  }
  parallel_for(ranges, [&](int64_t i) {
    int64_t begin = i * grain;
    fn(begin, std::min(n, begin + grain));
  });
}

}  // namespace gradwire::cpu
