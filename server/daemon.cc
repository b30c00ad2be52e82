#include "server/daemon.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "kernels/error.h"
#include "server/limits.h"
#include "server/service.h"

namespace gradwire::server {
namespace {

constexpr int kChunkSlack = 64 << 10;  // of an UploadChunk around its data
constexpr auto kDrainPoll = std::chrono::milliseconds(20);

absl::StatusOr<Auth> make_auth(const Config& config, const Address& address,
                               const SocketLock& lock) {
  if (!config.token_file.empty()) return Auth::from_file(config.token_file);
  if (address.unix_socket && lock.private_folder()) return Auth();
  if (address.unix_socket) {
    return value_error(
        "token_file is needed: others may enter the socket's folder (chmod 700 it, or make a token "
        "with `gradwire token new FILE`)");
  }
  return value_error("token_file is needed; make one with `gradwire token new FILE`");
}

void configure(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(kChunkBytesMax) + kChunkSlack);
  builder.SetMaxSendMessageSize(-1);
  // Two daemons must not share a port without knowing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  // Clients may ping every second, also while nothing is open.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 128);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::start(const Config& config, OpList ops,
                                                      SessionEngineFactory factory) {
  absl::StatusOr<Address> address = parse_address(config.listen);
  if (!address.ok()) return address.status();
  std::unique_ptr<Daemon> daemon(new Daemon());
  if (address->unix_socket) {
    absl::StatusOr<SocketLock> lock = SocketLock::take(address->path);
    if (!lock.ok()) return lock.status();
    daemon->lock_ = *std::move(lock);
  }
  absl::StatusOr<Auth> auth = make_auth(config, *address, daemon->lock_);
  if (!auth.ok()) return auth.status();
  daemon->auth_ = *std::move(auth);
  daemon->ops_ = std::move(ops);
  daemon->sessions_ = std::make_unique<Sessions>(
      std::move(factory), daemon->ops_, SessionsOptions{.lease_seconds = config.lease_seconds});
  const ServiceContext context{*daemon->sessions_, daemon->auth_, daemon->ops_};
  daemon->gradwire_ = make_gradwire_service(context);
  daemon->data_ = make_data_service(context);

  grpc::ServerBuilder builder;
  configure(builder);
  int port = 0;
  builder.AddListeningPort(address->target(), grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(daemon->gradwire_.get());
  builder.RegisterService(daemon->data_.get());
  const mode_t mask = umask(0177);
  daemon->server_ = builder.BuildAndStart();
  umask(mask);
  if (!daemon->server_ || (!address->unix_socket && port == 0)) {
    return value_error("cannot listen on ", config.listen, "; is another program there?");
  }
  if (address->unix_socket) GW_RETURN_IF_ERROR(daemon->lock_.restrict_socket());
  daemon->address_ = address->text(port);
  return daemon;
}

Daemon::~Daemon() {
  if (server_) {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  sessions_.reset();
}

void Daemon::drain(double seconds) {
  sessions_->drain("the server will stop");
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (sessions_->connected() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kDrainPoll);
  }
}

}  // namespace gradwire::server
