// Errors as values. Every fault of a caller is an absl::Status that carries the kind of Python
// exception torch would raise; the kind crosses the wire as proto error.ErrorKind.
// The caller's fault and our own bug are different calls: a bug is internal_error().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gradwire {

// Numbers are wire values (proto gradwire.v1.ErrorKind): never renumber.
enum class ErrorKind : uint8_t {
  kNone = 0,
  kRuntime = 1,         // RuntimeError
  kType = 2,            // TypeError
  kValue = 3,           // ValueError
  kIndex = 4,           // IndexError
  kNotImplemented = 5,  // NotImplementedError
  kOutOfMemory = 6,     // OutOfMemoryError, a RuntimeError
  kLinAlg = 7,          // LinAlgError, a RuntimeError
  kCancelled = 8,       // CancelledError
  kInternal = 9,        // our bug; a RuntimeError that asks for a report
  kZeroDivision = 10,   // ZeroDivisionError is what torch raises as RuntimeError
  kKey = 11,            // KeyError
  kConnection = 12,     // ConnectionError
  kPermission = 13,     // PermissionError
};

absl::Status make_error(ErrorKind kind, std::string_view message);

// The kind of a Status made by make_error; kNone when ok, kInternal for a foreign Status.
ErrorKind error_kind(const absl::Status& status);

template <class... Args>
absl::Status runtime_error(const Args&... args) {
  return make_error(ErrorKind::kRuntime, absl::StrCat(args...));
}
template <class... Args>
absl::Status type_error(const Args&... args) {
  return make_error(ErrorKind::kType, absl::StrCat(args...));
}
template <class... Args>
absl::Status value_error(const Args&... args) {
  return make_error(ErrorKind::kValue, absl::StrCat(args...));
}
template <class... Args>
absl::Status index_error(const Args&... args) {
  return make_error(ErrorKind::kIndex, absl::StrCat(args...));
}
template <class... Args>
absl::Status internal_error(const Args&... args) {
  return make_error(ErrorKind::kInternal, absl::StrCat(args...));
}
template <class... Args>
absl::Status not_implemented_error(const Args&... args) {
  return make_error(ErrorKind::kNotImplemented, absl::StrCat(args...));
}

}  // namespace gradwire

// Returns the Status of `expression` from the enclosing function unless it is ok.
#define GW_RETURN_IF_ERROR(expression)     \
  do {                                     \
    absl::Status gw_status = (expression); \
    if (!gw_status.ok()) return gw_status; \
  } while (false)
