// Lets ThreadSanitizer see the order that Abseil's locks and gRPC's completion queues make. The
// distribution builds both without it: what their threads hand to each other, our objects among
// it, looked like thousands of races. Linked into programs that use gRPC, in the tsan preset only.
// No report is suppressed.
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>
#include <grpc/grpc.h>

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

// What comes before the start of a batch comes before its completion, known by its tag.
extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static auto* start =
      reinterpret_cast<decltype(&grpc_call_start_batch)>(dlsym(RTLD_NEXT, "grpc_call_start_batch"));
  __tsan_release(tag);
  return start(call, ops, count, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* next = reinterpret_cast<decltype(&grpc_completion_queue_next)>(
      dlsym(RTLD_NEXT, "grpc_completion_queue_next"));
  grpc_event event = next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* pluck = reinterpret_cast<decltype(&grpc_completion_queue_pluck)>(
      dlsym(RTLD_NEXT, "grpc_completion_queue_pluck"));
  grpc_event event = pluck(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}
}

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
