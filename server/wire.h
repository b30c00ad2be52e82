// Protocol Buffers' wire format by hand, for the messages whose bulk must not be copied or
// expanded: Frame, UploadChunk, Replies and DownloadChunk.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gradwire::server {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Reads one message that lies in one block. Views only. Every call returns false on malformed
// input, after which the reader must not be used.
class WireReader {
 public:
  explicit WireReader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  bool done() const { return at_ == end_; }
  // Groups and field numbers out of range are malformed.
  bool tag(uint32_t* field, WireType* type);
  bool varint(uint64_t* value);
  bool fixed64(uint64_t* value) { return take(value, sizeof *value); }
  bool fixed32(uint32_t* value) { return take(value, sizeof *value); }
  bool bytes(std::string_view* value);
  bool skip(WireType type);

 private:
  bool take(void* value, size_t size) {
    if (static_cast<size_t>(end_ - at_) < size) return false;
    std::memcpy(value, at_, size);
    at_ += size;
    return true;
  }

  const char* at_;
  const char* end_;
};

void write_varint(uint64_t value, std::string* out);
// A varint field; left out when 0, as proto3 does.
void write_varint_field(uint32_t field, uint64_t value, std::string* out);
void write_fixed32_field(uint32_t field, uint32_t value, std::string* out);
// Tag and length of a bytes field; the bytes follow.
void write_bytes_header(uint32_t field, size_t size, std::string* out);
void write_bytes_field(uint32_t field, std::string_view value, std::string* out);

}  // namespace gradwire::server
