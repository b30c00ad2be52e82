// What a client may send and what the server keeps for it; told at Hello.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradwire::server {

inline constexpr uint32_t kProtocolMin = 1;
inline constexpr uint32_t kProtocolMax = 1;

inline constexpr size_t kFrameBytes = 4 << 20;     // largest StreamRequest
inline constexpr size_t kFrameCommands = 16384;    // in one frame
inline constexpr size_t kInlineBytes = 64 << 10;   // largest value inside a reply
inline constexpr size_t kChunkBytes = 1 << 20;     // suggested chunk of the data plane
inline constexpr size_t kChunkBytesMax = 8 << 20;  // largest chunk of the data plane
inline constexpr size_t kSites = 65535;            // entries of a slot's site table
inline constexpr size_t kSiteBytes = 512;          // of one entry
inline constexpr size_t kSlots = 256;              // of one session
inline constexpr size_t kSessions = 1024;          // of one daemon
inline constexpr size_t kTransfers = 65536;        // downloads waiting in one slot
inline constexpr size_t kNameBytes = 256;          // of a session's or client's name

// A connection is not read while this much of it waits for dispatch.
inline constexpr size_t kInboxBytes = 1 << 20;
// A slot stops while this much of its replies is not acknowledged.
inline constexpr size_t kOutboxBytes = 64 << 20;
// Replies are sent together up to about this size.
inline constexpr size_t kRepliesBytes = 1 << 20;

}  // namespace gradwire::server
