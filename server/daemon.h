// The daemon as an object: sessions, services, listening socket. main.cc and the tests start one.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth.h"
#include "server/config.h"
#include "server/listen.h"
#include "server/op_list.h"
#include "server/session_engine.h"
#include "server/sessions.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace gradwire::server {

class Daemon {
 public:
  // Listens when it returns. What the factory needs outlives the daemon. Errors: the address is
  // taken or not allowed, no token file where one is needed.
  static absl::StatusOr<std::unique_ptr<Daemon>> start(const Config& config, OpList ops,
                                                       SessionEngineFactory factory);
  // Ends calls and sessions at once; waits for the tasks that run now.
  ~Daemon();

  // What clients connect to: "127.0.0.1:7443", "unix:/run/gradwire/socket".
  const std::string& address() const { return address_; }
  Sessions& sessions() { return *sessions_; }

  // Refuses new sessions, tells the clients, and waits until all have gone, `seconds` at most.
  void drain(double seconds);

 private:
  Daemon() = default;

  std::string address_;
  SocketLock lock_;
  Auth auth_;
  OpList ops_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<grpc::Service> gradwire_;
  std::unique_ptr<grpc::Service> data_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace gradwire::server
