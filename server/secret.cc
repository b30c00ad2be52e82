#include "server/secret.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "kernels/error.h"

namespace gradwire::server {

absl::StatusOr<std::string> random_bytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<uint8_t*>(bytes.data()), static_cast<int>(count)) != 1) {
    return internal_error("the system gave no random bytes");
  }
  return bytes;
}

Sha256 sha256(std::string_view data) {
  Sha256 hash;
  SHA256(reinterpret_cast<const uint8_t*>(data.data()), data.size(), hash.data());
  return hash;
}

bool same_secret(std::string_view a, std::string_view b) {
  return same_hash(sha256(a), sha256(b));
}

bool same_hash(const Sha256& a, const Sha256& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace gradwire::server
