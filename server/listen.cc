#include "server/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/error.h"

namespace gradwire::server {
namespace {

constexpr std::string_view kUnix = "unix:";

bool is_loopback(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

std::string Address::target() const {
  return unix_socket ? absl::StrCat("unix:", path) : absl::StrCat(host, ":", port);
}

std::string Address::text(int bound_port) const {
  return unix_socket ? absl::StrCat("unix:", path) : absl::StrCat(host, ":", bound_port);
}

absl::StatusOr<Address> parse_address(const std::string& text) {
  Address address;
  if (text.compare(0, kUnix.size(), kUnix) == 0) {
    address.unix_socket = true;
    address.path = text.substr(kUnix.size());
    if (address.path.empty() || address.path.size() >= sizeof(sockaddr_un::sun_path)) {
      return value_error("listen: '", text, "' needs a path of 1 to ",
                         sizeof(sockaddr_un::sun_path) - 1, " bytes");
    }
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return value_error("listen: '", text, "' is neither HOST:PORT nor unix:PATH");
  }
  std::string host = text.substr(0, colon);
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc() || rest != end || address.port < 0 || address.port > 65535) {
    return value_error("listen: '", text, "' has no port between 0 and 65535");
  }
  if (host == "localhost") host = "127.0.0.1";
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (!is_loopback(host)) {
    return value_error("listen: '", text,
                       "' can be reached from outside, which needs TLS; this version listens on "
                       "loopback (127.0.0.1, ::1) and unix sockets only");
  }
  address.host = host.find(':') == std::string::npos ? host : absl::StrCat("[", host, "]");
  return address;
}

SocketLock::~SocketLock() {
  if (lock_ < 0) return;
  unlink(path_.c_str());
  // The lock's file stays: removing it would let two daemons lock two files of one name.
  close(lock_);
}

SocketLock::SocketLock(SocketLock&& other) noexcept {
  *this = std::move(other);
}

SocketLock& SocketLock::operator=(SocketLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  std::swap(private_folder_, other.private_folder_);
  return *this;
}

absl::StatusOr<SocketLock> SocketLock::take(const std::string& path) {
  SocketLock lock;
  lock.path_ = path;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat info;
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return value_error("listen: there is no folder ", folder);
  }
  lock.private_folder_ = info.st_uid == geteuid() && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  const std::string name = absl::StrCat(path, ".lock");
  lock.lock_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock.lock_ < 0) {
    return value_error("listen: ", name, " cannot be made: ", std::strerror(errno));
  }
  if (flock(lock.lock_, LOCK_EX | LOCK_NB) != 0) {
    close(std::exchange(lock.lock_, -1));
    return value_error("listen: another daemon listens on ", path);
  }
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      close(std::exchange(lock.lock_, -1));
      return value_error("listen: ", path, " exists and is not a socket");
    }
    unlink(path.c_str());
  }
  return lock;
}

absl::Status SocketLock::restrict_socket() const {
  if (chmod(path_.c_str(), 0600) == 0) return absl::OkStatus();
  return value_error("listen: the mode of ", path_, " cannot be set: ", std::strerror(errno));
}

}  // namespace gradwire::server
