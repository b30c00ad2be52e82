// Code that lives in a client and runs inside backward: a hook, a Function's backward, the forward
// of a checkpointed region. The graph holds it; when the graph lets go, its client is told.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace gradwire {

// Ids of client code that nothing refers to any more, until the slot has told its client.
using ForgottenCode = std::vector<uint64_t>;

// On its session's strand.
class ClientCode {
 public:
  // `id` is the client's; `slot` the one whose client runs it.
  ClientCode(uint64_t id, uint32_t slot, std::shared_ptr<ForgottenCode> forgotten)
      : id(id), slot(slot), forgotten_(std::move(forgotten)) {}
  ~ClientCode() { forgotten_->push_back(id); }
  ClientCode(const ClientCode&) = delete;
  ClientCode& operator=(const ClientCode&) = delete;

  const uint64_t id;
  const uint32_t slot;
  bool removed = false;  // the client took the hook back

 private:
  std::shared_ptr<ForgottenCode> forgotten_;
};

using CodeRef = std::shared_ptr<ClientCode>;

// When a hook runs.
enum class HookPlace : uint8_t {
  kTensor,       // on the gradient of one output, as soon as it is whole
  kBefore,       // on the gradients that a node takes
  kAfter,        // on the gradients that a node gives
  kAccumulated,  // after a leaf's .grad has been written
};

struct Hook {
  CodeRef code;
  HookPlace place = HookPlace::kTensor;
  uint32_t output = 0;  // kTensor: of which output
};

}  // namespace gradwire
