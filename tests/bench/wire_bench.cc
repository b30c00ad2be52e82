// What the wire costs: decoding, a command from bytes to the engine's door, a round trip on a
// stream, bulk data. The engine is a fake, so that the figures are the wire's own.
#include <benchmark/benchmark.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "gradwire/v1/session.grpc.pb.h"
#include "server/crc32c.h"
#include "server/daemon.h"
#include "server/decode.h"
#include "server/tune_malloc.h"
#include "tests/server/loopback.h"

namespace gradwire::server {
namespace {

v1::Frame typical_frame(int commands) {
  v1::Frame frame;
  frame.set_first(1);
  std::string tape(1, 1);
  write_tape(Attribute(1), &tape);
  for (int i = 0; i < commands; ++i) {
    const auto id = static_cast<uint64_t>(i) + 1;
    add_command(&frame, kNothing, {id, id + 1}, {id + 2}, i % 2 ? tape : "", 1);
  }
  return frame;
}

void decode(benchmark::State& state) {
  const std::string bytes = typical_frame(static_cast<int>(state.range(0))).SerializeAsString();
  FrameDecoder decoder;
  SiteTable sites;
  for (auto _ : state) benchmark::DoNotOptimize(decoder.decode(bytes, sites, 1).ok());
  state.counters["ns_per_op"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)) / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(decode)->Arg(1)->Arg(64)->Arg(256);

// A daemon over a fake engine and a channel to it.
struct Rig {
  Rig() {
    folder = "/tmp/gradwire-bench-" + std::to_string(getpid());
    mkdir(folder.c_str(), 0700);
    Config config;
    config.listen = "unix:" + folder + "/socket";
    daemon = *Daemon::start(config, fake_ops(), fake_sessions(log));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    auto channel =
        grpc::CreateCustomChannel(daemon->address(), grpc::InsecureChannelCredentials(), arguments);
    stub = v1::Gradwire::NewStub(channel);
    data = v1::Data::NewStub(channel);
    grpc::ClientContext context;
    v1::OpenResponse response;
    stub->Open(&context, {}, &response);
    key = response.key();
  }
  ~Rig() {
    daemon.reset();
    unlink((folder + "/socket.lock").c_str());
    rmdir(folder.c_str());
  }

  FakeLog log;
  std::string folder;
  std::unique_ptr<Daemon> daemon;
  std::unique_ptr<v1::Gradwire::Stub> stub;
  std::unique_ptr<v1::Data::Stub> data;
  v1::SlotKey key;
};

void round_trip(benchmark::State& state) {
  Rig rig;
  grpc::ClientContext context;
  auto stream = rig.stub->Stream(&context);
  v1::StreamRequest request;
  *request.mutable_start() = rig.key;
  stream->Write(request);
  request.Clear();
  v1::Replies replies;
  uint64_t number = 0;
  for (auto _ : state) {
    request.mutable_frame()->Clear();
    request.mutable_frame()->set_first(++number);
    request.mutable_frame()->set_acknowledged(number - 1);
    add_command(request.mutable_frame(), kMeta);
    stream->Write(request);
    do {
      if (!stream->Read(&replies)) return state.SkipWithError("the stream ended");
    } while (replies.replies_size() == 0);
  }
  stream->WritesDone();
  while (stream->Read(&replies)) {
  }
  stream->Finish();
}
BENCHMARK(round_trip)->Unit(benchmark::kMicrosecond)->UseRealTime();

void stream_ops(benchmark::State& state) {
  Rig rig;
  grpc::ClientContext context;
  auto stream = rig.stub->Stream(&context);
  v1::StreamRequest request;
  *request.mutable_start() = rig.key;
  stream->Write(request);
  request.Clear();
  *request.mutable_frame() = typical_frame(static_cast<int>(state.range(0)));
  constexpr int kFrames = 256;
  uint64_t first = 1;
  v1::Replies replies;
  for (auto _ : state) {
    for (int i = 0; i < kFrames; ++i, first += request.frame().heads_size()) {
      request.mutable_frame()->set_first(first);
      stream->Write(request);
    }
    while (replies.applied() < first - 1) {
      if (!stream->Read(&replies)) return state.SkipWithError("the stream ended");
    }
    std::lock_guard lock(rig.log.mutex);
    rig.log.commands.clear();
  }
  state.SetItemsProcessed(state.iterations() * kFrames * state.range(0));
  stream->WritesDone();
  while (stream->Read(&replies)) {
  }
  stream->Finish();
}
BENCHMARK(stream_ops)->Arg(1)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond)->UseRealTime();

constexpr size_t kBulk = 64 << 20;
constexpr size_t kChunk = 1 << 20;

void upload(benchmark::State& state) {
  Rig rig;
  const std::string piece(kChunk, 'u');
  const uint32_t crc = crc32c(0, piece.data(), piece.size());
  uint64_t transfer = 0;
  for (auto _ : state) {
    grpc::ClientContext context;
    v1::UploadResponse response;
    auto writer = rig.data->Upload(&context, &response);
    v1::UploadChunk chunk;
    *chunk.mutable_key() = rig.key;
    chunk.set_transfer(++transfer);
    chunk.set_total(kBulk);
    chunk.set_data(piece);
    chunk.set_crc32c(crc);
    for (size_t at = 0; at < kBulk; at += kChunk) {
      chunk.set_offset(at);
      writer->Write(chunk);
    }
    writer->WritesDone();
    if (!writer->Finish().ok() || response.has_error()) {
      return state.SkipWithError("the upload failed");
    }
    rig.daemon->sessions().find(rig.key)->session->drop_upload(rig.key.slot(), transfer);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBulk));
}
BENCHMARK(upload)->Unit(benchmark::kMillisecond)->UseRealTime();

void download(benchmark::State& state) {
  Rig rig;
  auto data = std::make_shared<std::string>(kBulk, 'd');
  Transfers& transfers = rig.daemon->sessions().find(rig.key)->slot->outbox().transfers();
  for (auto _ : state) {
    grpc::ClientContext context;
    v1::DownloadRequest request;
    *request.mutable_key() = rig.key;
    request.set_transfer(transfers.add(data));
    auto reader = rig.data->Download(&context, request);
    v1::DownloadChunk chunk;
    while (reader->Read(&chunk)) benchmark::DoNotOptimize(chunk.data().data());
    if (!reader->Finish().ok()) return state.SkipWithError("the download failed");
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBulk));
}
BENCHMARK(download)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace gradwire::server

int main(int argc, char** argv) {
  gradwire::server::tune_malloc();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
