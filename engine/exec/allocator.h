// Device memory in size classes, cached in freelists, charged to sessions.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/exec/account.h"
#include "kernels/backend.h"

namespace gradwire {

struct Block {
  void* data = nullptr;
  size_t bytes = 0;  // of the size class
};

// Thread safe. Freed blocks are reused in stream order: a block may be handed out while kernels
// queued before its release still use it, so it must first be written by work queued later.
class Allocator {
 public:
  // `limit`: bytes for all sessions together, 0 for none.
  Allocator(Backend& backend, uint64_t limit) : backend_(backend), limit_(limit) {}
  ~Allocator();

  // Error: kOutOfMemory, saying what was asked, used and allowed, and what would help.
  absl::StatusOr<Block> allocate(size_t bytes, Account& account);
  void deallocate(void* data, size_t block_bytes, Account& account);

  // Gives cached blocks back to the device.
  void trim();

  uint64_t used() const;    // bytes in use by storages
  uint64_t cached() const;  // bytes in freelists

  // The size class of a request: eight steps to each power of two, 64 bytes at least.
  static size_t class_bytes(size_t bytes);

 private:
  static constexpr int kClasses = 64 * 8;
  static int class_index(size_t class_bytes);

  Backend& backend_;
  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  uint64_t used_ = 0;
  uint64_t cached_ = 0;
};

}  // namespace gradwire
