// Dispatch: from a command to tasks. One Dispatcher per slot.
//
// apply() looks the op up in the catalog, binds and checks its arguments, infers outputs, records
// autograd and hands tasks to the executor; it never waits for a device and never blocks. Where a
// command needs a value (data-dependent shape) or the queue is full it returns kSuspended, keeps
// what it needs, and calls `wake` when resume() may be called.
//
// Errors never escape: a failed command poisons its outputs and, when it expects a reply, answers
// with the error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/ops/command.h"
#include "engine/ops/reply.h"
#include "engine/ops/session_state.h"

namespace gradwire {

enum class Progress : uint8_t { kDone, kSuspended };

class Slot;  // modes, generator, pending state of one slot (engine/ops/slot.h)

class Dispatcher {
 public:
  // `session` and `sink` outlive the Dispatcher. `wake` is called from any thread, at most once
  // per suspension; it must not call resume() itself but have the session's strand do it.
  Dispatcher(SessionState& session, uint32_t slot, ReplySink& sink, std::function<void()> wake);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Only on the session's strand (one thread at a time for all slots of a session), and only
  // when not suspended.
  Progress apply(const Command& command);
  // After wake(): goes on with the suspended command. Flushes.
  Progress resume();
  // Call after the last command at hand, suspended or not: the tasks of a run of commands reach the
  // executor together.
  void flush();

  // Drops what this slot has queued and not run; outputs fail as cancelled. On the strand; a
  // suspended command is dropped too. Returns the number of tasks dropped.
  uint64_t cancel();

  // Errors whose tensors nobody read, oldest first, at most 64; forgets them. On the strand.
  std::vector<ErrorRef> take_unread();

 private:
  std::unique_ptr<Slot> slot_;
};

}  // namespace gradwire
