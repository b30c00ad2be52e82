// A backend for the tests that is as unlike the CPU as it can be: its memory cannot be touched but
// by its own kernels and copies, and its streams run late, in seeded random order.
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/backend.h"
#include "kernels/error.h"

namespace gradwire {
namespace {

size_t pages(size_t bytes) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

class LateBackend : public Backend {
 public:
  explicit LateBackend(uint64_t seed) : cpu_(cpu::make_backend(1)), random_(seed) {
    thread_ = std::thread([this] { run(); });
  }

  ~LateBackend() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
    for (auto& [block, bytes] : blocks_) munmap(block, bytes);
  }

  std::string_view device_type() const override { return "late"; }

  void* allocate(size_t bytes) override {
    size_t size = pages(bytes);
    void* block = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return nullptr;
    std::lock_guard lock(mutex_);
    blocks_[block] = size;
    return block;
  }

  void deallocate(void* block, size_t) override {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(block);
    munmap(block, it->second);
    blocks_.erase(it);
  }

  KernelId find_kernel(std::string_view name) const override { return cpu_->find_kernel(name); }

  absl::Status launch(const KernelCall& call, Done done) override {
    push(StreamKind::kCompute, [this, call, done = std::move(done)] {
      for (const TensorView& v : call.inputs) open(v.data);
      for (const TensorView& v : call.outputs) open(v.data);
      absl::Status status = cpu_->launch(call, nullptr);
      close();
      if (done) {
        done(status);
      } else if (!status.ok()) {
        std::fprintf(stderr, "late kernel failed unasked: %s\n", status.ToString().c_str());
        std::abort();
      }
    });
    return absl::OkStatus();
  }

  absl::Status copy_in(StreamKind stream, void* device, const void* host, size_t bytes) override {
    push(stream, [this, device, host, bytes] {
      open(device);
      std::memcpy(device, host, bytes);
      close();
    });
    return absl::OkStatus();
  }

  absl::Status copy_out(StreamKind stream, void* host, const void* device, size_t bytes) override {
    push(stream, [this, device, host, bytes] {
      open(device);
      std::memcpy(host, device, bytes);
      close();
    });
    return absl::OkStatus();
  }

  Event record(StreamKind stream) override {
    std::lock_guard lock(mutex_);
    Event event = ++last_event_;
    streams_[static_cast<int>(stream)].push_back({.event = event});
    changed_.notify_all();
    return event;
  }

  void wait(StreamKind stream, Event event) override {
    std::lock_guard lock(mutex_);
    streams_[static_cast<int>(stream)].push_back({.wait = event});
    changed_.notify_all();
  }

  void on_complete(Event event, std::function<void()> fn) override {
    {
      std::lock_guard lock(mutex_);
      if (!complete(event)) {
        waiters_[event].push_back(std::move(fn));
        return;
      }
    }
    fn();
  }

  bool query(Event event) override {
    std::lock_guard lock(mutex_);
    return complete(event);
  }

 private:
  // One entry: work, or an event to complete, or an event to wait for.
  struct Item {
    std::function<void()> work;
    Event event = 0;
    Event wait = 0;
  };

  void push(StreamKind stream, std::function<void()> work) {
    std::lock_guard lock(mutex_);
    streams_[static_cast<int>(stream)].push_back({.work = std::move(work)});
    changed_.notify_all();
  }

  bool complete(Event event) { return event == 0 || completed_[event]; }

  // Opens the block around a pointer; null and host pointers of empty tensors are let be.
  void open(void* data) { open(static_cast<const void*>(data)); }
  void open(const void* data) {
    if (!data) return;
    std::lock_guard lock(mutex_);
    auto it = blocks_.upper_bound(const_cast<void*>(data));
    if (it == blocks_.begin()) return;
    --it;
    mprotect(it->first, it->second, PROT_READ | PROT_WRITE);
    opened_.push_back({it->first, it->second});
  }
  void close() {
    for (auto& [block, bytes] : opened_) mprotect(block, bytes, PROT_NONE);
    opened_.clear();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      std::vector<int> runnable;
      for (int s = 0; s < kStreamKinds; ++s) {
        if (!streams_[s].empty() && complete(streams_[s].front().wait)) runnable.push_back(s);
      }
      if (runnable.empty()) {
        if (stopping_) return;
        changed_.wait(lock);
        continue;
      }
      // Late: let more pile up, most of the time.
      if (random_() % 4 == 0 && !stopping_) {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
        lock.lock();
      }
      int s = runnable[random_() % runnable.size()];
      Item item = std::move(streams_[s].front());
      streams_[s].pop_front();
      if (item.work) {
        lock.unlock();
        item.work();
        item.work = nullptr;
        lock.lock();
      } else if (item.event) {
        completed_[item.event] = true;
        auto waiters = std::move(waiters_[item.event]);
        waiters_.erase(item.event);
        lock.unlock();
        for (auto& fn : waiters) fn();
        lock.lock();
      }
    }
  }

  std::unique_ptr<Backend> cpu_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::map<void*, size_t> blocks_;
  std::vector<std::pair<void*, size_t>> opened_;  // by the running item only
  std::deque<Item> streams_[kStreamKinds];
  Event last_event_ = 0;
  std::map<Event, bool> completed_;
  std::map<Event, std::vector<std::function<void()>>> waiters_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace
}  // namespace gradwire

extern "C" __attribute__((visibility("default"))) gradwire::Backend* gradwire_backend(
    uint32_t abi, const char* options) {
  if (abi != kBackendAbi) return nullptr;
  return new gradwire::LateBackend(std::strtoull(options, nullptr, 10));
}
