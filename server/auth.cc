#include "server/auth.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "kernels/error.h"

namespace gradwire::server {
namespace {

constexpr size_t kTokenBytesMin = 16;
constexpr size_t kTokenRandom = 32;

enum class Access : uint8_t { kDeny, kOpen, kToken };

// Every method of the two services. What is missing is denied.
constexpr struct {
  std::string_view method;
  Access access;
} kMethods[] = {
    {"Hello", Access::kOpen},     {"Open", Access::kToken},         {"Attach", Access::kToken},
    {"Close", Access::kToken},    {"Stream", Access::kToken},       {"Execute", Access::kToken},
    {"Cancel", Access::kToken},   {"ListOps", Access::kToken},      {"Upload", Access::kToken},
    {"Download", Access::kToken}, {"UploadStatus", Access::kToken},
};

Access access_of(std::string_view method) {
  for (const auto& row : kMethods) {
    if (row.method == method) return row.access;
  }
  return Access::kDeny;
}

std::string_view strip(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = line.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

absl::StatusOr<Auth> Auth::from_file(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrCat("token file ", path, " cannot be read: ", std::strerror(errno)));
  }
  if (info.st_mode & (S_IRWXG | S_IRWXO)) {
    return absl::PermissionDeniedError(
        absl::StrCat("token file ", path, " can be read by others; chmod 600 it"));
  }
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("token file ", path, " cannot be read"));
  Auth auth;
  auth.open_ = false;
  for (std::string line; std::getline(file, line);) {
    const std::string_view token = strip(line);
    if (token.empty() || token[0] == '#') continue;
    if (token.size() < kTokenBytesMin) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token file ", path, " has a token of less than ", kTokenBytesMin, " characters"));
    }
    auth.tokens_.push_back(sha256(token));
  }
  if (auth.tokens_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("token file ", path, " has no token"));
  }
  return auth;
}

absl::Status Auth::check(std::string_view method, std::string_view authorization) const {
  const Access access = access_of(method);
  if (access == Access::kOpen) return absl::OkStatus();
  if (access == Access::kDeny) return absl::PermissionDeniedError("the method is not allowed");
  if (open_) return absl::OkStatus();
  constexpr std::string_view kScheme = "Bearer ";
  const bool bearer = authorization.substr(0, kScheme.size()) == kScheme;
  const Sha256 given = sha256(bearer ? authorization.substr(kScheme.size()) : authorization);
  bool known = false;
  for (const Sha256& token : tokens_) known |= same_hash(token, given);
  if (bearer && known) return absl::OkStatus();
  return absl::UnauthenticatedError("a valid token is needed: \"authorization: Bearer TOKEN\"");
}

absl::StatusOr<std::string> new_token(const std::string& path) {
  absl::StatusOr<std::string> random = random_bytes(kTokenRandom);
  if (!random.ok()) return random.status();
  const std::string token = absl::WebSafeBase64Escape(*random);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("token file ", path, " cannot be made: ", std::strerror(errno)));
  }
  const std::string line = token + "\n";
  const bool written = write(file, line.data(), line.size()) == ssize_t(line.size());
  if (close(file) != 0 || !written) {
    unlink(path.c_str());
    return absl::ResourceExhaustedError(absl::StrCat("token file ", path, " cannot be written"));
  }
  return token;
}

}  // namespace gradwire::server
