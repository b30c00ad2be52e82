// Errors of engine and session core as gRPC statuses; nowhere else.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace gradwire::server {

// The details of the result are a serialized gradwire.v1.Error.
grpc::Status grpc_status(const absl::Status& status);

}  // namespace gradwire::server
