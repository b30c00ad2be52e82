// A slot's answers: numbered, kept until acknowledged, taken by whatever connection is there.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/ops/reply.h"
#include "server/connection.h"
#include "server/transfers.h"

namespace gradwire::server {

// The replies of one Execute call. Thread safe.
class Collection {
 public:
  // One reply more is to come.
  void expect();
  void add(std::string_view encoded_reply);
  // What was expected will not come (the slot ended), or the commands are all applied.
  void arrived();
  // Calls `done` once, with the serialized `replies` fields of a Replies message in the order
  // they came, when nothing is missing: from any thread, possibly at once.
  void on_complete(std::function<void(const std::string&)> done);

 private:
  void finish(std::unique_lock<std::mutex> lock);

  std::mutex mutex_;
  size_t missing_ = 1;  // the commands themselves, until they are applied
  std::string replies_;
  std::vector<std::function<void(const std::string&)>> waiters_;
};

// Thread safe. Outlives the slot's Dispatcher and its tasks.
class Outbox final : public ReplySink {
 public:
  explicit Outbox(std::string device) : device_(std::move(device)) {}

  // From the engine. Encodes at once; a slot that has ended drops it.
  void reply(uint64_t number, Reply reply) override;
  // An encoded Reply that answers no command.
  void push(std::string encoded);
  // The reply to command `number` goes to an Execute call and not to the stream.
  void collect(uint64_t number, std::shared_ptr<Collection> collection);

  // Commands up to this one are applied.
  void set_applied(uint64_t number);
  // Replies up to this number have arrived and are forgotten.
  void acknowledge(uint64_t reply_number);

  // The connection that is told of new replies from the next notify() on. What is not acknowledged
  // is sent again.
  void attach(std::shared_ptr<Connection> connection);
  void notify();
  // Nothing happens when another connection has taken its place.
  void detach(const Connection* connection);
  std::shared_ptr<Connection> connection() const;

  // Appends a Replies message with everything that waits, up to about kRepliesBytes. False:
  // nothing waits, or `connection` is no longer this slot's.
  bool next(const Connection* connection, std::string* message);

  // Bytes of replies that are not acknowledged.
  size_t kept_bytes() const;
  uint64_t repeated() const;  // replies sent more than once
  Transfers& transfers() { return transfers_; }
  // Drops everything that is kept and all that comes.
  void end();

  // While one exists, replies made on this thread wait for its end before the connection is told.
  class Cork {
   public:
    explicit Cork(Outbox& outbox);
    ~Cork();
    Cork(const Cork&) = delete;
    Cork& operator=(const Cork&) = delete;

   private:
    Outbox& outbox_;
  };

 private:
  const std::string device_;
  Transfers transfers_;
  mutable std::mutex mutex_;
  std::deque<std::string> kept_;  // encoded; kept_[0] has reply number first_
  uint64_t first_ = 1;
  size_t sent_ = 0;       // how many of kept_ this connection has taken
  size_t sent_ever_ = 0;  // how many of kept_ any connection has taken
  size_t bytes_ = 0;
  uint64_t repeated_ = 0;
  uint64_t applied_ = 0;
  uint64_t applied_sent_ = 0;
  bool ended_ = false;
  std::shared_ptr<Connection> connection_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Collection>> collections_;
};

}  // namespace gradwire::server
