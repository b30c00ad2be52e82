#include "kernels/error.h"

#include "absl/strings/cord.h"

namespace gradwire {
namespace {

constexpr char kKindPayload[] = "gradwire.kind";

absl::StatusCode code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kType:
    case ErrorKind::kValue:
      return absl::StatusCode::kInvalidArgument;
    case ErrorKind::kIndex:
      return absl::StatusCode::kOutOfRange;
    case ErrorKind::kNotImplemented:
      return absl::StatusCode::kUnimplemented;
    case ErrorKind::kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case ErrorKind::kCancelled:
      return absl::StatusCode::kCancelled;
    case ErrorKind::kInternal:
      return absl::StatusCode::kInternal;
    case ErrorKind::kKey:
      return absl::StatusCode::kNotFound;
    case ErrorKind::kConnection:
      return absl::StatusCode::kUnavailable;
    case ErrorKind::kPermission:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kFailedPrecondition;
  }
}

}  // namespace

absl::Status make_error(ErrorKind kind, std::string_view message) {
  absl::Status status(code_of(kind), absl::string_view(message.data(), message.size()));
  status.SetPayload(kKindPayload, absl::Cord(std::string(1, static_cast<char>(kind))));
  return status;
}

ErrorKind error_kind(const absl::Status& status) {
  if (status.ok()) return ErrorKind::kNone;
  auto payload = status.GetPayload(kKindPayload);
  if (!payload || payload->size() != 1) return ErrorKind::kInternal;
  return static_cast<ErrorKind>(std::string(*payload)[0]);
}

}  // namespace gradwire
