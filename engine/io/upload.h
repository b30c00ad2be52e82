// A tensor's contents on their way from a client: the data plane writes, an upload command waits.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/exec/account.h"

namespace gradwire {

// One transfer. Thread safe. Memory is charged to the session's account when it starts.
class Upload {
 public:
  Upload() = default;
  ~Upload();

  // Sets the size before the first write; a second call must give the same size. Errors: another
  // size, out of memory (which also fails the upload).
  absl::Status start(uint64_t total, std::shared_ptr<Account> account);
  // Copies a chunk to its place. Chunks arrive in order; a chunk that was received before is
  // skipped (a resumed upload may repeat itself). Errors: a gap, past the end, not started, failed.
  absl::Status write(uint64_t offset, const void* data, size_t bytes);
  // Ends the upload with an error: the tensor will be poisoned, nothing else happens.
  void fail(absl::Status status);

  uint64_t received() const;
  bool ready() const;  // complete or failed
  absl::Status status() const;
  // Calls fn once, at once when ready() already, else from the thread that completes the upload.
  void on_ready(std::function<void()> fn);
  // The bytes of a complete upload.
  const std::string& data() const { return data_; }

 private:
  void finish(std::unique_lock<std::mutex> lock);

  mutable std::mutex mutex_;
  std::string data_;
  uint64_t total_ = 0;
  uint64_t received_ = 0;
  bool started_ = false;
  absl::Status status_;
  std::shared_ptr<Account> account_;
  std::vector<std::function<void()>> waiters_;
};

// The uploads of one session by (slot, transfer). Created by whichever side mentions them first,
// dropped when the command has taken the data. Thread safe.
class Uploads {
 public:
  // Error: too many uploads at once.
  absl::StatusOr<std::shared_ptr<Upload>> get(uint32_t slot, uint64_t transfer);
  void drop(uint32_t slot, uint64_t transfer);
  // Fails all that are not complete; used when the session ends.
  void fail_all(const absl::Status& status);

  static constexpr size_t kMaxPending = 1024;

 private:
  std::mutex mutex_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, std::shared_ptr<Upload>> uploads_;
};

}  // namespace gradwire
