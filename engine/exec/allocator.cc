#include "engine/exec/allocator.h"

#include <bit>

#include "engine/exec/drain.h"
#include "kernels/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace gradwire {
namespace {

// AddressSanitizer sees every touch of the CPU's blocks beyond the first `bytes` of them. Other
// backends may work on a block after its release.
void open_block([[maybe_unused]] const Backend& backend, [[maybe_unused]] const Block& block,
                [[maybe_unused]] size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  if (backend.device_type() != "cpu") return;
  ASAN_POISON_MEMORY_REGION(block.data, block.bytes);
  ASAN_UNPOISON_MEMORY_REGION(block.data, bytes);
#endif
}

std::string mebibytes(uint64_t bytes) {
  return absl::StrCat(static_cast<double>(bytes * 100 / (1 << 20)) / 100.0, " MiB");
}

}  // namespace

size_t Allocator::class_bytes(size_t bytes) {
  if (bytes <= 64) return 64;
  size_t step = std::bit_floor(bytes - 1) / 8;
  if (step < 64) step = 64;
  return (bytes + step - 1) / step * step;
}

int Allocator::class_index(size_t class_bytes) {
  size_t top = std::bit_floor(class_bytes);
  int exponent = std::countr_zero(top);
  size_t fraction = exponent >= 3 ? (class_bytes - top) >> (exponent - 3) : 0;
  return exponent * 8 + static_cast<int>(fraction);
}

Allocator::~Allocator() {
  trim();
}

absl::StatusOr<Block> Allocator::allocate(size_t bytes, Account& account) {
  size_t size = class_bytes(bytes);
  if (!account.charge(size)) {
    return make_error(
        ErrorKind::kOutOfMemory,
        absl::StrCat("out of memory: tried to allocate ", mebibytes(bytes), "; the session uses ",
                     mebibytes(account.used()), " of the ", mebibytes(account.limit()),
                     " it is allowed. Release tensors (del), use a smaller batch, or ask the "
                     "admin for a higher limit."));
  }
  std::unique_lock lock(mutex_);
  auto& list = free_[class_index(size)];
  if (!list.empty()) {
    Block block{list.back(), size};
    list.pop_back();
    cached_ -= size;
    used_ += size;
    open_block(backend_, block, bytes);
    return block;
  }
  used_ += size;  // claimed before the lock goes, so that others see it
  bool over = limit_ && used_ > limit_;
  bool crowded = limit_ && used_ + cached_ > limit_;
  lock.unlock();
  if (crowded) trim();
  void* data = over ? nullptr : backend_.allocate(size);
  if (!data && !over) {
    trim();
    data = backend_.allocate(size);
  }
  lock.lock();
  if (!data) {
    used_ -= size;
    account.release(size);
    return make_error(
        ErrorKind::kOutOfMemory,
        absl::StrCat("out of memory: tried to allocate ", mebibytes(bytes), " on ",
                     std::string(backend_.device_type()), "; all sessions use ", mebibytes(used_),
                     limit_ ? absl::StrCat(" of ", mebibytes(limit_)) : "", ", this one ",
                     mebibytes(account.used()),
                     ". Release tensors (del), use a smaller batch, or wait for other sessions."));
  }
  Block block{data, size};
  open_block(backend_, block, bytes);
  return block;
}

void Allocator::deallocate(void* data, size_t block_bytes, Account& account) {
  account.release(block_bytes);
  open_block(backend_, {data, block_bytes}, 0);
  std::lock_guard lock(mutex_);
  used_ -= block_bytes;
  cached_ += block_bytes;
  free_[class_index(block_bytes)].push_back(data);
}

void Allocator::trim() {
  std::array<std::vector<void*>, kClasses> blocks;
  {
    std::lock_guard lock(mutex_);
    if (!cached_) return;
    blocks.swap(free_);
    cached_ = 0;
  }
  // Kernels queued before a block's release may still use it. Without the lock: what the wait is
  // for may itself free memory.
  drain(backend_);
  for (int exponent = 6; exponent < 64; ++exponent) {
    for (int fraction = 0; fraction < 8; ++fraction) {
      size_t size = (size_t{1} << exponent) + ((size_t{1} << exponent) / 8) * fraction;
      for (void* data : blocks[exponent * 8 + fraction]) {
        open_block(backend_, {data, size}, size);
        backend_.deallocate(data, size);
      }
    }
  }
}

uint64_t Allocator::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

uint64_t Allocator::cached() const {
  std::lock_guard lock(mutex_);
  return cached_;
}

}  // namespace gradwire
