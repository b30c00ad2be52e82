#include <string>

#include "gradwire/v1/session.grpc.pb.h"
#include "server/limits.h"
#include "server/service.h"
#include "server/status.h"
#include "server/version.h"

namespace gradwire::server {
namespace {

using Base = v1::Gradwire::WithCallbackMethod_Hello<
    v1::Gradwire::WithCallbackMethod_Open<v1::Gradwire::WithCallbackMethod_Attach<
        v1::Gradwire::WithCallbackMethod_Close<v1::Gradwire::WithRawCallbackMethod_Stream<
            v1::Gradwire::WithCallbackMethod_Execute<v1::Gradwire::WithCallbackMethod_Cancel<
                v1::Gradwire::WithCallbackMethod_ListOps<v1::Gradwire::Service>>>>>>>>;

v1::HelloResponse hello(const v1::HelloRequest& request, const std::string& catalog_hash) {
  v1::HelloResponse response;
  response.set_server(std::string("gradwired ") + kVersion);
  response.set_catalog_hash(catalog_hash);
  for (const char* feature : {"execute", "upload", "download", "cancel"}) {
    response.add_features(feature);
  }
  v1::Limits* limits = response.mutable_limits();
  limits->set_frame_bytes(kFrameBytes);
  limits->set_frame_commands(kFrameCommands);
  limits->set_inline_bytes(kInlineBytes);
  limits->set_chunk_bytes(kChunkBytes);
  limits->set_rank(kMaxRank);
  const uint32_t protocol = std::min(request.protocol_max(), kProtocolMax);
  if (protocol >= std::max(request.protocol_min(), kProtocolMin)) {
    response.set_protocol(protocol);
  } else {
    response.mutable_error()->set_kind(v1::CONNECTION_ERROR);
    response.mutable_error()->set_message(
        absl::StrCat("the client speaks protocol ", request.protocol_min(), " to ",
                     request.protocol_max(), ", the server ", kProtocolMin, " to ", kProtocolMax));
  }
  return response;
}

class GradwireService final : public Base {
 public:
  explicit GradwireService(ServiceContext context) : context_(context) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* call,
                                  const v1::HelloRequest* request,
                                  v1::HelloResponse* response) override {
    return answer(call, "Hello", response,
                  [&](auto done) { done(hello(*request, context_.ops.hash())); });
  }
  grpc::ServerUnaryReactor* Open(grpc::CallbackServerContext* call, const v1::OpenRequest* request,
                                 v1::OpenResponse* response) override {
    return answer(call, "Open", response,
                  [&](auto done) { context_.sessions.open(*request, std::move(done)); });
  }
  grpc::ServerUnaryReactor* Attach(grpc::CallbackServerContext* call,
                                   const v1::AttachRequest* request,
                                   v1::OpenResponse* response) override {
    return answer(call, "Attach", response,
                  [&](auto done) { context_.sessions.attach(*request, std::move(done)); });
  }
  grpc::ServerUnaryReactor* Close(grpc::CallbackServerContext* call,
                                  const v1::CloseRequest* request,
                                  v1::CloseResponse* response) override {
    return answer(call, "Close", response,
                  [&](auto done) { context_.sessions.close(*request, std::move(done)); });
  }
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* call,
                                   const v1::CancelRequest* request,
                                   v1::CancelResponse* response) override {
    return answer(call, "Cancel", response,
                  [&](auto done) { context_.sessions.cancel(*request, std::move(done)); });
  }
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* call,
                                    const v1::ExecuteRequest* request,
                                    v1::Replies* response) override {
    return answer(call, "Execute", response, [&](Sessions::Done<v1::Replies> done) {
      context_.sessions.execute(*request, [done](absl::StatusOr<Executed> executed) {
        if (!executed.ok()) return done(executed.status());
        v1::Replies replies;
        if (!replies.ParseFromString(executed->replies)) {
          return done(absl::InternalError("replies cannot be read"));
        }
        replies.set_applied(executed->applied);
        replies.set_durable(executed->applied);
        done(std::move(replies));
      });
    });
  }
  grpc::ServerUnaryReactor* ListOps(grpc::CallbackServerContext* call,
                                    const v1::ListOpsRequest* request,
                                    v1::ListOpsResponse* response) override {
    return answer(call, "ListOps", response, [&](Sessions::Done<v1::ListOpsResponse> done) {
      v1::ListOpsResponse list;
      for (const v1::Op& op : context_.ops.rows()) {
        if (op.name().compare(0, request->prefix().size(), request->prefix()) == 0) {
          *list.add_ops() = op;
        }
      }
      list.set_catalog_hash(context_.ops.hash());
      done(std::move(list));
    });
  }
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Stream(
      grpc::CallbackServerContext* call) override {
    return make_stream(context_, call);
  }

 private:
  // Runs `work` with a callback that finishes the call, unless the caller may not.
  template <class Response, class Work>
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* call, std::string_view method,
                                   Response* response, Work work) {
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    if (absl::Status status = authorize(context_, *call, method); !status.ok()) {
      reactor->Finish(grpc_status(status));
      return reactor;
    }
    work([reactor, response](absl::StatusOr<Response> result) {
      if (result.ok()) *response = *std::move(result);
      reactor->Finish(grpc_status(result.status()));
    });
    return reactor;
  }

  const ServiceContext context_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_gradwire_service(ServiceContext context) {
  return std::make_unique<GradwireService>(context);
}

absl::Status authorize(const ServiceContext& context, const grpc::CallbackServerContext& call,
                       std::string_view method) {
  const auto found = call.client_metadata().find("authorization");
  std::string_view value;
  if (found != call.client_metadata().end()) value = {found->second.data(), found->second.size()};
  return context.auth.check(method, value);
}

}  // namespace gradwire::server
