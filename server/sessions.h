// All sessions of the daemon: found by key, ended by request, by lease, at shutdown.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "gradwire/v1/session.pb.h"
#include "server/op_list.h"
#include "server/session.h"

namespace gradwire::server {

struct SessionsOptions {
  double lease_seconds = 600;  // a session without a connection lives this long
  int threads = 2;             // for dispatch
};

// A slot and the session that keeps it.
struct SlotRef {
  std::shared_ptr<Session> session;
  std::shared_ptr<Slot> slot;
};

// Thread safe. `done` callbacks come from any thread and must not block.
class Sessions {
 public:
  // `catalog` outlives this.
  Sessions(SessionEngineFactory factory, const OpList& catalog, SessionsOptions options);
  // Ends all sessions and waits for their running tasks.
  ~Sessions();

  template <class T>
  using Done = std::function<void(absl::StatusOr<T>)>;

  // Errors of all that take a key: no such slot or a wrong secret (one answer for both), FENCED
  // for an epoch that is not the slot's.
  absl::StatusOr<SlotRef> find(const v1::SlotKey& key);

  // Errors: draining, too many sessions, a bad name.
  void open(const v1::OpenRequest& request, Done<v1::OpenResponse> done);
  void attach(const v1::AttachRequest& request, Done<v1::OpenResponse> done);
  void close(const v1::CloseRequest& request, Done<v1::CloseResponse> done);
  // Errors: unknown op, numbers that do not follow each other, everything a frame may have wrong.
  void execute(const v1::ExecuteRequest& request, ExecuteDone done);
  void cancel(const v1::CancelRequest& request, Done<v1::CancelResponse> done);

  // New sessions are refused and every stream is told, once.
  void drain(const std::string& text);
  size_t count() const;
  size_t connected() const;  // sessions that have a stream

 private:
  absl::StatusOr<SlotRef> find_any_epoch(const v1::SlotKey& key);
  v1::OpenResponse describe(const SlotRef& ref);
  void bury(std::shared_ptr<Session> session);
  void end(const std::shared_ptr<Session>& session, const absl::Status& status,
           Session::EndDone done);
  void keep_house();

  const SessionEngineFactory factory_;
  const OpList& catalog_;
  const SessionsOptions options_;
  StrandPool pool_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Session>> sessions_;
  std::vector<std::shared_ptr<Session>> graves_;  // ended, their engine not yet destroyed
  size_t ending_ = 0;
  bool draining_ = false;
  bool stopping_ = false;
  std::thread housekeeper_;
};

}  // namespace gradwire::server
