#include "server/sessions.h"

#include <cstring>

#include "kernels/error.h"
#include "server/encode.h"
#include "server/execute.h"
#include "server/limits.h"
#include "server/secret.h"

namespace gradwire::server {
namespace {

constexpr size_t kSecretBytes = 32;

absl::Status unknown_slot() {
  return absl::NotFoundError(
      "no such session or slot: it was closed, its lease ended, or the server has restarted");
}

}  // namespace

Sessions::Sessions(SessionEngineFactory factory, const OpList& catalog, SessionsOptions options)
    : factory_(std::move(factory)),
      catalog_(catalog),
      options_(options),
      pool_(options.threads),
      housekeeper_([this] { keep_house(); }) {}

Sessions::~Sessions() {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
    for (auto& [id, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) {
    end(session, absl::UnavailableError("the server stops"), [](auto) {});
  }
  sessions.clear();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  housekeeper_.join();
}

absl::StatusOr<SlotRef> Sessions::find_any_epoch(const v1::SlotKey& key) {
  SlotRef ref;
  {
    std::lock_guard lock(mutex_);
    if (auto found = sessions_.find(key.session()); found != sessions_.end()) {
      ref.session = found->second;
    }
  }
  if (ref.session) ref.slot = ref.session->find(key.slot());
  // The comparison is made in any case, so that time does not tell which sessions there are.
  static const std::string nothing(kSecretBytes, '\0');
  const bool same = same_secret(key.secret(), ref.slot ? ref.slot->secret : nothing);
  if (!ref.slot || !same) return unknown_slot();
  ref.session->touch();
  return ref;
}

absl::StatusOr<SlotRef> Sessions::find(const v1::SlotKey& key) {
  absl::StatusOr<SlotRef> ref = find_any_epoch(key);
  if (ref.ok() && ref->slot->epoch() != key.epoch()) {
    return absl::AbortedError("FENCED: another connection took this slot over");
  }
  return ref;
}

v1::OpenResponse Sessions::describe(const SlotRef& ref) {
  v1::OpenResponse response;
  v1::SlotKey* key = response.mutable_key();
  key->set_session(ref.session->id);
  key->set_slot(ref.slot->number);
  key->set_secret(ref.slot->secret);
  key->set_epoch(ref.slot->epoch());
  response.add_devices(ref.session->device);
  response.set_applied(ref.slot->applied());
  response.set_lease_seconds(options_.lease_seconds);
  return response;
}

void Sessions::open(const v1::OpenRequest& request, Done<v1::OpenResponse> done) {
  if (request.name().size() > kNameBytes || request.client().size() > kNameBytes) {
    return done(value_error("a name has more than ", kNameBytes, " bytes"));
  }
  absl::StatusOr<std::string> random = random_bytes(kSecretBytes + sizeof(uint64_t));
  if (!random.ok()) return done(random.status());
  uint64_t id;
  std::memcpy(&id, random->data() + kSecretBytes, sizeof id);
  {
    std::lock_guard lock(mutex_);
    if (draining_) return done(absl::UnavailableError("DRAINING: the server will stop"));
    if (sessions_.size() + ending_ >= kSessions) {
      return done(absl::ResourceExhaustedError("the server has too many sessions"));
    }
    if (id == 0 || sessions_.contains(id)) {
      return done(absl::UnavailableError("try again"));
    }
  }
  auto session = std::make_shared<Session>(id, request.name(), pool_, factory_());
  {
    std::lock_guard lock(mutex_);
    sessions_.emplace(id, session);
  }
  session->add_slot(random->substr(0, kSecretBytes),
                    [this, session, done = std::move(done)](auto slot) {
                      if (!slot.ok()) return done(slot.status());
                      done(describe({session, *slot}));
                    });
}

void Sessions::attach(const v1::AttachRequest& request, Done<v1::OpenResponse> done) {
  absl::StatusOr<SlotRef> ref = find_any_epoch(request.key());
  if (!ref.ok()) return done(ref.status());
  if (!request.new_slot()) {
    ref->slot->fence();
    return done(describe(*ref));
  }
  absl::StatusOr<std::string> secret = random_bytes(kSecretBytes);
  if (!secret.ok()) return done(secret.status());
  ref->session->add_slot(*std::move(secret),
                         [this, session = ref->session, done = std::move(done)](auto slot) {
                           if (!slot.ok()) return done(slot.status());
                           done(describe({session, *slot}));
                         });
}

void Sessions::close(const v1::CloseRequest& request, Done<v1::CloseResponse> done) {
  absl::StatusOr<SlotRef> ref = find(request.key());
  if (!ref.ok()) return done(ref.status());
  auto answer = [done = std::move(done)](const std::vector<ErrorRef>& unread) {
    v1::CloseResponse response;
    for (const ErrorRef& error : unread) *response.add_unread() = error_message(*error);
    done(std::move(response));
  };
  if (request.end_session()) {
    end(ref->session, absl::AbortedError("the session was closed"), std::move(answer));
  } else {
    ref->session->end_slot(ref->slot, std::move(answer));
  }
}

void Sessions::execute(const v1::ExecuteRequest& request, ExecuteDone done) {
  absl::StatusOr<SlotRef> ref = find(request.key());
  if (!ref.ok()) return done(ref.status());
  absl::StatusOr<Parcel> parcel = execute_parcel(catalog_, request);
  if (!parcel.ok()) return done(parcel.status());
  const bool numbered = request.commands_size() > 0 && request.commands(0).number() != 0;
  if (!numbered && ref->slot->connected()) {
    return done(absl::FailedPreconditionError(
        "the slot has a stream: commands of Execute must have numbers of their own"));
  }
  parcel->done = std::move(done);
  ref->slot->execute(*std::move(parcel));
}

void Sessions::cancel(const v1::CancelRequest& request, Done<v1::CancelResponse> done) {
  absl::StatusOr<SlotRef> ref = find(request.key());
  if (!ref.ok()) return done(ref.status());
  ref->session->cancel(ref->slot, [done = std::move(done)](uint64_t cancelled) {
    v1::CancelResponse response;
    response.set_cancelled(cancelled);
    done(std::move(response));
  });
}

void Sessions::drain(const std::string& text) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    std::lock_guard lock(mutex_);
    if (draining_) return;
    draining_ = true;
    for (auto& [id, session] : sessions_) sessions.push_back(session);
  }
  const std::string event = encode_event(v1::Event::DRAINING, text);
  for (const auto& session : sessions) session->announce(event);
}

size_t Sessions::count() const {
  std::lock_guard lock(mutex_);
  return sessions_.size();
}

size_t Sessions::connected() const {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    std::lock_guard lock(mutex_);
    for (auto& [id, session] : sessions_) sessions.push_back(session);
  }
  size_t count = 0;
  for (const auto& session : sessions) count += session->connected() ? 1 : 0;
  return count;
}

void Sessions::end(const std::shared_ptr<Session>& session, const absl::Status& status,
                   Session::EndDone done) {
  {
    std::lock_guard lock(mutex_);
    if (sessions_.erase(session->id) == 0) return done({});
    ++ending_;
  }
  session->end(status, [this, session, done = std::move(done)](std::vector<ErrorRef> unread) {
    done(std::move(unread));
    bury(session);
  });
}

void Sessions::bury(std::shared_ptr<Session> session) {
  // Under the lock: once the housekeeper has seen the last grave, wake_ may be gone.
  std::lock_guard lock(mutex_);
  graves_.push_back(std::move(session));
  wake_.notify_all();
}

void Sessions::keep_house() {
  const auto lease = std::chrono::duration<double>(options_.lease_seconds);
  const auto pause = std::chrono::duration<double>(std::min(1.0, options_.lease_seconds / 4));
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, pause, [this] { return !graves_.empty() || (stopping_ && ending_ == 0); });
    std::vector<std::shared_ptr<Session>> graves = std::move(graves_);
    graves_.clear();
    std::vector<std::shared_ptr<Session>> sessions;
    for (auto& [id, session] : sessions_) sessions.push_back(session);
    lock.unlock();

    for (const auto& session : graves) session->destroy_engine();
    const size_t buried = graves.size();
    graves.clear();
    const auto now = std::chrono::steady_clock::now();
    for (const auto& session : sessions) {
      if (session->connected()) {
        session->touch();
      } else if (now - session->last_use() > lease) {
        end(session, absl::AbortedError("the session's lease has ended"), [](auto) {});
      }
    }
    sessions.clear();

    lock.lock();
    ending_ -= buried;
    if (stopping_ && ending_ == 0 && graves_.empty()) return;
  }
}

}  // namespace gradwire::server
