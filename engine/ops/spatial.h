// Arguments of ops over windows of 1 to 3 spatial dimensions.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/ops/command.h"

namespace gradwire {

// One number for every spatial dimension, or one each. `what` names the argument in errors.
absl::StatusOr<IntList> spread(const Attribute& a, int spatial, std::string_view what);

}  // namespace gradwire
