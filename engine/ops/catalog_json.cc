#include "engine/ops/catalog_json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "engine/ops/catalog.h"

namespace gradwire {
namespace {

std::string_view kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::kPointwise:
      return "pointwise";
    case OpKind::kView:
      return "view";
    case OpKind::kComposite:
      return "composite";
    case OpKind::kKernel:
      return "kernel";
    case OpKind::kCommand:
      return "command";
  }
  return "";
}

nlohmann::ordered_json row_json(const OpDef& op) {
  nlohmann::ordered_json j;
  j["number"] = op.number;
  j["name"] = op.name;
  j["doc"] = op.doc;
  j["signature"] = op.signature.text;
  j["params"] = nlohmann::ordered_json::array();
  for (const Param& p : op.signature.params) {
    j["params"].push_back({{"name", p.name},
                           {"type", p.type_text},
                           {"optional", p.optional},
                           {"has_default", p.has_default},
                           {"default_text", p.default_text},
                           {"keyword_only", p.keyword_only}});
  }
  j["returns"] = op.signature.returns;
  j["shape_rule"] = op.shape_rule;
  j["type_rule"] = op.type_rule;
  j["differentiable"] =
      op.backward != nullptr || op.kind == OpKind::kComposite || op.kind == OpKind::kPointwise;
  j["in_place"] = op.in_place;
  j["out"] = op.out;
  j["method"] = op.method;
  j["kind"] = kind_name(op.kind);
  if (op.module) {
    j["module"] = {{"name", op.module->name},
                   {"parameters", op.module->parameters},
                   {"buffers", op.module->buffers},
                   {"forward", op.module->forward}};
  }
  j["outputs"] = op.signature.outputs;
  return j;
}

}  // namespace

std::string catalog_json() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OpDef* op : Catalog::get().rows()) {
    if (!op->internal) rows.push_back(row_json(*op));
  }
  return rows.dump(1) + "\n";
}

std::string catalog_hash() {
  // FNV-1a: it tells versions apart and guards nothing.
  uint64_t hash = 14695981039346656037ull;
  for (unsigned char c : catalog_json()) hash = (hash ^ c) * 1099511628211ull;
  return absl::StrFormat("%016x", hash);
}

}  // namespace gradwire
