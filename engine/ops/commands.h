// Commands: rows that act on the session instead of computing.
#pragma once

#include "engine/ops/op_def.h"
#include "engine/ops/slot.h"

namespace gradwire {

// Whether a client waits for an answer to this row.
bool expects_reply(const OpDef& op);
// Forgets a handle; an unknown id is no error (releases cannot fail).
void release_handle(Slot& slot, uint64_t id);
// What a client may know of the tensor. Marks a poison as told.
TensorMeta meta_of(const Tensor& tensor);

}  // namespace gradwire
