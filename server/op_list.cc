#include "server/op_list.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "kernels/error.h"

namespace gradwire::server {

absl::StatusOr<OpList> OpList::parse(const std::string& json, std::string hash,
                                     const std::function<bool(uint32_t number)>& replies) {
  nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (parsed.is_object() && parsed.contains("ops")) parsed = parsed["ops"];
  if (!parsed.is_array()) return internal_error("the catalog is not a list of ops");
  OpList list;
  list.hash_ = std::move(hash);
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  for (const nlohmann::json& row : parsed) {
    v1::Op op;
    if (!google::protobuf::util::JsonStringToMessage(row.dump(), &op, options).ok()) {
      return internal_error("a row of the catalog is not an Op");
    }
    if (replies(op.number())) list.replying_.insert(op.number());
    list.by_name_.emplace(op.name(), list.rows_.size());
    list.rows_.push_back(std::move(op));
  }
  return list;
}

const v1::Op* OpList::find(std::string_view name) const {
  auto found = by_name_.find(absl::string_view(name.data(), name.size()));
  return found == by_name_.end() ? nullptr : &rows_[found->second];
}

}  // namespace gradwire::server
