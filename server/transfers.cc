#include "server/transfers.h"

#include "server/limits.h"

namespace gradwire::server {

uint64_t Transfers::add(std::shared_ptr<const std::string> data) {
  std::lock_guard lock(mutex_);
  if (data_.size() >= kTransfers) return 0;
  data_.emplace(++last_, std::move(data));
  return last_;
}

std::shared_ptr<const std::string> Transfers::find(uint64_t id) const {
  std::lock_guard lock(mutex_);
  auto found = data_.find(id);
  return found == data_.end() ? nullptr : found->second;
}

void Transfers::drop(uint64_t id) {
  std::lock_guard lock(mutex_);
  data_.erase(id);
}

void Transfers::clear() {
  absl::flat_hash_map<uint64_t, std::shared_ptr<const std::string>> dropped;
  std::lock_guard lock(mutex_);
  dropped.swap(data_);
}

size_t Transfers::size() const {
  std::lock_guard lock(mutex_);
  return data_.size();
}

}  // namespace gradwire::server
