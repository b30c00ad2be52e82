#include "server/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace gradwire::server {

std::optional<Options> parse_options(int argc, char** argv, int* exit_code) {
  CLI::App app("Gradwire's training server: devices, tensors and autograd for remote clients.",
               "gradwired");
  Options options;
  std::string config_file, listen, token_file, backend;
  int threads = -1;
  app.add_option("--listen", listen, "HOST:PORT (loopback; port 0: any) or unix:PATH");
  app.add_option("--config", config_file, "YAML configuration");
  app.add_option("--token-file", token_file, "accepted bearer tokens, one a line");
  app.add_option("--threads", threads, "CPU threads; 0: all cores")->check(CLI::Range(0, 1024));
  app.add_option("--backend", backend, "\"cpu\" or the path of a plug-in");
  app.add_flag("--dump-ops", options.dump_ops, "print the op catalog as JSON and exit");
  app.add_flag("--version", options.version, "print the version and exit");
  app.add_flag("--exit-on-stdin-close", options.exit_on_stdin_close,
               "stop when standard input ends: the parent is gone");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error);
    return std::nullopt;
  }
  if (!config_file.empty()) {
    absl::StatusOr<Config> config = load_config(config_file);
    if (!config.ok()) {
      std::fprintf(stderr, "gradwired: %s\n", std::string(config.status().message()).c_str());
      *exit_code = 2;
      return std::nullopt;
    }
    options.config = *std::move(config);
  }
  if (!listen.empty()) options.config.listen = listen;
  if (!token_file.empty()) options.config.token_file = token_file;
  if (!backend.empty()) options.config.backend = backend;
  if (threads >= 0) options.config.threads = threads;
  return options;
}

}  // namespace gradwire::server
