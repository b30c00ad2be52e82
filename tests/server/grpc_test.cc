#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "gradwire/v1/session.grpc.pb.h"
#include "server/crc32c.h"
#include "server/daemon.h"
#include "tests/server/loopback.h"

namespace gradwire::server {
namespace {

constexpr char kToken[] = "a-token-of-the-tests";

class GrpcTest : public testing::Test {
 protected:
  void SetUp() override {
    token_file_ = testing::TempDir() + "gradwire_token_" + std::to_string(getpid());
    std::ofstream(token_file_) << "# comment\n" << kToken << "\n";
    chmod(token_file_.c_str(), 0600);
    Config config;
    config.listen = "127.0.0.1:0";
    config.token_file = token_file_;
    auto daemon = Daemon::start(config, fake_ops(), fake_sessions(log_));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    auto channel = grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Gradwire::NewStub(channel);
    data_ = v1::Data::NewStub(channel);
  }
  void TearDown() override { unlink(token_file_.c_str()); }

  static void authorize(grpc::ClientContext* context, const std::string& token = kToken) {
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }
  v1::SlotKey open() {
    grpc::ClientContext context;
    authorize(&context);
    v1::OpenResponse response;
    EXPECT_TRUE(stub_->Open(&context, {}, &response).ok());
    return response.key();
  }
  v1::UploadResponse upload(const v1::SlotKey& key, const std::string& data, uint64_t transfer,
                            uint64_t total, bool good) {
    grpc::ClientContext context;
    authorize(&context);
    v1::UploadResponse response;
    auto writer = data_->Upload(&context, &response);
    v1::UploadChunk chunk;
    *chunk.mutable_key() = key;
    chunk.set_transfer(transfer);
    chunk.set_total(total);
    for (size_t at = 0; at < data.size(); at += 1 << 20) {
      chunk.set_offset(at);
      chunk.set_data(data.substr(at, 1 << 20));
      chunk.set_crc32c(crc32c(0, chunk.data().data(), chunk.data().size()) + (good ? 0 : 1));
      if (!writer->Write(chunk)) break;
      chunk.Clear();
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  FakeLog log_;
  std::string token_file_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<v1::Gradwire::Stub> stub_;
  std::unique_ptr<v1::Data::Stub> data_;
};

TEST_F(GrpcTest, EveryMethodButHelloNeedsAToken) {
  for (const std::string token : {"", "wrong-token-wrong-token"}) {
    auto denied = [&](auto call) {
      grpc::ClientContext context;
      authorize(&context, token);
      return call(&context).error_code() == grpc::StatusCode::UNAUTHENTICATED;
    };
    v1::OpenResponse opened;
    v1::CloseResponse closed;
    v1::Replies replies;
    v1::CancelResponse cancelled;
    v1::ListOpsResponse list;
    v1::UploadResponse uploaded;
    v1::DownloadChunk chunk;
    EXPECT_TRUE(denied([&](auto* c) { return stub_->Open(c, {}, &opened); }));
    EXPECT_TRUE(denied([&](auto* c) { return stub_->Attach(c, {}, &opened); }));
    EXPECT_TRUE(denied([&](auto* c) { return stub_->Close(c, {}, &closed); }));
    EXPECT_TRUE(denied([&](auto* c) { return stub_->Execute(c, {}, &replies); }));
    EXPECT_TRUE(denied([&](auto* c) { return stub_->Cancel(c, {}, &cancelled); }));
    EXPECT_TRUE(denied([&](auto* c) { return stub_->ListOps(c, {}, &list); }));
    EXPECT_TRUE(denied([&](auto* c) { return data_->UploadStatus(c, {}, &uploaded); }));
    EXPECT_TRUE(denied([&](auto* c) { return stub_->Stream(c)->Finish(); }));
    EXPECT_TRUE(denied([&](auto* c) { return data_->Upload(c, &uploaded)->Finish(); }));
    EXPECT_TRUE(denied([&](auto* c) { return data_->Download(c, {})->Finish(); }));
  }
  grpc::ClientContext context;
  v1::HelloRequest request;
  request.set_protocol_min(1);
  request.set_protocol_max(9);
  v1::HelloResponse response;
  ASSERT_TRUE(stub_->Hello(&context, request, &response).ok());
  EXPECT_EQ(response.protocol(), 1u);
}

TEST_F(GrpcTest, StreamAppliesAnswersAndEnds) {
  grpc::ClientContext context;
  authorize(&context);
  auto stream = stub_->Stream(&context);
  v1::StreamRequest request;
  *request.mutable_start() = open();
  request.mutable_frame()->set_first(1);
  add_command(request.mutable_frame(), kMeta);
  ASSERT_TRUE(stream->Write(request));
  v1::Replies replies;
  ASSERT_TRUE(stream->Read(&replies));
  EXPECT_EQ(replies.applied(), 1u);
  ASSERT_EQ(replies.replies_size(), 1);
  EXPECT_EQ(replies.replies(0).metas().metas(0).device(), "cpu");
  stream->WritesDone();
  while (stream->Read(&replies)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcTest, MalformedFrameIsInvalidArgumentAndTheSessionStays) {
  const v1::SlotKey key = open();
  for (int round = 0; round < 2; ++round) {
    grpc::ClientContext context;
    authorize(&context);
    auto stream = stub_->Stream(&context);
    v1::StreamRequest request;
    *request.mutable_start() = key;
    request.mutable_frame()->set_first(1);
    request.mutable_frame()->add_heads(uint64_t{5} << 24);
    stream->Write(request);
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    v1::Error error;
    EXPECT_TRUE(error.ParseFromString(status.error_details()));
    EXPECT_EQ(error.kind(), v1::VALUE_ERROR);
  }
}

TEST_F(GrpcTest, HundredMegabytesUp) {
  const v1::SlotKey key = open();
  const std::string data(100 << 20, 'u');
  const v1::UploadResponse response = upload(key, data, 1, data.size(), true);
  EXPECT_FALSE(response.has_error()) << response.error().message();
  EXPECT_EQ(response.received(), data.size());
  auto arrived = daemon_->sessions().find(key)->session->find_upload(key.slot(), 1);
  EXPECT_TRUE(arrived->data() == data);
}

TEST_F(GrpcTest, UploadFaultsFailOnlyTheirTransfer) {
  const v1::SlotKey key = open();
  EXPECT_TRUE(upload(key, "abcd", 1, 4, false).has_error());
  EXPECT_TRUE(upload(key, "abcd", 2, 2, true).has_error());
  EXPECT_TRUE(upload(key, "abcd", 3, 8, true).has_error());
  EXPECT_TRUE(upload(key, "abcd", 4, uint64_t{1} << 60, true).has_error());
  EXPECT_FALSE(upload(key, "abcd", 5, 4, true).has_error());
}

TEST_F(GrpcTest, HundredMegabytesDown) {
  const v1::SlotKey key = open();
  auto slot = daemon_->sessions().find(key)->slot;
  std::string data(100 << 20, 'd');
  for (size_t i = 0; i < data.size(); i += 4097) data[i] = static_cast<char>(i);
  const uint64_t id = slot->outbox().transfers().add(std::make_shared<std::string>(data));
  grpc::ClientContext context;
  authorize(&context);
  v1::DownloadRequest request;
  *request.mutable_key() = key;
  request.set_transfer(id);
  auto reader = data_->Download(&context, request);
  v1::DownloadChunk chunk;
  std::string got;
  while (reader->Read(&chunk)) {
    EXPECT_EQ(chunk.offset(), got.size());
    EXPECT_EQ(chunk.crc32c(), crc32c(0, chunk.data().data(), chunk.data().size()));
    got += chunk.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(got == data);
}

TEST(Crc32c, MatchesTheStandard) {
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
  const std::string zeros(50000, '\0');
  uint32_t bytewise = 0;
  for (char c : zeros) bytewise = crc32c(bytewise, &c, 1);
  EXPECT_EQ(crc32c(0, zeros.data(), zeros.size()), bytewise);
}

TEST(Config, IsStrict) {
  EXPECT_TRUE(parse_config("listen: 127.0.0.1:1\nmemory_limit: 8GiB\nfusion: false\n").ok());
  EXPECT_EQ(parse_config("memory_limit: 8GiB")->memory_limit, uint64_t{8} << 30);
  EXPECT_FALSE(parse_config("no_such_key: 1").ok());
  EXPECT_FALSE(parse_config("threads: many").ok());
  EXPECT_FALSE(parse_config("threads: 1\nthreads: 2").ok());
  EXPECT_FALSE(parse_config("lease_seconds: -1").ok());
  EXPECT_FALSE(parse_config("memory_limit: 8 parsecs").ok());
  EXPECT_FALSE(parse_config("[1, 2").ok());
  EXPECT_TRUE(parse_config("").ok());
}

TEST(Listen, OnlyLoopbackAndUnixSockets) {
  for (const char* good : {"127.0.0.1:0", "127.3.4.5:80", "localhost:1", "[::1]:9", "unix:/x"}) {
    EXPECT_TRUE(parse_address(good).ok()) << good;
  }
  for (const char* bad : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1", "127.0.0.1", ":1",
                          "127.0.0.1:x", "127.0.0.1:70000", "unix:", ""}) {
    EXPECT_FALSE(parse_address(bad).ok()) << bad;
  }
  Config config;
  FakeLog log;
  EXPECT_FALSE(Daemon::start(config, fake_ops(), fake_sessions(log)).ok()) << "no token file";
}

}  // namespace
}  // namespace gradwire::server
