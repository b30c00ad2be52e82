#include "server/encode.h"

#include "kernels/error.h"
#include "server/limits.h"

namespace gradwire::server {
namespace {

ErrorKind kind_of(const absl::Status& status) {
  const ErrorKind kind = error_kind(status);
  if (kind != ErrorKind::kInternal || status.code() == absl::StatusCode::kInternal) return kind;
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return ErrorKind::kPermission;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kDataLoss:
      return ErrorKind::kConnection;
    case absl::StatusCode::kInvalidArgument:
      return ErrorKind::kValue;
    case absl::StatusCode::kNotFound:
      return ErrorKind::kKey;
    case absl::StatusCode::kCancelled:
      return ErrorKind::kCancelled;
    default:
      return ErrorKind::kRuntime;
  }
}

void fill_meta(const TensorMeta& meta, const std::string& device, v1::TensorMeta* out) {
  out->set_defined(meta.defined);
  if (!meta.defined) return;
  out->set_dtype(static_cast<v1::DType>(meta.dtype));
  out->mutable_shape()->Assign(meta.sizes.begin(), meta.sizes.end());
  out->mutable_strides()->Assign(meta.strides.begin(), meta.strides.end());
  out->set_device(device);
  out->set_requires_grad(meta.requires_grad);
  out->set_is_leaf(meta.is_leaf);
  out->set_grad_fn(meta.grad_fn);
  out->set_version(meta.version);
  out->set_inference(meta.inference);
}

struct Encoder {
  v1::Reply* out;
  const std::string& device;
  Transfers& transfers;

  void operator()(const ValuesReply& reply) {
    for (const HostTensor& tensor : reply.values) {
      if (tensor.error) return (*this)(ErrorReply{tensor.error});
    }
    v1::Values* values = out->mutable_values();
    for (const HostTensor& tensor : reply.values) {
      v1::TensorValue* value = values->add_values();
      v1::TensorMeta* meta = value->mutable_meta();
      meta->set_defined(tensor.data != nullptr);
      if (!tensor.data) continue;
      meta->set_dtype(static_cast<v1::DType>(tensor.dtype));
      meta->mutable_shape()->Assign(tensor.sizes.begin(), tensor.sizes.end());
      meta->set_device(device);
      value->set_bytes(tensor.data->size());
      if (tensor.data->size() <= kInlineBytes) {
        value->set_data(*tensor.data);
      } else if (const uint64_t id = transfers.add(tensor.data)) {
        value->set_transfer(id);
      } else {
        *out->mutable_error() = error_message(runtime_error(
            "[read] ", kTransfers, " values wait to be fetched already; download them first"));
        return;
      }
    }
  }
  void operator()(const MetasReply& reply) {
    for (const TensorMeta& meta : reply.metas) {
      if (meta.error) return (*this)(ErrorReply{meta.error});
    }
    v1::Metas* metas = out->mutable_metas();
    for (const TensorMeta& meta : reply.metas) fill_meta(meta, device, metas->add_metas());
  }
  void operator()(const ErrorReply& reply) {
    *out->mutable_error() = reply.error ? error_message(*reply.error)
                                        : error_message(internal_error("an error without a cause"));
  }
  void operator()(const TextReply& reply) { out->set_text(reply.text); }
  void operator()(const RefusedEvent& event) {
    out->mutable_event()->set_kind(v1::Event::UNREAD_ERROR);
    if (event.error) *out->mutable_event()->mutable_error() = error_message(*event.error);
  }
  void operator()(const CallbackReply& reply) {
    v1::Callback* callback = out->mutable_callback();
    callback->set_callback(reply.callback);
    callback->set_code(reply.code);
    callback->set_kind(static_cast<v1::Callback::Kind>(reply.kind));
    callback->set_split(reply.split);
    for (uint64_t id : reply.tensors) callback->add_tensors(id);
    for (const TensorMeta& meta : reply.metas) fill_meta(meta, device, callback->add_metas());
  }
  void operator()(const ForgottenEvent& event) {
    out->mutable_event()->set_kind(v1::Event::FORGOTTEN);
    for (uint64_t id : event.code) out->mutable_event()->add_code(id);
  }
};

}  // namespace

v1::Error error_message(const ErrorRecord& error) {
  v1::Error out;
  out.set_kind(static_cast<v1::ErrorKind>(error.kind));
  out.set_message(error.message);
  out.set_op(error.op);
  out.set_number(error.number);
  out.set_slot(error.slot);
  out.set_site(error.site);
  error.reported.store(true, std::memory_order_relaxed);
  return out;
}

v1::Error error_message(const absl::Status& status) {
  v1::Error out;
  out.set_kind(static_cast<v1::ErrorKind>(kind_of(status)));
  out.set_message(std::string(status.message()));
  return out;
}

std::string encode_reply(uint64_t number, const Reply& reply, const std::string& device,
                         Transfers& transfers) {
  v1::Reply out;
  out.set_number(number);
  std::visit(Encoder{&out, device, transfers}, reply);
  return out.SerializeAsString();
}

std::string encode_event(v1::Event::Kind kind, const std::string& text) {
  v1::Reply out;
  out.mutable_event()->set_kind(kind);
  out.mutable_event()->set_text(text);
  return out.SerializeAsString();
}

}  // namespace gradwire::server
