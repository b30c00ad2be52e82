#include "engine/ops/call.h"
#include "engine/ops/commands.h"

namespace gradwire {

Progress answer_error(Slot& slot, const Command& command, ErrorRef error) {
  error->reported = true;
  slot.sink.reply(command.number, ErrorReply{std::move(error)});
  return Progress::kDone;
}

Progress refuse(Slot& slot, const Command& command, ErrorRef error) {
  for (uint64_t id : command.outputs) {
    if (id) slot.define(id, poisoned(error)).IgnoreError();
  }
  slot.sink.reply(0, RefusedEvent{std::move(error)});
  return Progress::kDone;
}

Progress refuse(Slot& slot, const Command& command, const absl::Status& status) {
  return refuse(slot, command, slot.fail(status));
}

ErrorRef first_poison(const Tensors& tensors) {
  for (const Tensor& t : tensors) {
    if (t && t->poison) return t->poison;
  }
  return nullptr;
}

}  // namespace gradwire
