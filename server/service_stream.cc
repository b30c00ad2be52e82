#include <mutex>
#include <optional>

#include "gradwire/v1/session.pb.h"
#include "server/decode.h"
#include "server/service.h"
#include "server/status.h"

namespace gradwire::server {
namespace {

constexpr size_t kCopyBytes = 4096;  // below this a copy is cheaper than another block

using grpc::ByteBuffer;

class StreamConnection final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>,
                               public Connection,
                               public std::enable_shared_from_this<StreamConnection> {
 public:
  explicit StreamConnection(Sessions& sessions) : sessions_(sessions) {}

  void start() {
    self_ = shared_from_this();
    StartRead(&request_);
  }

  // --- Connection ---
  void notify() override { pump(); }
  void resume_reading() override {
    {
      std::lock_guard lock(mutex_);
      if (finishing_) return;
    }
    StartRead(&request_);
  }
  void finish(const absl::Status& status, std::string last) override {
    {
      std::lock_guard lock(mutex_);
      if (finishing_) return;
      finishing_ = status;
      last_ = std::move(last);
    }
    pump();
  }

  // --- Reactions ---
  void OnReadDone(bool ok) override {
    if (!ok) {
      if (slot_) {
        slot_->receive_end(this);
      } else {
        finish(absl::InvalidArgumentError("the stream ended before its `start`"), {});
      }
      return;
    }
    bool more = false;
    if (absl::Status status = read(message_of(request_), &more); !status.ok()) {
      finish(status, {});
    } else if (more) {
      StartRead(&request_);
    }
  }
  void OnWriteDone(bool ok) override {
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
      if (!ok) broken_ = true;
      if (!ok && !finishing_) finishing_ = absl::CancelledError("the client is gone");
    }
    pump();
  }
  void OnCancel() override {
    {
      std::lock_guard lock(mutex_);
      broken_ = true;
      if (!finishing_) finishing_ = absl::CancelledError("the client is gone");
    }
    pump();
  }
  void OnDone() override {
    if (slot_) {
      slot_->disconnect(this);
      session_->touch();
    }
    std::shared_ptr<StreamConnection> last = std::move(self_);
  }

 private:
  absl::Status read(Message message, bool* more) {
    absl::StatusOr<StreamParts> parts = split_stream_request(message.bytes);
    if (!parts.ok()) return parts.status();
    if (!slot_) {
      v1::SlotKey key;
      if (!key.ParseFromArray(parts->start.data(), static_cast<int>(parts->start.size()))) {
        return absl::InvalidArgumentError("`start` of the stream is malformed");
      }
      absl::StatusOr<SlotRef> ref = sessions_.find(key);
      if (!ref.ok()) return ref.status();
      {
        std::lock_guard lock(mutex_);
        session_ = ref->session;
        slot_ = ref->slot;
      }
      if (absl::Status status = slot_->connect(shared_from_this(), key.epoch()); !status.ok()) {
        return status;
      }
    } else if (!parts->start.empty()) {
      return absl::InvalidArgumentError("a stream has one `start`, in its first message");
    }
    *more = parts->frame.empty() || slot_->receive(this, {parts->frame, message.owner});
    return absl::OkStatus();
  }

  // Writes what waits, then ends the stream if that was asked. One write at a time.
  void pump() {
    std::string bytes;
    std::optional<absl::Status> end;
    {
      std::lock_guard lock(mutex_);
      if (writing_ || finished_) return;
      if (!broken_ && slot_ && slot_->outbox().next(this, &bytes)) {
        writing_ = true;
      } else if (finishing_ && !broken_ && !last_.empty()) {
        bytes = std::move(last_);
        last_.clear();
        writing_ = true;
      } else if (finishing_) {
        finished_ = true;
        end = finishing_;
      } else {
        return;
      }
    }
    if (end) {
      // Before the client learns of it: it may open the next stream at once.
      if (slot_) slot_->disconnect(this);
      return Finish(grpc_status(*end));
    }
    response_ = buffer_of(std::move(bytes));
    StartWrite(&response_);
  }

  Sessions& sessions_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Slot> slot_;
  ByteBuffer request_;
  ByteBuffer response_;
  std::shared_ptr<StreamConnection> self_;  // until OnDone

  std::mutex mutex_;
  bool writing_ = false;
  bool broken_ = false;    // nothing more can be written
  bool finished_ = false;  // Finish was called
  std::optional<absl::Status> finishing_;
  std::string last_;
};

// For callers that may not stream at all.
class RefusedStream final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(grpc_status(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* make_stream(const ServiceContext& context,
                                                             grpc::CallbackServerContext* call) {
  if (absl::Status status = authorize(context, *call, "Stream"); !status.ok()) {
    return new RefusedStream(status);
  }
  auto connection = std::make_shared<StreamConnection>(context.sessions);
  connection->start();
  return connection.get();
}

Message message_of(const ByteBuffer& buffer) {
  auto slice = std::make_shared<grpc::Slice>();
  if (!buffer.TrySingleSlice(slice.get()).ok() && !buffer.DumpToSingleSlice(slice.get()).ok()) {
    return {};
  }
  return {{reinterpret_cast<const char*>(slice->begin()), slice->size()}, slice};
}

ByteBuffer buffer_of(std::string bytes) {
  if (bytes.size() < kCopyBytes) {
    grpc::Slice slice(bytes.data(), bytes.size());
    return ByteBuffer(&slice, 1);
  }
  auto* owner = new std::string(std::move(bytes));
  grpc::Slice slice(
      owner->data(), owner->size(), [](void* data) { delete static_cast<std::string*>(data); },
      owner);
  return ByteBuffer(&slice, 1);
}

}  // namespace gradwire::server
