// Contents of read tensors that were too large for a reply, until the client has fetched them.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace gradwire::server {

// Downloads of one slot. Thread safe.
class Transfers {
 public:
  // A new transfer's id, from 1; 0 when kTransfers wait already.
  uint64_t add(std::shared_ptr<const std::string> data);
  // Null when there is no such transfer. It stays: a cut download is resumed.
  std::shared_ptr<const std::string> find(uint64_t id) const;
  // The client has it all.
  void drop(uint64_t id);
  void clear();
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  uint64_t last_ = 0;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const std::string>> data_;
};

}  // namespace gradwire::server
