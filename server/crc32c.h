// CRC-32C (Castagnoli), as gRPC services and file formats use it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradwire::server {

// Of `bytes` at `data`, continuing `crc`, the checksum of what came before (0 at the start).
uint32_t crc32c(uint32_t crc, const void* data, size_t bytes);

}  // namespace gradwire::server
