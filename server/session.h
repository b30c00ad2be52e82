// A session: what one user's clients share. Its slots, its part of the engine, its strand.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/session_engine.h"
#include "server/slot.h"
#include "server/strand.h"

namespace gradwire::server {

// Thread safe, but for run(), which the pool calls. The pool outlives the session.
class Session final : public Strand {
 public:
  Session(uint64_t id, std::string name, StrandPool& pool, std::unique_ptr<SessionEngine> engine);
  ~Session() override;

  const uint64_t id;
  const std::string name;
  const std::string device;

  // Null when there is no such slot or it has ended.
  std::shared_ptr<Slot> find(uint32_t slot) const;
  // A new slot. `done` comes on the strand. Errors: too many slots, the session has ended.
  using SlotDone = std::function<void(absl::StatusOr<std::shared_ptr<Slot>>)>;
  void add_slot(std::string secret, SlotDone done);
  // The transfer of that number, its size set: memory is charged to the session. Errors: another
  // size, out of memory, too many uploads, the session has ended.
  absl::StatusOr<std::shared_ptr<Upload>> start_upload(uint32_t slot, uint64_t transfer,
                                                       uint64_t total);
  // As it is; null when there are too many or the session has ended.
  std::shared_ptr<Upload> find_upload(uint32_t slot, uint64_t transfer);
  // The client does not want it any more.
  void drop_upload(uint32_t slot, uint64_t transfer);
  void cancel(const std::shared_ptr<Slot>& slot, std::function<void(uint64_t)> done);
  // Ends a slot; with the last one the session stays and waits for its lease.
  using EndDone = std::function<void(std::vector<ErrorRef>)>;
  void end_slot(const std::shared_ptr<Slot>& slot, EndDone done);
  // Ends every slot and drops what is queued. `done` comes on the strand; then destroy_engine
  // may be called.
  void end(const absl::Status& status, EndDone done);
  // Waits for the task that runs now. Not on a strand and not in a reaction.
  void destroy_engine();

  // An event to all slots.
  void announce(const std::string& encoded_event);
  bool connected() const;
  // Something was asked of the session; its lease starts anew.
  void touch();
  std::chrono::steady_clock::time_point last_use() const;
  std::vector<std::shared_ptr<Slot>> slots() const;

 protected:
  bool run() override;

 private:
  void post(std::function<void()> work);
  std::shared_ptr<Session> self() { return std::static_pointer_cast<Session>(shared_from_this()); }

  StrandPool& pool_;
  std::unique_ptr<SessionEngine> engine_;
  mutable std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<Slot>> slots_;
  // Slots that have ended: tasks in the queue may still answer them.
  std::vector<std::shared_ptr<Slot>> retired_;
  std::vector<std::function<void()>> mailbox_;
  uint32_t last_slot_ = 0;
  bool ended_ = false;
  std::chrono::steady_clock::time_point last_use_;
};

}  // namespace gradwire::server
