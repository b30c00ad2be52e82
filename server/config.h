// The daemon's configuration: a YAML file with these keys and no others.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gradwire::server {

struct Config {
  std::string listen = "127.0.0.1:7443";  // HOST:PORT (port 0: any) or unix:PATH
  std::string token_file;
  int threads = 0;  // CPU threads of the device; 0: all cores
  // Bytes for all sessions; 0: nine tenths of the memory that is free at start.
  uint64_t memory_limit = 0;
  uint64_t session_memory_limit = 0;  // bytes for one session; 0: no limit
  double lease_seconds = 600;         // a session without a connection lives this long
  double drain_seconds = 10;          // what SIGTERM leaves to running work
  std::string log_level = "info";     // trace, debug, info, warning, error, critical, off
  std::string backend = "cpu";        // or the path of a plug-in
  std::string backend_options;
  bool fusion = true;
};

// Errors name the key and the line: unknown key, wrong type, out of range, not YAML.
absl::StatusOr<Config> parse_config(const std::string& yaml);
absl::StatusOr<Config> load_config(const std::string& path);
// Checks values that also come from the command line.
absl::Status check_config(const Config& config);
// "8GiB", "512 MiB" or plain bytes. Error: not a size.
absl::StatusOr<uint64_t> parse_bytes(const std::string& text);

}  // namespace gradwire::server
