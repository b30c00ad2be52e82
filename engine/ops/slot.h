// The state of one slot (one attached client): modes, generator, the command in hand.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "engine/ops/op_def.h"
#include "engine/ops/reply.h"
#include "engine/ops/session_state.h"
#include "engine/ops/worker.h"

namespace gradwire {

// A Philox generator: numbers are reserved at dispatch, so order of execution does not matter.
struct Generator {
  uint64_t seed = 67280421310721ull;  // torch's default seed
  uint64_t offset = 0;

  uint64_t reserve(uint64_t counters) {
    uint64_t at = offset;
    offset += counters;
    return at;
  }
};

// On its session's strand only.
class Slot {
 public:
  Slot(SessionState& session, uint32_t number, ReplySink& sink, std::function<void()> wake)
      : session(session), number(number), sink(sink), wake(std::move(wake)) {}

  SessionState& session;
  const uint32_t number;
  ReplySink& sink;
  const std::function<void()> wake;

  bool grad_enabled = true;
  bool inference = false;
  DType default_float = DType::kFloat32;
  Generator generator;

  // The command in hand: who is to blame in errors.
  uint64_t command = 0;
  const OpDef* op = nullptr;
  Ref<const Site> site;

  // What a suspended command goes on with.
  std::function<Progress()> continuation;

  // Roots of failures since the last take, for close.
  std::deque<ErrorRef> errors;
  // A new root cause in the name of the command in hand; kept among the unread.
  ErrorRef fail(const absl::Status& status);

  void set_site(const std::string* text);
  void push(std::unique_ptr<Task> task);
  // Lets the executor see what was pushed.
  void flush();
  // Registers a result under a client's id. Error: the id is taken or has another slot's bits.
  absl::Status define(uint64_t id, Tensor tensor);
  const Tensor* find(uint64_t id) const;

  // The slot whose command this thread is dispatching. Only valid inside a Use.
  static Slot& current();
  class Use {
   public:
    explicit Use(Slot& slot);
    ~Use();

   private:
    Slot* before_;
  };
};

// Turns gradient recording off (or on) for a scope.
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();

 private:
  bool before_;
};

}  // namespace gradwire
