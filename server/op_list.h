// The op catalog as the wire needs it: rows as messages, numbers by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "gradwire/v1/catalog.pb.h"

namespace gradwire::server {

// Immutable, any thread.
class OpList {
 public:
  // From catalog_json's text. Error: it is not rows of Op.
  static absl::StatusOr<OpList> parse(const std::string& json, std::string hash);

  // Null when there is no such op.
  const v1::Op* find(std::string_view name) const;
  const std::vector<v1::Op>& rows() const { return rows_; }
  const std::string& hash() const { return hash_; }

  // The command answers with a reply of its own.
  static bool replies(const v1::Op& op);

 private:
  std::vector<v1::Op> rows_;
  absl::flat_hash_map<std::string, size_t> by_name_;
  std::string hash_;
};

}  // namespace gradwire::server
