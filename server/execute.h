// Readable commands (Execute) written as a frame, so that one decoder reads both.
#pragma once

#include "absl/status/statusor.h"
#include "gradwire/v1/session.pb.h"
#include "server/op_list.h"
#include "server/slot.h"

namespace gradwire::server {

// Errors: unknown op, a form or count that a head cannot hold, numbers that do not follow each
// other, lists nested too deep.
absl::StatusOr<Parcel> execute_parcel(const OpList& catalog, const v1::ExecuteRequest& request);

}  // namespace gradwire::server
