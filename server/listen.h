// Where the daemon listens, and that nobody else does.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace gradwire::server {

// An address that is safe without TLS: loopback or a unix socket.
struct Address {
  bool unix_socket = false;
  std::string path;                        // unix socket
  std::string host;                        // "127.0.0.1", "[::1]"
  int port = 0;                            // 0: any
  std::string target() const;              // what gRPC takes
  std::string text(int bound_port) const;  // what a client takes
};

// HOST:PORT or unix:PATH. Errors: not an address; neither loopback nor a unix socket, which needs
// TLS; a path too long for a socket.
absl::StatusOr<Address> parse_address(const std::string& text);

// Held while a daemon listens on a unix socket: the folder is checked, a lock keeps others out, a
// socket left behind by a dead daemon is removed.
class SocketLock {
 public:
  SocketLock() = default;
  ~SocketLock();
  SocketLock(SocketLock&& other) noexcept;
  SocketLock& operator=(SocketLock&& other) noexcept;

  // Errors: another daemon listens there; the folder cannot be used.
  static absl::StatusOr<SocketLock> take(const std::string& path);
  // After the socket was made: mode 0600.
  absl::Status restrict_socket() const;
  // The folder belongs to this user and nobody else may enter it.
  bool private_folder() const { return private_folder_; }

 private:
  std::string path_;
  int lock_ = -1;
  bool private_folder_ = false;
};

}  // namespace gradwire::server
