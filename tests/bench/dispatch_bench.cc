// From a frame's bytes to tasks in the executor's queue, with the real engine.
#include <benchmark/benchmark.h>

#include "engine/ops/catalog.h"
#include "gradwire/v1/frame.pb.h"
#include "server/decode.h"
#include "tests/engine/session_client.h"

namespace gradwire::testing {
namespace {

constexpr uint64_t kSlotBits = uint64_t{1} << 48;

// `count` commands mul(x, x) and then their outputs' release, ids from `first` on.
std::string frame_bytes(int count, uint64_t number, uint64_t x, uint64_t first) {
  static const uint16_t mul = Catalog::get().find("mul")->number;
  static const uint16_t release = Catalog::get().find("session.release")->number;
  auto head = [](uint64_t op, uint64_t inputs, uint64_t outputs) {
    return op | inputs << 24 | outputs << 36;
  };
  v1::Frame frame;
  frame.set_first(number);
  for (int i = 0; i < count; ++i) {
    frame.add_heads(head(mul, 2, 1));
    frame.add_ids(x);
    frame.add_ids(x);
    frame.add_ids(first + i);
  }
  frame.add_heads(head(release, count, 0));
  for (int i = 0; i < count; ++i) frame.add_ids(first + i);
  return frame.SerializeAsString();
}

// state.range(0): ops a frame; state.range(1): 1 when the operand requires grad.
void bytes_to_task(benchmark::State& state) {
  auto worker = std::move(Worker::create({.threads = 1}).value());
  SessionClient client(*worker);
  Id x = client.floats({4}, {1, 2, 3, 4});
  if (state.range(1)) client.send("session.requires_grad_", {x}, {true}, 0);
  int count = static_cast<int>(state.range(0));
  server::FrameDecoder decoder;
  server::SiteTable sites;
  uint64_t number = client.number() + 1, id = kSlotBits | 1 << 20;
  for (auto _ : state) {
    state.PauseTiming();
    std::string bytes = frame_bytes(count, number, x, id);
    number += count + 1;
    id += count;
    while (client.state().queue->depth() > 4096) std::this_thread::yield();
    state.ResumeTiming();
    benchmark::DoNotOptimize(decoder.decode(bytes, sites, number).ok());
    for (const Command& command : decoder.commands()) {
      benchmark::DoNotOptimize(client.dispatcher().apply(command));
    }
    client.dispatcher().flush();
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(bytes_to_task)->Args({64, 0})->Args({256, 0})->Args({256, 1})->MinTime(0.3);

}  // namespace
}  // namespace gradwire::testing

BENCHMARK_MAIN();
