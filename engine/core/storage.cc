#include "engine/core/storage.h"

#include "engine/exec/allocator.h"

namespace gradwire {

Storage::~Storage() {
  if (data_) allocator_.deallocate(data_, block_, *account_);
}

absl::Status Storage::materialise() {
  if (data_ || bytes == 0) {
    state_ = StorageState::kResident;
    return absl::OkStatus();
  }
  auto block = allocator_.allocate(bytes, *account_);
  if (!block.ok()) return block.status();
  data_ = block->data;
  block_ = block->bytes;
  state_ = StorageState::kResident;
  return absl::OkStatus();
}

}  // namespace gradwire
