#include "server/outbox.h"

#include <algorithm>

#include "server/encode.h"
#include "server/limits.h"
#include "server/wire.h"

namespace gradwire::server {
namespace {

enum RepliesField : uint32_t { kApplied = 1, kDurable = 2, kReplies = 3, kFirst = 4 };

thread_local Outbox* corked = nullptr;

}  // namespace

void Collection::expect() {
  std::lock_guard lock(mutex_);
  ++missing_;
}

void Collection::add(std::string_view encoded_reply) {
  std::unique_lock lock(mutex_);
  write_bytes_field(kReplies, encoded_reply, &replies_);
  --missing_;
  finish(std::move(lock));
}

void Collection::arrived() {
  std::unique_lock lock(mutex_);
  --missing_;
  finish(std::move(lock));
}

void Collection::on_complete(std::function<void(const std::string&)> done) {
  std::unique_lock lock(mutex_);
  waiters_.push_back(std::move(done));
  finish(std::move(lock));
}

void Collection::finish(std::unique_lock<std::mutex> lock) {
  if (missing_ != 0) return;
  auto waiters = std::move(waiters_);
  waiters_.clear();
  lock.unlock();
  // Complete, so nothing changes replies_ any more.
  for (auto& waiter : waiters) waiter(replies_);
}

Outbox::Cork::Cork(Outbox& outbox) : outbox_(outbox) {
  corked = &outbox;
}

Outbox::Cork::~Cork() {
  corked = nullptr;
  outbox_.notify();
}

void Outbox::reply(uint64_t number, Reply reply) {
  std::shared_ptr<Collection> collection;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    if (auto found = collections_.find(number); found != collections_.end()) {
      collection = std::move(found->second);
      collections_.erase(found);
    }
  }
  std::string encoded = encode_reply(number, reply, device_, transfers_);
  if (!collection) return push(std::move(encoded));
  collection->add(encoded);
}

void Outbox::push(std::string encoded) {
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    bytes_ += encoded.size();
    kept_.push_back(std::move(encoded));
  }
  if (corked != this) notify();
}

void Outbox::collect(uint64_t number, std::shared_ptr<Collection> collection) {
  std::lock_guard lock(mutex_);
  collections_[number] = std::move(collection);
}

void Outbox::set_applied(uint64_t number) {
  std::lock_guard lock(mutex_);
  applied_ = number;
}

void Outbox::acknowledge(uint64_t reply_number) {
  std::lock_guard lock(mutex_);
  // Only what was sent can have arrived.
  while (sent_ever_ > 0 && first_ <= reply_number) {
    bytes_ -= kept_.front().size();
    kept_.pop_front();
    ++first_;
    --sent_ever_;
    if (sent_ > 0) --sent_;
  }
}

void Outbox::attach(std::shared_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  connection_ = std::move(connection);
  sent_ = 0;
  applied_sent_ = 0;
}

void Outbox::detach(const Connection* connection) {
  std::shared_ptr<Connection> dropped;
  std::lock_guard lock(mutex_);
  if (connection_.get() == connection) dropped.swap(connection_);
}

std::shared_ptr<Connection> Outbox::connection() const {
  std::lock_guard lock(mutex_);
  return connection_;
}

bool Outbox::next(const Connection* connection, std::string* message) {
  std::lock_guard lock(mutex_);
  if (connection_.get() != connection) return false;
  if (sent_ == kept_.size() && applied_sent_ == applied_) return false;
  write_varint_field(kApplied, applied_, message);
  write_varint_field(kDurable, applied_, message);
  if (sent_ < kept_.size()) write_varint_field(kFirst, first_ + sent_, message);
  while (sent_ < kept_.size() && message->size() < kRepliesBytes) {
    if (sent_ < sent_ever_) ++repeated_;
    write_bytes_field(kReplies, kept_[sent_++], message);
  }
  sent_ever_ = std::max(sent_ever_, sent_);
  applied_sent_ = applied_;
  return true;
}

size_t Outbox::kept_bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

uint64_t Outbox::repeated() const {
  std::lock_guard lock(mutex_);
  return repeated_;
}

void Outbox::end() {
  absl::flat_hash_map<uint64_t, std::shared_ptr<Collection>> collections;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    kept_.clear();
    sent_ = sent_ever_ = bytes_ = 0;
    collections.swap(collections_);
  }
  transfers_.clear();
  for (auto& [number, collection] : collections) collection->arrived();
}

void Outbox::notify() {
  if (std::shared_ptr<Connection> connection = this->connection()) connection->notify();
}

}  // namespace gradwire::server
