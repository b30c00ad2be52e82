// The op catalog as the wire needs it: rows as messages, numbers by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "gradwire/v1/catalog.pb.h"

namespace gradwire::server {

// Immutable, any thread.
class OpList {
 public:
  // From catalog_json's text; `replies` says which ops answer with a reply of their own. Error: it
  // is not rows of Op.
  static absl::StatusOr<OpList> parse(const std::string& json, std::string hash,
                                      const std::function<bool(uint32_t number)>& replies);

  // Null when there is no such op.
  const v1::Op* find(std::string_view name) const;
  const std::vector<v1::Op>& rows() const { return rows_; }
  const std::string& hash() const { return hash_; }

  // The command answers with a reply of its own.
  bool replies(const v1::Op& op) const { return replying_.contains(op.number()); }

 private:
  std::vector<v1::Op> rows_;
  absl::flat_hash_map<std::string, size_t> by_name_;
  absl::flat_hash_set<uint32_t> replying_;
  std::string hash_;
};

}  // namespace gradwire::server
