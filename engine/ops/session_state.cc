#include "engine/ops/session_state.h"

#include "engine/ops/worker.h"

namespace gradwire {

SessionState::SessionState(Worker& worker, uint64_t memory_limit)
    : worker(worker),
      account(std::make_shared<Account>(memory_limit)),
      queue(std::make_shared<TaskQueue>()) {
  worker.executor().add(queue);
}

SessionState::~SessionState() {
  uploads.fail_all(make_error(ErrorKind::kCancelled, "the session ended"));
  worker.executor().remove(queue);
}

void SessionState::set_applied(uint32_t slot, uint64_t number) {
  applied[slot] = number;
  if (waiters.empty()) return;
  std::vector<Waiter> ready;
  std::erase_if(waiters, [&](Waiter& w) {
    if (w.slot != slot || w.number > number) return false;
    ready.push_back(std::move(w));
    return true;
  });
  for (Waiter& w : ready) w.wake();
}

}  // namespace gradwire
