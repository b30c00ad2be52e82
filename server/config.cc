#include "server/config.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "kernels/error.h"

namespace gradwire::server {
namespace {

template <class T>
absl::Status read(const YAML::Node& node, const char* what, T* value) {
  if (node.IsScalar() && YAML::convert<T>::decode(node, *value)) return absl::OkStatus();
  return value_error("must be ", what);
}

absl::Status read_bytes(const YAML::Node& node, uint64_t* value) {
  if (!node.IsScalar()) return value_error("must be a size like 8GiB");
  absl::StatusOr<uint64_t> bytes = parse_bytes(node.Scalar());
  if (!bytes.ok()) return bytes.status();
  *value = *bytes;
  return absl::OkStatus();
}

using Reader = std::function<absl::Status(const YAML::Node&, Config*)>;

const std::map<std::string, Reader>& readers() {
  static const std::map<std::string, Reader> table = {
      {"listen", [](auto& n, auto* c) { return read(n, "text", &c->listen); }},
      {"token_file", [](auto& n, auto* c) { return read(n, "a path", &c->token_file); }},
      {"threads", [](auto& n, auto* c) { return read(n, "a whole number", &c->threads); }},
      {"memory_limit", [](auto& n, auto* c) { return read_bytes(n, &c->memory_limit); }},
      {"session_memory_limit",
       [](auto& n, auto* c) { return read_bytes(n, &c->session_memory_limit); }},
      {"lease_seconds", [](auto& n, auto* c) { return read(n, "a number", &c->lease_seconds); }},
      {"drain_seconds", [](auto& n, auto* c) { return read(n, "a number", &c->drain_seconds); }},
      {"log_level", [](auto& n, auto* c) { return read(n, "text", &c->log_level); }},
      {"backend", [](auto& n, auto* c) { return read(n, "text", &c->backend); }},
      {"backend_options", [](auto& n, auto* c) { return read(n, "text", &c->backend_options); }},
      {"fusion", [](auto& n, auto* c) { return read(n, "true or false", &c->fusion); }},
  };
  return table;
}

}  // namespace

absl::StatusOr<uint64_t> parse_bytes(const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  std::string unit(rest, end);
  unit.erase(0, unit.find_first_not_of(' '));
  static const std::map<std::string, int> kUnits = {{"", 0},     {"B", 0},    {"KiB", 10},
                                                    {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  const auto shift = kUnits.find(unit);
  if (error != std::errc() || shift == kUnits.end() ||
      number > (UINT64_MAX >> 1) >> shift->second) {
    return value_error("'", text, "' is not a size like 8GiB, 512MiB or a number of bytes");
  }
  return number << shift->second;
}

absl::Status check_config(const Config& config) {
  if (config.threads < 0 || config.threads > 1024) {
    return value_error("threads: ", config.threads, " is not between 0 and 1024");
  }
  if (!(config.lease_seconds > 0 && config.lease_seconds <= 1e9)) {
    return value_error("lease_seconds: ", config.lease_seconds, " is not above 0");
  }
  if (!(config.drain_seconds >= 0 && config.drain_seconds <= 86400)) {
    return value_error("drain_seconds: ", config.drain_seconds, " is not between 0 and 86400");
  }
  for (const char* level : {"trace", "debug", "info", "warning", "error", "critical", "off"}) {
    if (config.log_level == level) return absl::OkStatus();
  }
  return value_error("log_level: '", config.log_level,
                     "' is none of trace, debug, info, warning, error, critical, off");
}

absl::StatusOr<Config> parse_config(const std::string& yaml) {
  Config config;
  // yaml-cpp reports by exception; none leaves this function.
  try {
    const YAML::Node root = YAML::Load(yaml);
    if (root.IsNull()) return config;
    if (!root.IsMap()) return value_error("the configuration is not a list of `key: value`");
    std::map<std::string, int> seen;
    for (const auto& entry : root) {
      const int line = entry.first.Mark().line + 1;
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      const auto reader = readers().find(key);
      if (reader == readers().end()) {
        return value_error("line ", line, ": '", key, "' is not a key of the configuration");
      }
      if (seen[key]++) return value_error("line ", line, ": '", key, "' is set twice");
      if (absl::Status status = reader->second(entry.second, &config); !status.ok()) {
        return value_error("line ", line, ": ", key, ": ", status.message());
      }
    }
  } catch (const std::exception& error) {
    return value_error("the configuration is not YAML: ", error.what());
  }
  GW_RETURN_IF_ERROR(check_config(config));
  return config;
}

absl::StatusOr<Config> load_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) return value_error("configuration file ", path, " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  absl::StatusOr<Config> config = parse_config(text.str());
  if (!config.ok()) return value_error(path, ": ", config.status().message());
  return config;
}

}  // namespace gradwire::server
