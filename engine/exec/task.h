// Work for the executor: one kernel launch (or a host action) with everything it needs. Made by
// dispatch, owned by a queue, run once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/core/error_record.h"
#include "engine/core/recycled.h"
#include "engine/core/shape.h"
#include "engine/core/storage.h"
#include "kernels/backend.h"

namespace gradwire {

struct OpDef;
class ReplySink;

// Geometry and storage of one argument; storage null for an absent optional tensor.
struct Operand {
  StorageRef storage;
  DType dtype = DType::kNone;
  Dims sizes;
  Dims strides;
  int64_t offset = 0;
};

enum class TaskKind : uint8_t {
  kPointwise,  // `program` over inputs broadcast to outputs[0]; fusable
  kKernel,
  kCopyIn,  // host bytes -> outputs[0]
  kRead,    // inputs -> host, then `on_values`
  kHost,    // calls `on_done` in order; touches no device memory
  kSync,    // calls `on_done` when the device has run all tasks before it
};

class Upload;

struct Task : Recycled<Task> {
  TaskKind kind = TaskKind::kKernel;
  KernelId kernel = 0;
  bool commits = false;   // writes state that outlives the step: refused when an input is bad
  bool in_place = false;  // like commits, but a reader of the output is told
  bool checks = false;    // the kernel can fail on values
  int state_outputs = 0;  // trailing outputs that are state: left alone when the task fails
  const OpDef* op = nullptr;
  const expr::Program* program = nullptr;
  absl::InlinedVector<Operand, 4> inputs;
  absl::InlinedVector<Operand, 2> outputs;
  absl::InlinedVector<ScalarValue, 2> scalars;
  AttributeList attributes;
  uint64_t seed = 0, offset = 0;

  // Poison in any of these refuses a committing task: a multi-tensor step is all or nothing.
  std::vector<StorageRef> guards;
  // Called right before the launch, on the executor's thread: fills in what only the outcome of
  // earlier tasks decides (step counts).
  std::function<void(Task&)> prepare;

  // Who asked, for errors and cancellation.
  uint64_t number = 0;
  uint32_t slot = 0;
  Ref<const class Site> site;
  ReplySink* sink = nullptr;  // outlives the task: queues are emptied before slots end

  // kCopyIn: the bytes, at hand or still on their way.
  std::string host;
  std::shared_ptr<Upload> upload;
  // kRead: called once with a block for each input, or an error (null block).
  struct ReadBlock {
    std::shared_ptr<const std::string> data;
    ErrorRef error;
  };
  std::function<void(std::vector<ReadBlock>)> on_values;
  // kHost and kSync, and kKernel when set: called once with the outcome after the task ran or was
  // skipped.
  std::function<void(ErrorRef)> on_done;
};

// The user's own line; shared by the tasks and nodes that came from it.
class Site : public RefCounted {
 public:
  explicit Site(std::string text) : text(std::move(text)) {}
  const std::string text;
};

}  // namespace gradwire
