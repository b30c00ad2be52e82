// A slot's stream as the session core sees it. gRPC is one implementation, tests bring their own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace gradwire::server {

// Bytes of one message and whoever keeps them alive.
struct Message {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// Calls come from any thread, never with a lock of the session core held, and must not block.
class Connection {
 public:
  virtual ~Connection() = default;
  // Something waits in the slot's outbox: take it with Outbox::next when the last write is done.
  virtual void notify() = 0;
  // The slot has room again after Slot::receive returned false.
  virtual void resume_reading() = 0;
  // Ends the stream after what Outbox::next still gives and, when not empty, one `last` message (an
  // encoded Replies); nothing is read any more. A status of ok: the client closed its half and
  // has everything. Later calls do nothing.
  virtual void finish(const absl::Status& status, std::string last) = 0;
};

}  // namespace gradwire::server
