#include "engine/io/upload.h"

#include <new>
#include <stdexcept>

#include "kernels/error.h"

namespace gradwire {

Upload::~Upload() {
  if (account_) account_->release(total_);
}

absl::Status Upload::start(uint64_t total, std::shared_ptr<Account> account) {
  std::unique_lock lock(mutex_);
  if (!status_.ok()) return status_;
  if (started_) {
    if (total == total_) return absl::OkStatus();
    return value_error("[upload] the transfer was started with ", total_, " bytes, now it says ",
                       total);
  }
  if (!account->charge(total)) {
    status_ = make_error(
        ErrorKind::kOutOfMemory,
        absl::StrCat("[upload] out of memory: asked for ", total, " bytes, the session uses ",
                     account->used(), " of ", account->limit()));
    finish(std::move(lock));
    return status();
  }
  account_ = std::move(account);
  total_ = total;
  try {
    // Only address space: pages are taken as chunks arrive, so a client pays for what it sends.
    data_.reserve(total);
  } catch (const std::exception&) {
    status_ = make_error(
        ErrorKind::kOutOfMemory,
        absl::StrCat("[upload] out of memory: the host has no room for ", total, " bytes"));
    finish(std::move(lock));
    return status();
  }
  started_ = true;
  if (total == 0) finish(std::move(lock));
  return absl::OkStatus();
}

absl::Status Upload::write(uint64_t offset, const void* data, size_t bytes) {
  std::unique_lock lock(mutex_);
  if (!status_.ok()) return status_;
  if (!started_) return value_error("[upload] a chunk came before the transfer's size");
  if (offset > total_ || bytes > total_ - offset) {
    return value_error("[upload] a chunk of ", bytes, " bytes at ", offset,
                       " ends after the transfer's ", total_, " bytes");
  }
  if (offset > received_) {
    return value_error("[upload] a chunk starts at ", offset, " but only ", received_,
                       " bytes have arrived");
  }
  const uint64_t known = received_ - offset;
  if (known >= bytes) return absl::OkStatus();
  data_.append(static_cast<const char*>(data) + known, bytes - known);
  received_ = data_.size();
  if (received_ == total_) finish(std::move(lock));
  return absl::OkStatus();
}

void Upload::fail(absl::Status status) {
  std::unique_lock lock(mutex_);
  if (!status_.ok() || (started_ && received_ == total_)) return;
  status_ = std::move(status);
  finish(std::move(lock));
}

uint64_t Upload::received() const {
  std::lock_guard lock(mutex_);
  return received_;
}

bool Upload::ready() const {
  std::lock_guard lock(mutex_);
  return !status_.ok() || (started_ && received_ == total_);
}

absl::Status Upload::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

void Upload::on_ready(std::function<void()> fn) {
  {
    std::lock_guard lock(mutex_);
    if (status_.ok() && !(started_ && received_ == total_)) {
      waiters_.push_back(std::move(fn));
      return;
    }
  }
  fn();
}

void Upload::finish(std::unique_lock<std::mutex> lock) {
  std::vector<std::function<void()>> waiters = std::move(waiters_);
  waiters_.clear();
  lock.unlock();
  for (auto& waiter : waiters) waiter();
}

absl::StatusOr<std::shared_ptr<Upload>> Uploads::get(uint32_t slot, uint64_t transfer) {
  std::lock_guard lock(mutex_);
  auto found = uploads_.find({slot, transfer});
  if (found != uploads_.end()) return found->second;
  if (uploads_.size() >= kMaxPending) {
    return runtime_error("[upload] more than ", kMaxPending, " uploads at once");
  }
  auto upload = std::make_shared<Upload>();
  uploads_.emplace(std::pair(slot, transfer), upload);
  return upload;
}

void Uploads::drop(uint32_t slot, uint64_t transfer) {
  std::lock_guard lock(mutex_);
  uploads_.erase({slot, transfer});
}

void Uploads::fail_all(const absl::Status& status) {
  std::vector<std::shared_ptr<Upload>> pending;
  {
    std::lock_guard lock(mutex_);
    for (auto& [key, upload] : uploads_) pending.push_back(upload);
    uploads_.clear();
  }
  for (auto& upload : pending) upload->fail(status);
}

}  // namespace gradwire
