#include "engine/ops/worker.h"

#include <dlfcn.h>

#include "kernels/cpu/backend.h"
#include "kernels/error.h"

namespace gradwire {

absl::StatusOr<std::unique_ptr<Worker>> Worker::create(const WorkerOptions& options) {
  std::unique_ptr<Worker> worker(new Worker());
  if (options.backend == "cpu") {
    worker->backend_ = cpu::make_backend(options.threads);
  } else {
    worker->library_ = dlopen(options.backend.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!worker->library_) return runtime_error("cannot load backend: ", dlerror());
    auto make = reinterpret_cast<GradwireBackendFn>(dlsym(worker->library_, "gradwire_backend"));
    if (!make) {
      return runtime_error("backend ", options.backend, " does not export gradwire_backend");
    }
    worker->backend_.reset(make(kBackendAbi, options.backend_options.c_str()));
    if (!worker->backend_) {
      return runtime_error("backend ", options.backend, " refused to start (another ABI than ",
                           kBackendAbi, ", or bad options)");
    }
  }
  worker->device_ = std::string(worker->backend_->device_type());
  uint64_t limit = options.memory_limit;
  // The kernel hands out memory that it does not have and kills whoever touches it: without a limit
  // of its own, one absurd tensor would end every session.
  if (!limit && options.backend == "cpu") limit = cpu::available_bytes() / 10 * 9;
  worker->allocator_ = std::make_unique<Allocator>(*worker->backend_, limit);
  worker->executor_ = std::make_unique<Executor>(*worker->backend_, options.fusion);
  return worker;
}

Worker::~Worker() {
  executor_.reset();
  allocator_.reset();
  backend_.reset();
  if (library_) dlclose(library_);
}

}  // namespace gradwire
