// Lets ThreadSanitizer see the order that Abseil's locks make. The distribution's gRPC and Abseil
// are built without it: what their threads hand to each other under absl::Mutex, our objects
// among it, looked like thousands of races. Linked into programs that use gRPC, in the tsan
// preset only. No report is suppressed.
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>

#include <string>

extern "C" {
void __tsan_acquire(void* at);
void __tsan_release(void* at);

// Inside those libraries only: their own memory is their own affair.
const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:second_deadlock_stack=1";
}
}

namespace {

#define GW_TEXT_OF(x) #x
#define GW_TEXT(x) GW_TEXT_OF(x)

// The library's own function, by the end of its mangled name.
template <class Function>
Function* library(const char* name) {
  const std::string space = GW_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string mangled = "_ZN4absl" + std::to_string(space.size()) + space + name;
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, mangled.c_str()));
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* lock = library<void(Mutex*)>("5Mutex4LockEv");
  lock(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static auto* try_lock = library<bool(Mutex*)>("5Mutex7TryLockEv");
  const bool locked = try_lock(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Unlock() {
  static auto* unlock = library<void(Mutex*)>("5Mutex6UnlockEv");
  __tsan_release(this);
  unlock(this);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* wait = library<void(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  wait(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* wait =
      library<bool(CondVar*, Mutex*, Time)>("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool timed_out = wait(this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

ABSL_NAMESPACE_END
}  // namespace absl
