// Small threads that run many sessions, each of them on one thread at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gradwire::server {

// Something that wants to be run by one thread at a time, in bounded turns.
class Strand : public std::enable_shared_from_this<Strand> {
 public:
  virtual ~Strand() = default;

 protected:
  // One turn: a few hundred commands or a millisecond, never a wait. True: there is more to do.
  virtual bool run() = 0;

 private:
  friend class StrandPool;
  enum State : int { kIdle, kQueued, kRunning, kAgain };
  std::atomic<int> state_{kIdle};
};

// Serves strands in the order they asked; who has more to do goes to the end.
class StrandPool {
 public:
  explicit StrandPool(int threads);
  // Turns that have started end; what waits is dropped.
  ~StrandPool();
  StrandPool(const StrandPool&) = delete;
  StrandPool& operator=(const StrandPool&) = delete;

  // Sees to it that a turn of the strand starts after this call. Any thread; never blocks.
  void schedule(const std::shared_ptr<Strand>& strand);

 private:
  void serve();
  void enqueue(std::shared_ptr<Strand> strand);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Strand>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gradwire::server
