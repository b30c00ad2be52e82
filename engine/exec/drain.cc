#include "engine/exec/drain.h"

#include <condition_variable>
#include <mutex>

namespace gradwire {

void drain(Backend& backend) {
  for (int s = 0; s < kStreamKinds; ++s) {
    std::mutex mutex;
    std::condition_variable changed;
    bool complete = false;
    backend.on_complete(backend.record(static_cast<StreamKind>(s)), [&] {
      std::lock_guard lock(mutex);
      complete = true;
      changed.notify_one();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return complete; });
  }
}

}  // namespace gradwire
