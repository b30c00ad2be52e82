// Random secrets and comparisons that take the same time whatever they compare.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gradwire::server {

using Sha256 = std::array<uint8_t, 32>;

// Error: the system has no randomness to give.
absl::StatusOr<std::string> random_bytes(size_t count);
Sha256 sha256(std::string_view data);
// Compares hashes, so that neither content nor length of a secret shows in the time.
bool same_secret(std::string_view a, std::string_view b);
bool same_hash(const Sha256& a, const Sha256& b);

}  // namespace gradwire::server
