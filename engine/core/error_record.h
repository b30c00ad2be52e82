// A root cause: the failure of one command, shared by everything that depended on it.
#pragma once

#include <atomic>
#include <string>

#include "engine/core/ref.h"
#include "kernels/error.h"

namespace gradwire {

// Immutable but for `reported`. Any thread.
class ErrorRecord : public RefCounted {
 public:
  ErrorKind kind = ErrorKind::kNone;
  std::string message;
  std::string op;       // catalog name, "" when no op failed
  uint64_t number = 0;  // command number in its slot
  uint32_t slot = 0;
  std::string site;  // the user's own line, as the client sent it

  // Whether a reply has carried this error to its slot; what was never read is told at close.
  mutable std::atomic<bool> reported{false};
};

using ErrorRef = Ref<const ErrorRecord>;

}  // namespace gradwire
