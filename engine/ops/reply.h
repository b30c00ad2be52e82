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
  std::string grad_fn;   // op that made it, "" for a leaf
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

using Reply = std::variant<ValuesReply, MetasReply, ErrorReply, TextReply, RefusedEvent>;

// Where a slot's replies go. Called from dispatch and executor threads; must not block and must
// not call back into the engine.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // `number` is the command answered, 0 for an event.
  virtual void reply(uint64_t number, Reply reply) = 0;
};

}  // namespace gradwire
