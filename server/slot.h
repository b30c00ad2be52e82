// One attached client's place in a session: its numbers, its commands on their way, its answers.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/connection.h"
#include "server/decode.h"
#include "server/outbox.h"
#include "server/session_engine.h"

namespace gradwire::server {

// The encoded `replies` of an Execute call and the number applied with it, or an error.
struct Executed {
  std::string replies;
  uint64_t applied = 0;
};
using ExecuteDone = std::function<void(absl::StatusOr<Executed>)>;

// What the inbox of a slot holds: a stream's frame, the end of a stream, or an Execute call
// written as a frame.
struct Parcel {
  Message frame;
  const Connection* from = nullptr;  // identity only; null: Execute
  bool last = false;                 // the connection's client has closed its half
  std::vector<bool> replies;         // Execute: which of the commands answer
  ExecuteDone done;
};

class Slot {
 public:
  // `schedule` asks for a turn of the session's strand; any thread.
  Slot(uint32_t number, std::string secret, std::string device, std::function<void()> schedule);

  const uint32_t number;
  const std::string secret;
  Outbox& outbox() { return outbox_; }

  // --- Any thread ---
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  uint64_t applied() const { return applied_.load(std::memory_order_acquire); }
  bool connected() const { return outbox_.connection() != nullptr; }

  // Makes `connection` the slot's stream. Errors: FENCED when `epoch` is not the slot's, another
  // stream is open, the slot has ended.
  absl::Status connect(std::shared_ptr<Connection> connection, uint64_t epoch);
  // The stream is gone; what it brought is applied all the same.
  void disconnect(const Connection* connection);
  // A new epoch: the present connection is told and ended.
  uint64_t fence();

  // Takes a frame. False: read no more until Connection::resume_reading.
  bool receive(const Connection* from, Message frame);
  // The client has closed its half: the stream ends when all it brought is applied.
  void receive_end(const Connection* from);
  void execute(Parcel parcel);

  // --- On the session's strand ---
  void start(std::unique_ptr<SlotEngine> engine);
  void wake();  // from any thread, as Dispatcher's `wake`
  // Applies what has come, kTurnCommands or a millisecond of it. True: there is more to do.
  bool run();
  // Cancels what has been received until now; `done` gets the number of commands dropped.
  void cancel(std::function<void(uint64_t)> done);
  // Ends the slot: its connection with `status`, its waiting calls too. Returns unread errors.
  std::vector<ErrorRef> end(const absl::Status& status);
  // After SessionEngine::stop.
  void destroy_engine() { engine_.reset(); }

  uint64_t duplicates_skipped() const { return duplicates_.load(std::memory_order_relaxed); }

  static constexpr int kTurnCommands = 512;

 private:
  struct Cancelling {
    size_t parcels;
    uint64_t dropped;
    std::function<void(uint64_t)> done;
  };

  bool ended();
  bool take_parcel();
  bool start_parcel();
  absl::Status open_parcel();
  absl::Status open_execute();
  void close_parcel();
  void refuse(const absl::Status& status);
  bool advance(int* budget);
  void cancel_now();
  void publish_applied();
  void leave_suspension();
  void drop_parcels_of(const Connection* connection);

  const std::function<void()> schedule_;
  Outbox outbox_;
  std::atomic<uint64_t> epoch_{1};
  std::atomic<uint64_t> applied_{0};
  std::atomic<uint64_t> duplicates_{0};
  std::atomic<bool> woken_{false};

  std::mutex mutex_;
  std::deque<Parcel> inbox_;
  size_t inbox_bytes_ = 0;
  bool reading_paused_ = false;
  bool ended_ = false;

  // Strand only.
  std::unique_ptr<SlotEngine> engine_;
  Parcel parcel_;
  bool open_ = false;  // parcel_ is being applied
  bool suspended_ = false;
  size_t position_ = 0;  // in decoder_.commands()
  FrameDecoder decoder_;
  SiteTable sites_;
  SiteTable execute_sites_;
  std::shared_ptr<Collection> collection_;  // of the last Execute
  bool collecting_ = false;                 // and it is being applied
  uint64_t collection_first_ = 0;
  std::vector<Cancelling> cancelling_;
};

}  // namespace gradwire::server
