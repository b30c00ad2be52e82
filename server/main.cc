// gradwired: starts the engine and the services, and stops them in good order.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "engine/ops/catalog_json.h"
#include "engine/ops/worker.h"
#include "server/daemon.h"
#include "server/engine_session.h"
#include "server/options.h"
#include "server/tune_malloc.h"
#include "server/version.h"

namespace {

using namespace gradwire;
using namespace gradwire::server;

std::atomic<bool> orphaned{false};

int fail(const absl::Status& status) {
  std::fprintf(stderr, "gradwired: %s\n", std::string(status.message()).c_str());
  return 1;
}

// The signals that stop the daemon, blocked in every thread: they are waited for.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

void stop_when_stdin_ends() {
  std::thread([] {
    char bytes[256];
    for (;;) {
      const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
      if (got == 0 || (got < 0 && errno != EINTR)) break;
    }
    orphaned = true;
    kill(getpid(), SIGTERM);
  }).detach();
}

// A kernel that does not come back must not keep the process.
void exit_within(double seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    spdlog::error("work did not end in time, exiting");
    _exit(1);
  }).detach();
}

int serve(const Options& options) {
  constexpr double kEndSeconds = 10;
  const Config& config = options.config;
  const sigset_t signals = block_signals();
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::create({.backend = config.backend,
                      .backend_options = config.backend_options,
                      .threads = config.threads,
                      .memory_limit = config.memory_limit,
                      .fusion = config.fusion});
  if (!worker.ok()) return fail(worker.status());
  absl::StatusOr<OpList> ops = OpList::parse(catalog_json(), catalog_hash(), op_replies);
  if (!ops.ok()) return fail(ops.status());
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::start(
      config, *std::move(ops), engine_sessions(**worker, config.session_memory_limit));
  if (!daemon.ok()) return fail(daemon.status());
  if (options.exit_on_stdin_close) stop_when_stdin_ends();
  std::printf("listening on %s\n", (*daemon)->address().c_str());
  std::fflush(stdout);
  spdlog::info("gradwired {} serves {} on {}", kVersion, (*worker)->device(), (*daemon)->address());

  int signal = 0;
  sigwait(&signals, &signal);
  const double drain = orphaned ? 0 : config.drain_seconds;
  exit_within(drain + kEndSeconds);
  spdlog::info("stopping");
  (*daemon)->drain(drain);
  daemon->reset();
  worker->reset();
  spdlog::info("stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  tune_malloc();
  int exit_code = 0;
  std::optional<Options> options = parse_options(argc, argv, &exit_code);
  if (!options) return exit_code;
  if (options->version) {
    std::printf("gradwired %s\n", kVersion);
    return 0;
  }
  if (options->dump_ops) {
    std::fputs(catalog_json().c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  if (absl::Status status = check_config(options->config); !status.ok()) return fail(status);
  spdlog::set_default_logger(spdlog::stderr_color_mt("gradwired"));
  spdlog::set_level(spdlog::level::from_str(options->config.log_level));
  return serve(*options);
}
