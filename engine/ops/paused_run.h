// A backward that goes on when its slot's client has answered.
#pragma once

#include <functional>
#include <memory>

#include "engine/autograd/graph.h"
#include "engine/ops/dispatch.h"

namespace gradwire {

// A run with what is to be done at its end.
struct PausedRun {
  std::unique_ptr<BackwardRun> run;
  bool answers = false;  // commands of this run have replies
  // Answers command `number` with what the run gave.
  std::function<void(uint64_t number)> finish;
  // Answers command `number` with an error instead.
  std::function<void(uint64_t number, ErrorRef error)> fail;
};

// Goes on until the run has ended, the queue is full, a value must be read, or the client is asked
// (which ends the command `number` with a Callback; the run then waits in slot.paused).
Progress go_on(Slot& slot, std::shared_ptr<PausedRun> paused, uint64_t number);

}  // namespace gradwire
