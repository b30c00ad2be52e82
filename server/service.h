// The gRPC services. Reactions never block: they hand work to the session core and return.
#pragma once

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "server/auth.h"
#include "server/op_list.h"
#include "server/sessions.h"

namespace gradwire::server {

// What the services need; outlives them.
struct ServiceContext {
  Sessions& sessions;
  const Auth& auth;
  const OpList& ops;
};

std::unique_ptr<grpc::Service> make_gradwire_service(ServiceContext context);
std::unique_ptr<grpc::Service> make_data_service(ServiceContext context);

// Whether the call may go on.
absl::Status authorize(const ServiceContext& context, const grpc::CallbackServerContext& call,
                       std::string_view method);

// The reactor of one Stream call; it deletes itself.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* make_stream(
    const ServiceContext& context, grpc::CallbackServerContext* call);

// A message's bytes in one block, copied only when gRPC holds them in several.
Message message_of(const grpc::ByteBuffer& buffer);
// A message to send; large ones are not copied.
grpc::ByteBuffer buffer_of(std::string bytes);

}  // namespace gradwire::server
