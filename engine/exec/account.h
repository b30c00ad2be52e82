// Memory of one session: every device byte it holds is charged here.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace gradwire {

// Thread safe. Bytes are those of size classes, as the allocator hands them out.
class Account {
 public:
  explicit Account(uint64_t limit) : limit_(limit) {}

  // False, and nothing charged, when it would exceed the limit.
  bool charge(uint64_t bytes) {
    uint64_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (now > limit_) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    return true;
  }
  void release(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  void reset_peak() { peak_.store(used(), std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
  const uint64_t limit_;
};

}  // namespace gradwire
