#include "server/wire.h"

namespace gradwire::server {
namespace {

constexpr uint32_t tag_of(uint32_t field, WireType type) {
  return field << 3 | static_cast<uint32_t>(type);
}

}  // namespace

bool WireReader::varint(uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == end_) return false;
    const uint8_t byte = static_cast<uint8_t>(*at_++);
    if (shift == 63 && byte > 1) return false;
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return true;
    }
  }
  return false;
}

bool WireReader::tag(uint32_t* field, WireType* type) {
  uint64_t value;
  if (!varint(&value) || value > UINT32_MAX) return false;
  *field = static_cast<uint32_t>(value >> 3);
  *type = static_cast<WireType>(value & 7);
  if (*field == 0) return false;
  return *type == WireType::kVarint || *type == WireType::kFixed64 || *type == WireType::kBytes ||
         *type == WireType::kFixed32;
}

bool WireReader::bytes(std::string_view* value) {
  uint64_t size;
  if (!varint(&size) || size > static_cast<uint64_t>(end_ - at_)) return false;
  *value = std::string_view(at_, size);
  at_ += size;
  return true;
}

bool WireReader::skip(WireType type) {
  uint64_t number;
  uint32_t half;
  std::string_view view;
  switch (type) {
    case WireType::kVarint:
      return varint(&number);
    case WireType::kFixed64:
      return fixed64(&number);
    case WireType::kFixed32:
      return fixed32(&half);
    case WireType::kBytes:
      return bytes(&view);
  }
  return false;
}

void write_varint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void write_varint_field(uint32_t field, uint64_t value, std::string* out) {
  if (value == 0) return;
  write_varint(tag_of(field, WireType::kVarint), out);
  write_varint(value, out);
}

void write_fixed32_field(uint32_t field, uint32_t value, std::string* out) {
  if (value == 0) return;
  write_varint(tag_of(field, WireType::kFixed32), out);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void write_bytes_header(uint32_t field, size_t size, std::string* out) {
  write_varint(tag_of(field, WireType::kBytes), out);
  write_varint(size, out);
}

void write_bytes_field(uint32_t field, std::string_view value, std::string* out) {
  write_bytes_header(field, value.size(), out);
  out->append(value);
}

}  // namespace gradwire::server
