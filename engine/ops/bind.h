// From ids and a tape to a Call: arguments found, checked against the signature, defaults filled.
#pragma once

#include "engine/ops/op_def.h"
#include "engine/ops/slot.h"

namespace gradwire {

// Errors: an id that was released or never existed, a wrong number of ids, an attribute of the
// wrong type, a form the op does not have.
absl::Status bind(const Slot& slot, const OpDef& op, const Command& command, Call* call);

}  // namespace gradwire
