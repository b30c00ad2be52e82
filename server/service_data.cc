#include <optional>
#include <vector>

#include "gradwire/v1/session.grpc.pb.h"
#include "server/chunk.h"
#include "server/crc32c.h"
#include "server/encode.h"
#include "server/limits.h"
#include "server/service.h"
#include "server/status.h"

namespace gradwire::server {
namespace {

using grpc::ByteBuffer;

using Base = v1::Data::WithRawCallbackMethod_Upload<v1::Data::WithRawCallbackMethod_Download<
    v1::Data::WithCallbackMethod_UploadStatus<v1::Data::Service>>>;

// Takes one tensor's chunks. A fault of the transfer fails that transfer; a cut connection leaves
// it as it is, to be resumed.
class UploadReactor final : public grpc::ServerReadReactor<ByteBuffer> {
 public:
  UploadReactor(Sessions& sessions, grpc::CallbackServerContext* call, ByteBuffer* response)
      : sessions_(sessions), call_(call), response_(response) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      if (upload_ && !call_->IsCancelled()) {
        upload_->fail(
            runtime_error("[upload] the client stopped after ", upload_->received(), " bytes"));
        return respond(upload_->status());
      }
      return Finish(grpc_status(absl::CancelledError("the upload was cut")));
    }
    ChunkReader chunk;
    absl::Status status = chunk.read(request_);
    if (status.ok() && !upload_) {
      if (status = begin(chunk); !status.ok()) {
        // Nothing is known of the caller yet, so nothing is told but the status.
        if (!known_) return Finish(grpc_status(status));
        return respond(status);
      }
    }
    if (status.ok()) status = chunk.write_to(*upload_);
    if (!status.ok()) {
      if (!upload_) return Finish(grpc_status(status));
      upload_->fail(status);
      return respond(status);
    }
    if (upload_->ready()) return respond(upload_->status());
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  absl::Status begin(const ChunkReader& chunk) {
    v1::SlotKey key;
    if (!key.ParseFromArray(chunk.key().data(), static_cast<int>(chunk.key().size()))) {
      return absl::InvalidArgumentError("the key of the upload is malformed");
    }
    absl::StatusOr<SlotRef> ref = sessions_.find(key);
    if (!ref.ok()) return ref.status();
    known_ = true;
    session_ = ref->session;
    absl::StatusOr<std::shared_ptr<Upload>> upload =
        session_->start_upload(key.slot(), chunk.transfer(), chunk.total());
    if (!upload.ok()) return upload.status();
    upload_ = *std::move(upload);
    return absl::OkStatus();
  }

  void respond(const absl::Status& status) {
    v1::UploadResponse response;
    if (upload_) response.set_received(upload_->received());
    if (!status.ok()) *response.mutable_error() = error_message(status);
    *response_ = buffer_of(response.SerializeAsString());
    if (session_) session_->touch();
    Finish(grpc::Status::OK);
  }

  Sessions& sessions_;
  grpc::CallbackServerContext* const call_;
  ByteBuffer* const response_;
  ByteBuffer request_;
  bool known_ = false;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Upload> upload_;
};

class DownloadReactor final : public grpc::ServerWriteReactor<ByteBuffer> {
 public:
  DownloadReactor(Sessions& sessions, const ByteBuffer& request) {
    if (absl::Status status = begin(sessions, request); !status.ok()) {
      Finish(grpc_status(status));
    } else {
      write();
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc_status(absl::CancelledError("the client is gone")));
    if (offset_ < data_->size()) return write();
    complete_ = true;
    Finish(grpc::Status::OK);
  }
  void OnDone() override {
    if (complete_) slot_->outbox().transfers().drop(transfer_);
    if (session_) session_->touch();
    delete this;
  }

 private:
  absl::Status begin(Sessions& sessions, const ByteBuffer& bytes) {
    const Message message = message_of(bytes);
    v1::DownloadRequest request;
    if (message.bytes.size() > kFrameBytes ||
        !request.ParseFromArray(message.bytes.data(), static_cast<int>(message.bytes.size()))) {
      return absl::InvalidArgumentError("the download request is malformed");
    }
    absl::StatusOr<SlotRef> ref = sessions.find(request.key());
    if (!ref.ok()) return ref.status();
    session_ = ref->session;
    slot_ = ref->slot;
    transfer_ = request.transfer();
    data_ = slot_->outbox().transfers().find(transfer_);
    if (!data_) {
      return absl::NotFoundError(absl::StrCat("there is no transfer ", transfer_, " to download"));
    }
    if (request.offset() > data_->size()) {
      return absl::OutOfRangeError(absl::StrCat("offset ", request.offset(),
                                                " is after the end of the transfer's ",
                                                data_->size(), " bytes"));
    }
    offset_ = request.offset();
    chunk_bytes_ = request.chunk_bytes() == 0
                       ? kChunkBytes
                       : std::min<uint64_t>(request.chunk_bytes(), kChunkBytesMax);
    return absl::OkStatus();
  }

  void write() {
    const size_t bytes = std::min<size_t>(chunk_bytes_, data_->size() - offset_);
    chunk_ = chunk_buffer(data_, offset_, bytes);
    offset_ += bytes;
    StartWrite(&chunk_);
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<Slot> slot_;
  uint64_t transfer_ = 0;
  std::shared_ptr<const std::string> data_;
  size_t offset_ = 0;
  size_t chunk_bytes_ = kChunkBytes;
  ByteBuffer chunk_;
  bool complete_ = false;
};

class RefusedUpload final : public grpc::ServerReadReactor<ByteBuffer> {
 public:
  explicit RefusedUpload(const absl::Status& status) { Finish(grpc_status(status)); }
  void OnDone() override { delete this; }
};

class RefusedDownload final : public grpc::ServerWriteReactor<ByteBuffer> {
 public:
  explicit RefusedDownload(const absl::Status& status) { Finish(grpc_status(status)); }
  void OnDone() override { delete this; }
};

class DataService final : public Base {
 public:
  explicit DataService(ServiceContext context) : context_(context) {}

  grpc::ServerReadReactor<ByteBuffer>* Upload(grpc::CallbackServerContext* call,
                                              ByteBuffer* response) override {
    absl::Status status = authorize(context_, *call, "Upload");
    if (!status.ok()) return new RefusedUpload(status);
    return new UploadReactor(context_.sessions, call, response);
  }
  grpc::ServerWriteReactor<ByteBuffer>* Download(grpc::CallbackServerContext* call,
                                                 const ByteBuffer* request) override {
    absl::Status status = authorize(context_, *call, "Download");
    if (!status.ok()) return new RefusedDownload(status);
    return new DownloadReactor(context_.sessions, *request);
  }
  grpc::ServerUnaryReactor* UploadStatus(grpc::CallbackServerContext* call,
                                         const v1::UploadStatusRequest* request,
                                         v1::UploadResponse* response) override {
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    absl::Status status = authorize(context_, *call, "UploadStatus");
    absl::StatusOr<SlotRef> ref = status;
    if (status.ok()) ref = context_.sessions.find(request->key());
    if (ref.ok()) {
      if (auto upload = ref->session->find_upload(request->key().slot(), request->transfer())) {
        response->set_received(upload->received());
        if (!upload->status().ok()) *response->mutable_error() = error_message(upload->status());
      }
    }
    reactor->Finish(grpc_status(ref.status()));
    return reactor;
  }

 private:
  const ServiceContext context_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_data_service(ServiceContext context) {
  return std::make_unique<DataService>(context);
}

}  // namespace gradwire::server
