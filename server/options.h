// The daemon's command line.
#pragma once

#include <optional>

#include "server/config.h"

namespace gradwire::server {

struct Options {
  Config config;  // the file's values, overridden by the command line
  bool dump_ops = false;
  bool version = false;
  bool exit_on_stdin_close = false;
};

// Null after --help or an error, which has been printed; then *exit_code is set.
std::optional<Options> parse_options(int argc, char** argv, int* exit_code);

}  // namespace gradwire::server
