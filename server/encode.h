// Answers of the engine as protobuf.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "engine/ops/reply.h"
#include "gradwire/v1/error.pb.h"
#include "gradwire/v1/frame.pb.h"
#include "server/transfers.h"

namespace gradwire::server {

// A root cause; marks it as told to the client.
v1::Error error_message(const ErrorRecord& error);
// A Status that no command caused.
v1::Error error_message(const absl::Status& status);

// A whole Reply, serialized. Values over kInlineBytes become transfers. A poisoned tensor among
// those asked for makes the reply that tensor's error.
std::string encode_reply(uint64_t number, const Reply& reply, const std::string& device,
                         Transfers& transfers);
// An event, serialized as a Reply.
std::string encode_event(v1::Event::Kind kind, const std::string& text);

}  // namespace gradwire::server
