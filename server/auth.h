// Who may call. Bearer tokens, kept as hashes; a method that is not named here is denied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/secret.h"

namespace gradwire::server {

// Immutable, any thread.
class Auth {
 public:
  // Lets everyone in: only for a unix socket that file permissions guard.
  Auth() = default;
  // One token a line; empty lines and lines that start with # are skipped. Errors: unreadable, no
  // token in it, readable by others, a token shorter than 16 bytes.
  static absl::StatusOr<Auth> from_file(const std::string& path);

  // `authorization` is the metadata's value, empty when there is none. Errors: no token, unknown
  // token; neither says more, nor does the time it takes.
  absl::Status check(std::string_view method, std::string_view authorization) const;
  bool open() const { return open_; }

 private:
  bool open_ = true;
  std::vector<Sha256> tokens_;
};

// Writes a fresh token to a new file that only its owner can read. Error: it cannot be made.
absl::StatusOr<std::string> new_token(const std::string& path);

}  // namespace gradwire::server
