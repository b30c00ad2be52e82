#include "server/slot.h"

#include <chrono>

#include "gradwire/v1/frame.pb.h"
#include "kernels/error.h"
#include "server/encode.h"
#include "server/limits.h"

namespace gradwire::server {
namespace {

constexpr std::chrono::microseconds kTurn(1000);
constexpr int kClockEvery = 32;

std::string event_message(v1::Event::Kind kind, const std::string& text) {
  v1::Replies replies;
  v1::Event* event = replies.add_replies()->mutable_event();
  event->set_kind(kind);
  event->set_text(text);
  return replies.SerializeAsString();
}

}  // namespace

Slot::Slot(uint32_t number, std::string secret, std::string device, std::function<void()> schedule)
    : number(number),
      secret(std::move(secret)),
      schedule_(std::move(schedule)),
      outbox_(std::move(device)) {}

absl::Status Slot::connect(std::shared_ptr<Connection> connection, uint64_t epoch) {
  {
    std::lock_guard lock(mutex_);
    if (ended_) return absl::AbortedError("the slot has ended");
    if (epoch != epoch_.load(std::memory_order_relaxed)) {
      return absl::AbortedError("FENCED: another connection took this slot over");
    }
    if (outbox_.connection()) {
      return absl::FailedPreconditionError(
          "the slot has a stream already; Attach takes it over with a new epoch");
    }
    reading_paused_ = false;
    outbox_.attach(std::move(connection));
  }
  outbox_.notify();
  return absl::OkStatus();
}

void Slot::disconnect(const Connection* connection) {
  outbox_.detach(connection);
}

uint64_t Slot::fence() {
  std::shared_ptr<Connection> old;
  uint64_t epoch;
  {
    std::lock_guard lock(mutex_);
    epoch = epoch_.fetch_add(1, std::memory_order_acq_rel) + 1;
    old = outbox_.connection();
    if (old) outbox_.detach(old.get());
  }
  if (old) {
    old->finish(absl::AbortedError("FENCED: another connection took this slot over"),
                event_message(v1::Event::FENCED, "another connection took this slot over"));
  }
  return epoch;
}

bool Slot::receive(const Connection* from, Message frame) {
  if (const uint64_t acknowledged = peek_acknowledged(frame.bytes)) {
    outbox_.acknowledge(acknowledged);
  }
  bool more;
  {
    std::lock_guard lock(mutex_);
    if (ended_ || outbox_.connection().get() != from) return false;
    inbox_bytes_ += frame.bytes.size();
    inbox_.push_back({.frame = std::move(frame), .from = from});
    more = inbox_bytes_ < kInboxBytes;
    reading_paused_ = !more;
  }
  schedule_();
  return more;
}

void Slot::receive_end(const Connection* from) {
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    inbox_.push_back({.from = from, .last = true});
  }
  schedule_();
}

void Slot::execute(Parcel parcel) {
  {
    std::lock_guard lock(mutex_);
    if (!ended_ && inbox_bytes_ < kInboxBytes + kFrameBytes) {
      inbox_bytes_ += parcel.frame.bytes.size();
      inbox_.push_back(std::move(parcel));
      parcel.done = nullptr;
    }
  }
  if (parcel.done) {
    parcel.done(absl::ResourceExhaustedError("the slot has ended or has too much waiting"));
    return;
  }
  schedule_();
}

void Slot::wake() {
  woken_.store(true, std::memory_order_release);
  schedule_();
}

bool Slot::take_parcel() {
  std::shared_ptr<Connection> resumed;
  {
    std::lock_guard lock(mutex_);
    if (inbox_.empty()) return false;
    parcel_ = std::move(inbox_.front());
    inbox_.pop_front();
    inbox_bytes_ -= parcel_.frame.bytes.size();
    if (reading_paused_ && inbox_bytes_ < kInboxBytes / 2) {
      reading_paused_ = false;
      resumed = outbox_.connection();
    }
  }
  if (resumed) resumed->resume_reading();
  return true;
}

absl::Status Slot::open_parcel() {
  const uint64_t applied = this->applied();
  const bool execute = parcel_.from == nullptr;
  if (outbox_.kept_bytes() > kOutboxBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "replies of more than ", kOutboxBytes, " bytes are not acknowledged; the slot waits"));
  }
  if (parcel_.frame.bytes.size() > kFrameBytes) {
    return value_error("a frame of ", parcel_.frame.bytes.size(), " bytes is over the limit of ",
                       kFrameBytes);
  }
  GW_RETURN_IF_ERROR(
      decoder_.decode(parcel_.frame.bytes, execute ? execute_sites_ : sites_, applied + 1));
  if (!decoder_.commands().empty() && decoder_.first() > applied + 1) {
    return value_error("command ", decoder_.first(), " came after command ", applied,
                       "; the ones between are missing");
  }
  position_ = 0;
  if (execute) return open_execute();
  return absl::OkStatus();
}

absl::Status Slot::open_execute() {
  const uint64_t applied = this->applied();
  const uint64_t first = decoder_.first();
  const auto commands = decoder_.commands();
  const bool again = !commands.empty() && commands.back().number <= applied;
  if (!again || first != collection_first_) {
    collection_ = std::make_shared<Collection>();
    collecting_ = true;
    collection_first_ = first;
    for (size_t i = 0; i < commands.size(); ++i) {
      if (commands[i].number > applied && parcel_.replies[i]) {
        collection_->expect();
        outbox_.collect(commands[i].number, collection_);
      }
    }
  }
  ExecuteDone done = std::move(parcel_.done);
  const uint64_t last = std::max(applied, commands.empty() ? 0 : commands.back().number);
  collection_->on_complete([done, last](const std::string& replies) {
    done(Executed{replies, last});
  });
  return absl::OkStatus();
}

void Slot::refuse(const absl::Status& status) {
  if (parcel_.from == nullptr) {
    if (parcel_.done) parcel_.done(status);
    return;
  }
  std::shared_ptr<Connection> connection = outbox_.connection();
  drop_parcels_of(parcel_.from);
  if (connection.get() != parcel_.from) return;
  // A peer that does not read cannot be waited for.
  if (status.code() == absl::StatusCode::kResourceExhausted) outbox_.detach(parcel_.from);
  connection->finish(status, {});
}

void Slot::drop_parcels_of(const Connection* connection) {
  std::lock_guard lock(mutex_);
  std::deque<Parcel> kept;
  inbox_bytes_ = 0;
  for (Parcel& parcel : inbox_) {
    if (parcel.from == connection) continue;
    inbox_bytes_ += parcel.frame.bytes.size();
    kept.push_back(std::move(parcel));
  }
  inbox_.swap(kept);
}

void Slot::close_parcel() {
  open_ = false;
  if (std::exchange(collecting_, false)) collection_->arrived();
  parcel_ = {};
  if (cancelling_.empty()) return;
  cancel_now();
  for (Cancelling& each : cancelling_) --each.parcels;
  std::erase_if(cancelling_, [](Cancelling& each) {
    if (each.parcels == 0) each.done(each.dropped);
    return each.parcels == 0;
  });
}

void Slot::cancel_now() {
  const uint64_t dropped = engine_->cancel();
  for (Cancelling& each : cancelling_) each.dropped += dropped;
}

void Slot::cancel(std::function<void(uint64_t)> done) {
  if (!engine_) return done(0);
  size_t parcels = open_ ? 1 : 0;
  {
    std::lock_guard lock(mutex_);
    parcels += inbox_.size();
  }
  const uint64_t dropped = engine_->cancel();
  if (parcels == 0) return done(dropped);
  cancelling_.push_back({parcels, dropped, std::move(done)});
}

std::vector<ErrorRef> Slot::end(const absl::Status& status) {
  std::deque<Parcel> inbox;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return {};
    ended_ = true;
    inbox.swap(inbox_);
    inbox_bytes_ = 0;
  }
  std::vector<ErrorRef> unread;
  if (engine_) {
    unread = engine_->take_unread();
    engine_->applied(UINT64_MAX);  // nobody waits for a slot that has ended
  }
  if (std::shared_ptr<Connection> connection = outbox_.connection()) {
    connection->finish(status, {});
    outbox_.detach(connection.get());
  }
  for (Parcel& parcel : inbox) {
    if (parcel.done) parcel.done(status);
  }
  outbox_.end();
  if (std::exchange(collecting_, false)) collection_->arrived();
  for (Cancelling& each : cancelling_) each.done(each.dropped);
  cancelling_.clear();
  open_ = false;
  return unread;
}

void Slot::leave_suspension() {
  suspended_ = false;
  ++position_;
  applied_.fetch_add(1, std::memory_order_acq_rel);
}

bool Slot::advance(int* budget) {
  const auto commands = decoder_.commands();
  const auto start = std::chrono::steady_clock::now();
  uint64_t applied = applied_.load(std::memory_order_relaxed);
  while (position_ < commands.size()) {
    const Command& command = commands[position_];
    if (command.number <= applied) {
      duplicates_.fetch_add(1, std::memory_order_relaxed);
      ++position_;
      continue;
    }
    if (*budget <= 0) break;
    if (--*budget % kClockEvery == 0 && std::chrono::steady_clock::now() - start > kTurn) {
      *budget = 0;
    }
    if (!engine_->apply(command)) {
      suspended_ = true;
      break;
    }
    ++position_;
    applied_.store(++applied, std::memory_order_release);
  }
  engine_->flush();
  return position_ == commands.size();
}

void Slot::start(std::unique_ptr<SlotEngine> engine) {
  engine_ = std::move(engine);
  engine_->applied(0);
}

void Slot::publish_applied() {
  outbox_.set_applied(applied());
  engine_->applied(applied());
}

bool Slot::start_parcel() {
  if (!take_parcel()) return false;
  if (parcel_.last) {
    publish_applied();
    std::shared_ptr<Connection> connection = outbox_.connection();
    if (connection.get() == parcel_.from) connection->finish(absl::OkStatus(), {});
    close_parcel();
    return true;
  }
  if (absl::Status status = open_parcel(); !status.ok()) {
    publish_applied();
    refuse(status);
    close_parcel();
    return true;
  }
  open_ = true;
  return true;
}

bool Slot::run() {
  if (ended() || !engine_) return false;
  int budget = kTurnCommands;
  Outbox::Cork cork(outbox_);
  for (;;) {
    if (suspended_) {
      if (!woken_.exchange(false, std::memory_order_acq_rel) || !engine_->resume()) break;
      leave_suspension();
    }
    if (!open_) {
      if (budget <= 0 || !start_parcel()) break;
    } else if (advance(&budget)) {
      close_parcel();
    } else if (!suspended_) {
      break;
    }
  }
  publish_applied();
  return !suspended_ && budget <= 0;
}

bool Slot::ended() {
  std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace gradwire::server
