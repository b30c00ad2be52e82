// Answers of commands, as values; the server turns them into protobuf.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/core/error_record.h"
#include "engine/core/shape.h"

namespace gradwire {

// What a client may know of a tensor without asking a device.
struct TensorMeta {
  DType dtype = DType::kNone;
  Dims sizes;
  Dims strides;
  bool requires_grad = false;
  bool is_leaf = true;
  std::string grad_fn;   // node that made it ("MulBackward0"), "" for a leaf
  uint32_t version = 0;  // in-place writes into its storage
  bool inference = false;
  bool defined = false;  // false: no such tensor (a gradient that is None)
  ErrorRef error;        // set: the tensor is poisoned and nothing above holds
};

// Contents in row-major order, owned by whoever holds it.
struct HostTensor {
  DType dtype = DType::kNone;
  Dims sizes;
  std::shared_ptr<const std::string> data;
  ErrorRef error;  // set: the tensor is poisoned, no data
};

struct ValuesReply {
  std::vector<HostTensor> values;
};
struct MetasReply {
  std::vector<TensorMeta> metas;
};
struct ErrorReply {
  ErrorRef error;
};
struct TextReply {
  std::string text;  // JSON
};
// A committing command (optimizer step, in-place op) was refused because of `error`.
struct RefusedEvent {
  ErrorRef error;
};

// A backward has come to code of the client's own; the numbers are those of the proto's Callback.
struct CallbackReply {
  enum class Kind : uint8_t {
    kNone = 0,
    kFunction = 1,     // gradients of the outputs, then what was saved
    kTensorHook = 2,   // one gradient
    kBeforeNode = 3,   // gradients that come to a node
    kAfterNode = 4,    // gradients that a node gave, then those that came
    kAccumulated = 5,  // the leaf
    kCheckpoint = 6,   // nothing: run the region again
  };
  uint64_t callback = 0;
  uint64_t code = 0;
  Kind kind = Kind::kNone;
  uint32_t split = 0;  // tensors of the first group
  std::vector<uint64_t> tensors;
  std::vector<TensorMeta> metas;
};
// Code of the client's that the graph does not refer to any more.
struct ForgottenEvent {
  std::vector<uint64_t> code;
};

using Reply = std::variant<ValuesReply, MetasReply, ErrorReply, TextReply, RefusedEvent,
                           CallbackReply, ForgottenEvent>;

// Where a slot's replies go. Called from dispatch and executor threads; must not block and must
// not call back into the engine.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // `number` is the command answered, 0 for an event.
  virtual void reply(uint64_t number, Reply reply) = 0;
};

}  // namespace gradwire
