// A backward pass as a resumable run.
#pragma once

#include <queue>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/autograd/checkpoint.h"
#include "engine/autograd/node.h"
#include "engine/ops/reply.h"

namespace gradwire {

// What a run needs of a client before it goes on.
struct Question {
  CallbackReply::Kind kind = CallbackReply::Kind::kNone;
  CodeRef code;
  Tensors tensors;
  uint32_t split = 0;          // tensors of the first group
  Ref<Checkpoint> checkpoint;  // kCheckpoint: the region to run
};

// One backward() or autograd.grad(): walks the graph from roots to leaves, later nodes first,
// dispatching the gradient ops of the current slot. On the session's strand. Any number of runs
// may be under way at a time, over the same nodes too.
class BackwardRun {
 public:
  struct Options {
    bool retain_graph = false;
    bool create_graph = false;
    bool accumulate = true;  // backward(): leaves get .grad; else only `inputs` are returned
    bool allow_unused = false;
  };

  // `grads[i]` may be null for a root of one element. `inputs`: the tensors whose gradients are
  // wanted; empty means all leaves (backward only). Errors: torch's, see SEMANTICS 13.
  static absl::StatusOr<std::unique_ptr<BackwardRun>> start(const Tensors& roots,
                                                            const Tensors& grads,
                                                            const Tensors& inputs,
                                                            const Options& options);

  ~BackwardRun();

  enum class State : uint8_t {
    kMore,  // call step() again
    kAsk,   // call answer(), then step()
    kRead,  // anomaly mode: call seen() with the values of flags(), then step()
    kDone,
  };
  // Goes on to the end of a node. Error: the run has ended by it.
  absl::StatusOr<State> step();

  const Question& question() const { return question_; }
  // The client's answer. Error: it is not what the question asks for; the run has ended.
  absl::Status answer(Tensors results);
  // Tensors of one bool: whether a gradient that the node has given is nan.
  const Tensors& flags() const { return flags_; }
  absl::Status seen(const std::vector<bool>& nan);

  // After the end of an autograd.grad: a gradient for each input, null where there is none.
  // Error: an input was not used and allow_unused is off.
  absl::StatusOr<Tensors> results();

 private:
  struct Later {
    bool operator()(const Ref<Node>& a, const Ref<Node>& b) const {
      return a->sequence < b->sequence;
    }
  };
  struct Target {
    Ref<Node> node;
    uint32_t index = 0;
    Tensor tensor;
    Tensor grad;
  };
  // A node's state in this run.
  struct Visit {
    uint32_t dependencies = 0;
    bool needed = false;
    Tensors buffer;
  };
  enum class Phase : uint8_t { kTensorHooks, kBefore, kCheckpoint, kApply, kCheck, kAfter, kLast };
  // The node in hand.
  struct At {
    Ref<Node> node;
    Phase phase = Phase::kTensorHooks;
    size_t hook = 0;
    bool runs = false;
    bool asked = false;  // the question of this place has been answered
    Tensors grads;
    Tensors results;
  };

  // Error: a node that would run has had its buffers freed.
  absl::Status discover(const std::vector<Edge>& roots);
  void deliver(const Edge& edge, Tensor grad);
  bool reached(const Edge& edge) const;
  void take_next();
  void capture();
  bool ask_hook(HookPlace place);
  bool ask_function(ClientNode& node);
  absl::StatusOr<State> ask();
  absl::Status take_function(Tensors results);
  void leave();

  Options options_;
  std::vector<Target> targets_;
  absl::flat_hash_map<const Node*, Visit> visits_;
  std::priority_queue<Ref<Node>, std::vector<Ref<Node>>, Later> ready_;
  At at_;
  Question question_;
  Tensors flags_;
  std::vector<size_t> flagged_;  // which results the flags are of
  std::vector<Ref<Checkpoint>> checkpoints_;
};

}  // namespace gradwire
