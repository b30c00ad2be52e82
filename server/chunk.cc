#include "server/chunk.h"

#include "kernels/error.h"
#include "server/crc32c.h"
#include "server/limits.h"
#include "server/wire.h"

namespace gradwire::server {
namespace {

constexpr size_t kKeyBytes = 1024;

enum UploadField : uint32_t {
  kKey = 1,
  kTransfer = 2,
  kUploadTotal = 3,
  kUploadOffset = 4,
  kUploadCrc = 5,
  kUploadData = 6,
};
enum DownloadField : uint32_t { kOffset = 1, kTotal = 2, kCrc = 3, kData = 4 };

absl::Status malformed() {
  return value_error("[upload] the chunk is malformed");
}

}  // namespace

// Reads protobuf's wire format across the borders of slices.
class SliceReader {
 public:
  explicit SliceReader(const std::vector<grpc::Slice>& slices) : slices_(slices) { settle(); }

  bool done() const { return index_ == slices_.size(); }
  bool byte(uint8_t* value) {
    if (done()) return false;
    *value = slices_[index_].begin()[position_];
    ++position_;
    settle();
    return true;
  }
  bool varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t next;
      if (!byte(&next) || (shift == 63 && next > 1)) return false;
      *value |= uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return true;
    }
    return false;
  }
  bool fixed(size_t bytes, uint64_t* value) {
    *value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      uint8_t next;
      if (!byte(&next)) return false;
      *value |= uint64_t{next} << (8 * i);
    }
    return true;
  }
  // Views of the next `bytes` bytes, piece by piece; `pieces` may be null.
  bool take(uint64_t bytes, std::vector<std::string_view>* pieces) {
    while (bytes > 0) {
      if (done()) return false;
      const grpc::Slice& slice = slices_[index_];
      const size_t size = std::min<uint64_t>(bytes, slice.size() - position_);
      if (pieces) {
        pieces->emplace_back(reinterpret_cast<const char*>(slice.begin()) + position_, size);
      }
      position_ += size;
      bytes -= size;
      settle();
    }
    return true;
  }

 private:
  void settle() {
    while (index_ < slices_.size() && position_ == slices_[index_].size()) {
      ++index_;
      position_ = 0;
    }
  }

  const std::vector<grpc::Slice>& slices_;
  size_t index_ = 0;
  size_t position_ = 0;
};

absl::Status ChunkReader::read(const grpc::ByteBuffer& buffer) {
  if (buffer.Length() > kChunkBytesMax + kKeyBytes) {
    return value_error("[upload] a chunk of ", buffer.Length(), " bytes is over the limit of ",
                       kChunkBytesMax);
  }
  if (!buffer.Dump(&slices_).ok()) return malformed();
  SliceReader reader(slices_);
  while (!reader.done()) {
    uint64_t tag;
    if (!reader.varint(&tag) || tag > UINT32_MAX || tag >> 3 == 0) return malformed();
    GW_RETURN_IF_ERROR(read_field(reader, static_cast<uint32_t>(tag >> 3), tag & 7));
  }
  return absl::OkStatus();
}

absl::Status ChunkReader::read_field(SliceReader& reader, uint32_t field, uint32_t type) {
  uint64_t value = 0;
  switch (static_cast<WireType>(type)) {
    case WireType::kVarint:
      if (!reader.varint(&value)) return malformed();
      if (field == kTransfer) transfer_ = value;
      if (field == kUploadTotal) total_ = value;
      if (field == kUploadOffset) offset_ = value;
      return absl::OkStatus();
    case WireType::kFixed32:
      if (!reader.fixed(4, &value)) return malformed();
      if (field == kUploadCrc) crc_ = static_cast<uint32_t>(value);
      return absl::OkStatus();
    case WireType::kFixed64:
      return reader.fixed(8, &value) ? absl::OkStatus() : malformed();
    case WireType::kBytes:
      break;
    default:
      return malformed();
  }
  if (!reader.varint(&value)) return malformed();
  std::vector<std::string_view> pieces;
  if (!reader.take(value, &pieces)) return malformed();
  if (field == kUploadData) data_ = std::move(pieces);
  if (field == kKey) {
    if (value > kKeyBytes) return malformed();
    key_.clear();
    for (std::string_view piece : pieces) key_.append(piece);
  }
  return absl::OkStatus();
}

absl::Status ChunkReader::write_to(Upload& upload) const {
  uint32_t crc = 0;
  for (std::string_view piece : data_) crc = crc32c(crc, piece.data(), piece.size());
  if (crc != crc_) {
    return make_error(ErrorKind::kConnection,
                      absl::StrCat("[upload] the chunk at ", offset_, " has a wrong checksum"));
  }
  uint64_t offset = offset_;
  for (std::string_view piece : data_) {
    GW_RETURN_IF_ERROR(upload.write(offset, piece.data(), piece.size()));
    offset += piece.size();
  }
  return absl::OkStatus();
}

grpc::ByteBuffer chunk_buffer(const std::shared_ptr<const std::string>& data, size_t offset,
                              size_t bytes) {
  std::string head;
  write_varint_field(kOffset, offset, &head);
  write_varint_field(kTotal, data->size(), &head);
  write_fixed32_field(kCrc, crc32c(0, data->data() + offset, bytes), &head);
  write_bytes_header(kData, bytes, &head);
  auto* owner = new std::shared_ptr<const std::string>(data);
  const grpc::Slice slices[] = {
      grpc::Slice(head.data(), head.size()),
      // gRPC never writes to it.
      grpc::Slice(
          const_cast<char*>(data->data()) + offset, bytes,
          [](void* keeper) { delete static_cast<std::shared_ptr<const std::string>*>(keeper); },
          owner),
  };
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace gradwire::server
