// gradwire: looks at a daemon, checks its configuration, makes tokens.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "gradwire/v1/session.grpc.pb.h"
#include "server/auth.h"
#include "server/config.h"
#include "server/limits.h"
#include "server/version.h"

namespace {

using namespace gradwire;
using namespace gradwire::server;

constexpr auto kTimeout = std::chrono::seconds(5);

int fail(std::string_view message) {
  std::fprintf(stderr, "gradwire: %.*s\n", static_cast<int>(message.size()), message.data());
  return 1;
}

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

struct Target {
  std::string address = environment("GRADWIRE_ADDRESS", "127.0.0.1:7443");
  std::string token_file = environment("GRADWIRE_TOKEN_FILE", "");

  std::unique_ptr<v1::Gradwire::Stub> stub() const {
    return v1::Gradwire::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }
  void prepare(grpc::ClientContext* context) const {
    context->set_deadline(std::chrono::system_clock::now() + kTimeout);
    std::string token = environment("GRADWIRE_TOKEN", "");
    if (std::ifstream file(token_file); token.empty() && file) std::getline(file, token);
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
  }
};

int status(const Target& target) {
  grpc::ClientContext context;
  target.prepare(&context);
  v1::HelloRequest request;
  request.set_protocol_min(kProtocolMin);
  request.set_protocol_max(kProtocolMax);
  request.set_client(std::string("gradwire ") + kVersion);
  v1::HelloResponse response;
  const grpc::Status status = target.stub()->Hello(&context, request, &response);
  if (!status.ok()) return fail(target.address + ": " + status.error_message());
  std::printf("%s at %s\nprotocol %u, catalog %s\nfeatures:", response.server().c_str(),
              target.address.c_str(), response.protocol(), response.catalog_hash().c_str());
  for (const std::string& feature : response.features()) std::printf(" %s", feature.c_str());
  std::printf("\n");
  if (response.has_error()) return fail(response.error().message());
  return 0;
}

int ops(const Target& target, const std::string& prefix) {
  grpc::ClientContext context;
  target.prepare(&context);
  v1::ListOpsRequest request;
  request.set_prefix(prefix);
  v1::ListOpsResponse response;
  const grpc::Status status = target.stub()->ListOps(&context, request, &response);
  if (!status.ok()) return fail(target.address + ": " + status.error_message());
  for (const v1::Op& op : response.ops()) {
    std::printf("%s\n    %s\n", op.signature().c_str(), op.doc().c_str());
  }
  return 0;
}

int config_check(const std::string& path) {
  const absl::StatusOr<Config> config = load_config(path);
  if (!config.ok()) {
    return fail({config.status().message().data(), config.status().message().size()});
  }
  std::printf("%s is good\n", path.c_str());
  return 0;
}

int token_new(const std::string& path) {
  const absl::StatusOr<std::string> token = new_token(path);
  if (!token.ok()) {
    return fail({token.status().message().data(), token.status().message().size()});
  }
  std::printf("%s\n", token->c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Looks at a Gradwire daemon, checks its configuration, makes tokens.", "gradwire");
  app.set_version_flag("--version", std::string("gradwire ") + kVersion);
  app.require_subcommand(1);
  Target target;
  std::string prefix, path;
  app.add_option("--address", target.address, "HOST:PORT or unix:PATH; else GRADWIRE_ADDRESS");
  app.add_option("--token-file", target.token_file,
                 "file with a token; else GRADWIRE_TOKEN, GRADWIRE_TOKEN_FILE");
  CLI::App* status_command = app.add_subcommand("status", "what the daemon is and can do");
  CLI::App* ops_command = app.add_subcommand("ops", "the ops it knows");
  ops_command->add_option("prefix", prefix, "only those whose name starts so");
  CLI::App* config_command = app.add_subcommand("config", "configuration files");
  config_command->require_subcommand(1);
  CLI::App* check_command =
      config_command->add_subcommand("check", "reads FILE as gradwired would");
  check_command->add_option("FILE", path)->required();
  CLI::App* token_command = app.add_subcommand("token", "bearer tokens");
  token_command->require_subcommand(1);
  CLI::App* new_command =
      token_command->add_subcommand("new", "writes a fresh token to FILE (mode 0600), prints it");
  new_command->add_option("FILE", path)->required();
  for (CLI::App* command : {status_command, ops_command}) command->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (*status_command) return status(target);
  if (*ops_command) return ops(target, prefix);
  if (*check_command) return config_check(path);
  if (*new_command) return token_new(path);
  return 1;
}
