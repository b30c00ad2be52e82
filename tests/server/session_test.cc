#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "server/limits.h"
#include "tests/server/loopback.h"

namespace gradwire::server {
namespace {

class SessionTest : public testing::Test {
 protected:
  SessionTest() : ops_(fake_ops()) { make({}); }

  void make(SessionsOptions options) {
    sessions_.reset();
    sessions_ = std::make_unique<Sessions>(fake_sessions(log_), ops_, options);
  }
  std::shared_ptr<Loopback> connect(const v1::SlotKey& key) {
    auto client = std::make_shared<Loopback>();
    absl::StatusOr<SlotRef> ref = sessions_->find(key);
    EXPECT_TRUE(ref.ok()) << ref.status();
    if (ref.ok()) {
      EXPECT_TRUE(client->connect(*ref, key.epoch()).ok());
    }
    return client;
  }
  v1::Frame frame(uint64_t first, std::vector<uint16_t> ops) {
    v1::Frame frame;
    frame.set_first(first);
    for (uint16_t op : ops) add_command(&frame, op);
    return frame;
  }
  v1::CloseResponse close(const v1::SlotKey& key, bool end) {
    v1::CloseRequest request;
    *request.mutable_key() = key;
    request.set_end_session(end);
    std::promise<v1::CloseResponse> closed;
    sessions_->close(request, [&](auto response) { closed.set_value(*response); });
    return closed.get_future().get();
  }

  FakeLog log_;
  OpList ops_;
  std::unique_ptr<Sessions> sessions_;
};

TEST_F(SessionTest, AppliesAndAcknowledges) {
  auto client = connect(open_session(*sessions_).key());
  client->send(frame(1, {kNothing, kMeta, kNothing}));
  EXPECT_TRUE(client->wait_applied(3));
  ASSERT_TRUE(client->wait_replies(1));
  EXPECT_EQ(client->replies[0].number(), 2u);
  EXPECT_EQ(client->replies[0].metas().metas(0).shape_size(), 2);
  EXPECT_EQ(client->first_reply, 1u);
}

TEST_F(SessionTest, SkipsDuplicatesAndRefusesGaps) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  client->send(frame(1, {kNothing, kNothing}));
  client->send(frame(1, {kNothing, kNothing, kNothing}));
  EXPECT_TRUE(client->wait_applied(3));
  EXPECT_EQ(log_.count(), 3u);
  client->send(frame(5, {kNothing}));
  const auto status = client->wait_finished();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code(), absl::StatusCode::kInvalidArgument);
  client->drop();
  // The session goes on.
  client = connect(opened.key());
  client->send(frame(4, {kNothing}));
  EXPECT_TRUE(client->wait_applied(4));
}

TEST_F(SessionTest, MalformedFrameEndsTheStreamOnly) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  client->send(frame(1, {kNothing}));
  client->send_bytes("\xff\xff");
  ASSERT_TRUE(client->wait_finished());
  EXPECT_EQ(client->finished->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client->applied, 1u);
  client->drop();
  client = connect(opened.key());
  client->send(frame(2, {kMeta}));
  EXPECT_TRUE(client->wait_replies(1));
}

TEST_F(SessionTest, UnacknowledgedRepliesAreRepeated) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  client->send(frame(1, {kMeta, kMeta, kMeta}));
  ASSERT_TRUE(client->wait_replies(3));
  v1::Frame acknowledgement;
  acknowledgement.set_acknowledged(2);
  client->send(acknowledgement);
  client->drop();
  client = connect(opened.key());
  ASSERT_TRUE(client->wait_replies(1));
  EXPECT_EQ(client->first_reply, 3u);
  EXPECT_EQ(client->replies[0].number(), 3u);
  EXPECT_EQ(client->applied, 3u);
}

TEST_F(SessionTest, SuspendedCommandHoldsItsSlotOnly) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  auto other = connect(open_session(*sessions_).key());
  client->send(frame(1, {kNothing, kSuspend, kMeta}));
  EXPECT_TRUE(client->wait_applied(1));
  other->send(frame(1, {kMeta}));
  EXPECT_TRUE(other->wait_replies(1));
  EXPECT_EQ(client->applied, 1u);
  EXPECT_TRUE(log_.wake_one());
  EXPECT_TRUE(client->wait_applied(3));
  EXPECT_TRUE(client->wait_replies(1));
}

TEST_F(SessionTest, CancelReachesWhatWasReceived) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  client->send(frame(1, {kSuspend, kNothing}));
  client->send(frame(3, {kNothing}));
  ASSERT_TRUE(client->wait([&] { return log_.count() == 1; }));
  v1::CancelRequest request;
  *request.mutable_key() = opened.key();
  std::promise<uint64_t> cancelled;
  sessions_->cancel(request, [&](auto response) { cancelled.set_value(response->cancelled()); });
  while (true) {
    std::lock_guard lock(log_.mutex);
    if (log_.cancels > 0) break;
  }
  log_.wake_one();
  EXPECT_GT(cancelled.get_future().get(), 0u);
  EXPECT_TRUE(client->wait_applied(3));
}

TEST_F(SessionTest, AttachFencesTheOldConnection) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  v1::AttachRequest request;
  *request.mutable_key() = opened.key();
  v1::SlotKey key;
  sessions_->attach(request, [&](auto response) { key = response->key(); });
  EXPECT_EQ(key.epoch(), opened.key().epoch() + 1);
  ASSERT_TRUE(client->wait_finished());
  EXPECT_EQ(client->finished->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(sessions_->find(opened.key()).status().code(), absl::StatusCode::kAborted);
  connect(key)->send(frame(1, {kNothing}));
  request.set_new_slot(true);
  std::promise<v1::SlotKey> added;
  sessions_->attach(request, [&](auto response) { added.set_value(response->key()); });
  const v1::SlotKey second = added.get_future().get();
  EXPECT_EQ(second.slot(), key.slot() + 1);
  EXPECT_NE(second.secret(), key.secret());
}

TEST_F(SessionTest, WrongKeysAreRefused) {
  const auto opened = open_session(*sessions_);
  v1::SlotKey key = opened.key();
  key.mutable_secret()->back() ^= 1;
  EXPECT_EQ(sessions_->find(key).status().code(), absl::StatusCode::kNotFound);
  key = opened.key();
  key.set_session(key.session() + 1);
  EXPECT_EQ(sessions_->find(key).status().code(), absl::StatusCode::kNotFound);
  key.clear_secret();
  EXPECT_EQ(sessions_->find(key).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SessionTest, CloseTellsUnreadErrors) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  client->send(frame(1, {kFail}));
  ASSERT_TRUE(client->wait_applied(1));
  const auto closed = close(opened.key(), true);
  ASSERT_EQ(closed.unread_size(), 1);
  EXPECT_EQ(closed.unread(0).message(), "[fail] on purpose");
  EXPECT_FALSE(sessions_->find(opened.key()).ok());
  EXPECT_EQ(sessions_->count(), 0u);
}

TEST_F(SessionTest, LeaseEndsSessionsWithoutConnection) {
  make({.lease_seconds = 0.2});
  const auto kept = open_session(*sessions_);
  auto client = connect(kept.key());
  open_session(*sessions_);
  EXPECT_EQ(sessions_->count(), 2u);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(sessions_->count(), 1u);
  EXPECT_TRUE(sessions_->find(kept.key()).ok());
}

TEST_F(SessionTest, ExecuteAnswersWithItsReplies) {
  const auto opened = open_session(*sessions_);
  v1::ExecuteRequest request;
  *request.mutable_key() = opened.key();
  request.add_commands()->set_op("nothing");
  request.add_commands()->set_op("meta");
  std::promise<absl::StatusOr<Executed>> done;
  sessions_->execute(request, [&](auto executed) { done.set_value(executed); });
  absl::StatusOr<Executed> executed = done.get_future().get();
  ASSERT_TRUE(executed.ok()) << executed.status();
  v1::Replies replies;
  ASSERT_TRUE(replies.ParseFromString(executed->replies));
  ASSERT_EQ(replies.replies_size(), 1);
  EXPECT_EQ(replies.replies(0).number(), 2u);
  EXPECT_EQ(executed->applied, 2u);
  request.mutable_commands(1)->set_op("no_such_op");
  sessions_->execute(request, [&](auto executed) { EXPECT_FALSE(executed.ok()); });
}

TEST_F(SessionTest, ExecuteOfTheSameNumbersIsAppliedOnce) {
  const auto opened = open_session(*sessions_);
  v1::ExecuteRequest request;
  *request.mutable_key() = opened.key();
  request.add_commands()->set_op("meta");
  request.mutable_commands(0)->set_number(1);
  std::string replies[2];
  for (std::string& each : replies) {
    std::promise<Executed> done;
    sessions_->execute(request, [&](auto executed) { done.set_value(*executed); });
    each = done.get_future().get().replies;
  }
  EXPECT_FALSE(replies[0].empty());
  EXPECT_EQ(replies[0], replies[1]);
  EXPECT_EQ(log_.count(), 1u);
}

TEST_F(SessionTest, LargeValuesBecomeTransfers) {
  const auto opened = open_session(*sessions_);
  auto client = connect(opened.key());
  client->send(frame(1, {kBig}));
  ASSERT_TRUE(client->wait_replies(1));
  const v1::TensorValue& value = client->replies[0].values().values(0);
  EXPECT_EQ(value.bytes(), kBigBytes);
  EXPECT_TRUE(value.data().empty());
  auto data = sessions_->find(opened.key())->slot->outbox().transfers().find(value.transfer());
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->size(), kBigBytes);
}

TEST_F(SessionTest, FullInboxStopsReadingAndGoesOn) {
  auto client = connect(open_session(*sessions_).key());
  client->send(frame(1, {kSuspend}));
  ASSERT_TRUE(client->wait([&] { return log_.count() == 1; }));
  uint64_t first = 2;
  v1::Frame full;
  for (int i = 0; i < 10000; ++i) add_command(&full, kNothing);
  bool more = true;
  while (more && first < 1000000) {
    full.set_first(first);
    more = client->send(full);
    first += full.heads_size();
  }
  EXPECT_FALSE(more);
  log_.wake_one();
  EXPECT_TRUE(client->wait([&] { return client->resumed == 1; }));
  EXPECT_TRUE(client->wait_applied(first - 1));
}

TEST_F(SessionTest, HalfCloseEndsAfterEverythingIsApplied) {
  auto client = connect(open_session(*sessions_).key());
  client->send(frame(1, {kMeta, kNothing}));
  client->close_half();
  const auto status = client->wait_finished();
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->ok());
  EXPECT_EQ(client->applied, 2u);
  EXPECT_EQ(client->replies.size(), 1u);
}

TEST_F(SessionTest, DrainIsAnnouncedAndRefusesSessions) {
  auto client = connect(open_session(*sessions_).key());
  sessions_->drain("bye");
  ASSERT_TRUE(client->wait_replies(1));
  EXPECT_EQ(client->replies[0].event().kind(), v1::Event::DRAINING);
  EXPECT_EQ(open_session(*sessions_).key().session(), 0u);
}

}  // namespace
}  // namespace gradwire::server
