#include "server/status.h"

#include <string>

#include "server/encode.h"

namespace gradwire::server {

grpc::Status grpc_status(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The codes of Abseil and gRPC are the same numbers.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      error_message(status).SerializeAsString());
}

}  // namespace gradwire::server
