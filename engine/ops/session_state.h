// What the engine keeps for one session: its handles, its memory account, its place in the
// executor. The server's Session (names, slots, streams) owns one of these.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "engine/autograd/node.h"
#include "engine/core/tensor.h"
#include "engine/exec/account.h"
#include "engine/exec/queue.h"
#include "engine/io/upload.h"
#include "engine/optim/optimizer.h"

namespace gradwire {

class Worker;

// Used by one thread at a time (the session's strand), except the members that say otherwise.
class SessionState {
 public:
  // `memory_limit` in bytes.
  SessionState(Worker& worker, uint64_t memory_limit);
  ~SessionState();
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  Worker& worker;
  std::shared_ptr<Account> account;  // any thread
  std::shared_ptr<TaskQueue> queue;  // any thread
  Uploads uploads;                   // any thread

  AutogradMetas autograd;  // ends after the handles

  // Handles. A released or unknown id finds nothing.
  absl::flat_hash_map<uint64_t, Tensor> tensors;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Optimizer>> optimizers;
  absl::flat_hash_map<uint64_t, Ref<Node>> nodes;

  // Commands applied by each slot, and slots that wait for another to reach a number.
  absl::flat_hash_map<uint32_t, uint64_t> applied;
  struct Waiter {
    uint32_t owner;  // the slot that waits
    uint32_t slot;
    uint64_t number;
    std::function<void()> wake;
  };
  std::vector<Waiter> waiters;
  void set_applied(uint32_t slot, uint64_t number);
};

}  // namespace gradwire
