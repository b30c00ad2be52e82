#include "server/session.h"

#include "kernels/error.h"
#include "server/limits.h"

namespace gradwire::server {

Session::Session(uint64_t id, std::string name, StrandPool& pool,
                 std::unique_ptr<SessionEngine> engine)
    : id(id),
      name(std::move(name)),
      device(engine->device()),
      pool_(pool),
      engine_(std::move(engine)),
      last_use_(std::chrono::steady_clock::now()) {}

Session::~Session() {
  destroy_engine();
}

std::shared_ptr<Slot> Session::find(uint32_t slot) const {
  std::lock_guard lock(mutex_);
  auto found = slots_.find(slot);
  return found == slots_.end() ? nullptr : found->second;
}

void Session::add_slot(std::string secret, SlotDone done) {
  post([this, secret = std::move(secret), done = std::move(done)] {
    std::shared_ptr<Slot> slot;
    {
      std::lock_guard lock(mutex_);
      if (ended_) return done(absl::AbortedError("the session has ended"));
      if (slots_.size() >= kSlots || last_slot_ == UINT16_MAX) {
        return done(absl::ResourceExhaustedError("the session has too many slots"));
      }
      std::weak_ptr<Session> weak = self();
      slot = std::make_shared<Slot>(++last_slot_, secret, device, [weak] {
        if (auto session = weak.lock()) session->pool_.schedule(session);
      });
      slots_.emplace(slot->number, slot);
    }
    slot->start(
        engine_->make_slot(slot->number, slot->outbox(), [weak = std::weak_ptr<Slot>(slot)] {
          if (auto slot = weak.lock()) slot->wake();
        }));
    done(slot);
  });
}

absl::StatusOr<std::shared_ptr<Upload>> Session::start_upload(uint32_t slot, uint64_t transfer,
                                                              uint64_t total) {
  std::shared_ptr<Account> account;
  absl::StatusOr<std::shared_ptr<Upload>> upload;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return absl::AbortedError("the session has ended");
    upload = engine_->uploads().get(slot, transfer);
    account = engine_->account();
  }
  if (!upload.ok()) return upload;
  GW_RETURN_IF_ERROR((*upload)->start(total, std::move(account)));
  return upload;
}

std::shared_ptr<Upload> Session::find_upload(uint32_t slot, uint64_t transfer) {
  std::lock_guard lock(mutex_);
  if (ended_) return nullptr;
  absl::StatusOr<std::shared_ptr<Upload>> upload = engine_->uploads().get(slot, transfer);
  return upload.ok() ? *upload : nullptr;
}

void Session::drop_upload(uint32_t slot, uint64_t transfer) {
  std::lock_guard lock(mutex_);
  if (!ended_) engine_->uploads().drop(slot, transfer);
}

void Session::cancel(const std::shared_ptr<Slot>& slot, std::function<void(uint64_t)> done) {
  post([slot, done = std::move(done)] { slot->cancel(done); });
}

void Session::end_slot(const std::shared_ptr<Slot>& slot, EndDone done) {
  post([this, slot, done = std::move(done)] {
    {
      std::lock_guard lock(mutex_);
      if (slots_.erase(slot->number) != 0) retired_.push_back(slot);
      last_use_ = std::chrono::steady_clock::now();
    }
    done(slot->end(absl::AbortedError("the slot was closed")));
  });
}

void Session::end(const absl::Status& status, EndDone done) {
  post([this, status, done = std::move(done)] {
    std::vector<std::shared_ptr<Slot>> slots;
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      for (auto& [number, slot] : slots_) slots.push_back(slot);
      retired_.insert(retired_.end(), slots.begin(), slots.end());
      slots_.clear();
    }
    std::vector<ErrorRef> unread;
    for (const std::shared_ptr<Slot>& slot : slots) {
      for (ErrorRef& error : slot->end(status)) unread.push_back(std::move(error));
    }
    engine_->uploads().fail_all(status);
    done(std::move(unread));
  });
}

void Session::destroy_engine() {
  if (!engine_) return;
  engine_->stop();
  for (const std::shared_ptr<Slot>& slot : slots()) slot->destroy_engine();
  for (const std::shared_ptr<Slot>& slot : retired_) slot->destroy_engine();
  engine_.reset();
}

void Session::announce(const std::string& encoded_event) {
  for (const std::shared_ptr<Slot>& slot : slots()) slot->outbox().push(encoded_event);
}

bool Session::connected() const {
  for (const std::shared_ptr<Slot>& slot : slots()) {
    if (slot->connected()) return true;
  }
  return false;
}

void Session::touch() {
  std::lock_guard lock(mutex_);
  last_use_ = std::chrono::steady_clock::now();
}

std::chrono::steady_clock::time_point Session::last_use() const {
  std::lock_guard lock(mutex_);
  return last_use_;
}

std::vector<std::shared_ptr<Slot>> Session::slots() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Slot>> slots;
  for (auto& [number, slot] : slots_) slots.push_back(slot);
  return slots;
}

void Session::post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    mailbox_.push_back(std::move(work));
  }
  pool_.schedule(self());
}

bool Session::run() {
  std::vector<std::function<void()>> mailbox;
  std::vector<std::shared_ptr<Slot>> slots;
  {
    std::lock_guard lock(mutex_);
    mailbox.swap(mailbox_);
    slots.reserve(slots_.size());
    for (auto& [number, slot] : slots_) slots.push_back(slot);
  }
  for (auto& work : mailbox) work();
  bool more = false;
  for (const std::shared_ptr<Slot>& slot : slots) more |= slot->run();
  return more;
}

}  // namespace gradwire::server
