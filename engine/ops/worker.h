// One device and everything that runs on it: backend, memory, executor. One per process.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/exec/allocator.h"
#include "engine/exec/executor.h"
#include "kernels/backend.h"

namespace gradwire {

struct WorkerOptions {
  std::string backend = "cpu";  // "cpu", or the path of a plug-in
  std::string backend_options;  // handed to a plug-in
  int threads = 0;              // CPU threads, the executor's own included; 0: all cores
  uint64_t memory_limit = 0;    // bytes for all sessions; 0: nine tenths of what is free at start
  bool fusion = true;
};

// Thread safe.
class Worker {
 public:
  // Errors: a plug-in that cannot be loaded or speaks another ABI.
  static absl::StatusOr<std::unique_ptr<Worker>> create(const WorkerOptions& options);
  ~Worker();

  Backend& backend() { return *backend_; }
  Allocator& allocator() { return *allocator_; }
  Executor& executor() { return *executor_; }
  const std::string& device() const { return device_; }  // "cpu", "cuda"

 private:
  Worker() = default;
  void* library_ = nullptr;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Executor> executor_;
  std::string device_;
};

}  // namespace gradwire
