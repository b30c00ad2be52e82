// Commands: rows that act on the session instead of computing.
#pragma once

#include "engine/ops/dispatch.h"
#include "engine/ops/op_def.h"
#include "engine/ops/slot.h"

namespace gradwire {

// Ends a command that answers, with an error.
Progress answer_error(Slot& slot, const Command& command, ErrorRef error);
// Ends a command without an answer: an event tells of the failure, and it poisons what the command
// should have made.
Progress refuse(Slot& slot, const Command& command, ErrorRef error);
Progress refuse(Slot& slot, const Command& command, const absl::Status& status);
// The first poison among the tensors, or null.
ErrorRef first_poison(const Tensors& tensors);

// Whether a client waits for an answer to this row.
bool expects_reply(const OpDef& op);
// Forgets a handle; an unknown id is no error (releases cannot fail).
void release_handle(Slot& slot, uint64_t id);
// What a client may know of the tensor. Marks a poison as told.
TensorMeta meta_of(const Tensor& tensor);

}  // namespace gradwire
