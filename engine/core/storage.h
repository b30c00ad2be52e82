// A block of device memory that tensors share. The only tensor state that dispatch and the
// executor both hold.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/core/error_record.h"
#include "engine/core/recycled.h"
#include "engine/core/ref.h"
#include "engine/exec/account.h"

namespace gradwire {

class Allocator;

enum class StorageState : uint8_t {
  kUnallocated,  // promised by dispatch, not yet written by a task
  kResident,
  kParked,    // contents are in host memory or on disk
  kReleased,  // gave its memory back for good
};

// References may be dropped on any thread. `version` belongs to the session's strand; everything
// else to the executor's thread.
class Storage : public RefCounted, public Recycled<Storage> {
 public:
  Storage(size_t bytes, Allocator& allocator, std::shared_ptr<Account> account)
      : bytes(bytes), allocator_(allocator), account_(std::move(account)) {}
  ~Storage() override;

  // Makes memory for it unless it has some. Error: out of memory, with what would help.
  absl::Status materialise();

  void* data() const { return data_; }
  StorageState state() const { return state_; }

  const size_t bytes;
  uint32_t version = 0;  // counts in-place writes; views share it
  ErrorRef poison;       // the device half: set by the task that failed to write it
  ErrorRef refused;      // an in-place write that was refused and not yet told to a reader

 private:
  Allocator& allocator_;
  std::shared_ptr<Account> account_;
  void* data_ = nullptr;
  size_t block_ = 0;
  StorageState state_ = StorageState::kUnallocated;
};

using StorageRef = Ref<Storage>;

}  // namespace gradwire
