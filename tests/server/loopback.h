// A client in the same process: a Connection without gRPC, and a fake engine below the session.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "gradwire/v1/session.pb.h"
#include "server/session_engine.h"
#include "server/sessions.h"

namespace gradwire::server {

// A stream that a test drives by hand. Thread safe.
class Loopback final : public Connection, public std::enable_shared_from_this<Loopback> {
 public:
  // Reads the slot's outbox at once, as a fast client would, unless `stalled`.
  void notify() override;
  void resume_reading() override;
  void finish(const absl::Status& status, std::string last) override;

  absl::Status connect(const SlotRef& ref, uint64_t epoch);
  // False: the slot asks to read no more.
  bool send(const v1::Frame& frame);
  bool send_bytes(std::string frame);
  void close_half();
  void drop();  // as a cut network

  // Waits, two seconds at most, until `test` holds of what has arrived.
  template <class Test>
  bool wait(Test test) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    std::unique_lock lock(mutex_);
    // Looks again by itself: the test may be about something that does not notify.
    while (!test()) {
      if (std::chrono::steady_clock::now() > end) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
    return true;
  }
  bool wait_applied(uint64_t number);
  bool wait_replies(size_t count);
  std::optional<absl::Status> wait_finished();

  // What has arrived; read under wait or when nothing comes any more.
  uint64_t applied = 0;
  std::deque<v1::Reply> replies;
  uint64_t first_reply = 0;
  std::optional<absl::Status> finished;
  int resumed = 0;
  bool stalled = false;

 private:
  std::shared_ptr<Slot> slot_;
  std::mutex mutex_;
  std::mutex pump_;
  std::condition_variable changed_;
};

// Ops of the fake engine.
enum FakeOp : uint16_t { kNothing = 1, kMeta = 2, kSuspend = 3, kFail = 4, kBig = 5 };
inline constexpr size_t kBigBytes = 3 << 20;

// What the fake engine saw; outlives it.
struct FakeLog {
  std::mutex mutex;
  std::vector<Command> commands;
  std::vector<std::function<void()>> wakes;  // of suspended commands, oldest first
  uint64_t cancels = 0;

  size_t count();
  bool wake_one();
};

SessionEngineFactory fake_sessions(FakeLog& log, uint64_t memory_limit = 1 << 30);
OpList fake_ops();

// One command of a frame.
void add_command(v1::Frame* frame, uint16_t op, std::vector<uint64_t> inputs = {},
                 std::vector<uint64_t> outputs = {}, std::string tape = {}, uint16_t site = 0);
// Opens a session, waiting for it.
v1::OpenResponse open_session(Sessions& sessions);

}  // namespace gradwire::server
