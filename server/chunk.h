// Chunks of the data plane in gRPC's own buffers, without copies.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/io/upload.h"

namespace gradwire::server {

// One UploadChunk, read where it lies.
class ChunkReader {
 public:
  // Errors: malformed, larger than kChunkBytesMax.
  absl::Status read(const grpc::ByteBuffer& buffer);

  std::string_view key() const { return key_; }  // an encoded SlotKey
  uint64_t transfer() const { return transfer_; }
  uint64_t total() const { return total_; }

  // Checks the data's checksum, then copies the data to its place. Errors: a wrong checksum, those
  // of Upload::write.
  absl::Status write_to(Upload& upload) const;

 private:
  absl::Status read_field(class SliceReader& reader, uint32_t field, uint32_t type);

  std::vector<grpc::Slice> slices_;
  std::string key_;
  uint64_t transfer_ = 0;
  uint64_t total_ = 0;
  uint64_t offset_ = 0;
  uint32_t crc_ = 0;
  std::vector<std::string_view> data_;  // in slices_
};

// A DownloadChunk of `bytes` bytes of `data` at `offset`; keeps `data` alive.
grpc::ByteBuffer chunk_buffer(const std::shared_ptr<const std::string>& data, size_t offset,
                              size_t bytes);

}  // namespace gradwire::server
