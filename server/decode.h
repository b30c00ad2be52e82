// From the bytes of a StreamRequest to the commands that dispatch takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ops/command.h"

namespace gradwire::server {

// The parts of a StreamRequest, still encoded. Views into the message.
struct StreamParts {
  std::string_view start;  // a SlotKey; empty: none
  std::string_view frame;
};
// Error: not a StreamRequest, or larger than kFrameBytes.
absl::StatusOr<StreamParts> split_stream_request(std::string_view message);

// A slot's table of the user's own source lines.
class SiteTable {
 public:
  // Null for 0 and for an entry that was never set.
  const std::string* find(uint16_t id) const {
    return id < sites_.size() && !sites_[id].empty() ? &sites_[id] : nullptr;
  }
  void set(uint16_t id, std::string_view text);

 private:
  std::vector<std::string> sites_;
};

// One frame at a time, its memory reused from frame to frame. Nothing is reserved that the frame
// does not hold: a count is compared with what is there before it is used.
class FrameDecoder {
 public:
  // Checks the whole frame, then sets its sites in `sites`. The commands point into `frame` and
  // `sites`, and are valid until the next decode or the end of either.
  // A frame that does not say where it starts starts at `next`.
  // Errors (nothing is changed): malformed; counts that do not agree; over a limit.
  absl::Status decode(std::string_view frame, SiteTable& sites, uint64_t next);

  std::span<const Command> commands() const { return commands_; }
  uint64_t first() const { return first_; }

 private:
  absl::Status parse(std::string_view frame);
  absl::Status parse_site(std::string_view message);
  absl::Status bind();

  uint64_t first_ = 0;
  std::vector<uint64_t> heads_;
  std::vector<uint64_t> ids_;
  std::string_view tape_;
  std::vector<std::pair<uint16_t, std::string_view>> new_sites_;
  std::vector<Command> commands_;
};

// The field `acknowledged` of a frame, 0 when there is none or the frame is malformed.
uint64_t peek_acknowledged(std::string_view frame);

}  // namespace gradwire::server
