// The state of one slot (one attached client): modes, generator, the command in hand.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/autograd/client_code.h"
#include "engine/ops/op_def.h"
#include "engine/ops/reply.h"
#include "engine/ops/session_state.h"
#include "engine/ops/worker.h"

namespace gradwire {

// A Philox generator: numbers are reserved at dispatch, so order of execution does not matter.
struct Generator {
  uint64_t seed = 67280421310721ull;  // torch's default seed
  uint64_t offset = 0;

  uint64_t reserve(uint64_t counters) {
    uint64_t at = offset;
    offset += counters;
    return at;
  }
};

class Checkpoint;
struct PausedRun;  // a backward that waits for client code (engine/ops/rows_graph.cc)

// On its session's strand only.
class Slot {
 public:
  Slot(SessionState& session, uint32_t number, ReplySink& sink, std::function<void()> wake);
  ~Slot();

  SessionState& session;
  const uint32_t number;
  ReplySink& sink;
  const std::function<void()> wake;

  bool grad_enabled = true;
  bool inference = false;
  DType default_float = DType::kFloat32;
  Generator generator;
  absl::flat_hash_map<uint64_t, Generator> generator_marks;  // states kept under a client's number
  bool anomaly = false;                                      // backward reports where nan came from
  bool anomaly_nan = false;                                  // and looks for it

  // Checkpointed regions being run, innermost last.
  struct Region {
    Ref<Checkpoint> checkpoint;
    bool again = false;
    Generator before;  // again: what the generator goes back to
  };
  std::vector<Region> checkpoints;

  // Code of this slot's client that the graph holds, and what it has let go of.
  absl::flat_hash_map<uint64_t, std::weak_ptr<ClientCode>> code;
  std::shared_ptr<ForgottenCode> forgotten = std::make_shared<ForgottenCode>();
  absl::flat_hash_map<uint64_t, std::shared_ptr<PausedRun>> paused;
  uint64_t last_callback = 0;
  ErrorRef saved_failure;  // a saved tensor that backward could not have: ends the run

  // The command in hand: who is to blame in errors.
  uint64_t command = 0;
  const OpDef* op = nullptr;
  Ref<const Site> site;

  // What a suspended command goes on with.
  std::function<Progress()> continuation;

  // Roots of failures since the last take, for close.
  std::deque<ErrorRef> errors;
  // A new root cause in the name of the command in hand; kept among the unread.
  ErrorRef fail(const absl::Status& status);

  void set_site(const std::string* text);
  void push(std::unique_ptr<Task> task);
  // Lets the executor see what was pushed.
  void flush();
  // Registers a result under a client's id. Error: the id is taken or has another slot's bits.
  absl::Status define(uint64_t id, Tensor tensor);
  // A handle that the server chose: ids with bit 47 are its own.
  uint64_t new_id() { return uint64_t{number} << 48 | kServerBit | ++last_id_; }
  static constexpr uint64_t kServerBit = uint64_t{1} << 47;
  const Tensor* find(uint64_t id) const;

  // The slot whose command this thread is dispatching. Only valid inside a Use.
  static Slot& current();
  class Use {
   public:
    explicit Use(Slot& slot);
    ~Use();

   private:
    Slot* before_;
  };

 private:
  uint64_t last_id_ = 0;
};

// Turns gradient recording off (or on) for a scope.
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();

 private:
  bool before_;
};

}  // namespace gradwire
