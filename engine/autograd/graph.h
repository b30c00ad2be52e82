// A backward pass as a resumable run.
#pragma once

#include <queue>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/autograd/node.h"

namespace gradwire {

// One backward() or autograd.grad(): walks the graph from roots to leaves, later nodes first,
// dispatching the gradient ops of the current slot. On the session's strand.
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

  // Runs the next node. False when the run has ended.
  bool step();
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

  // Error: a node that would run has had its buffers freed.
  absl::Status discover(const std::vector<Edge>& roots);
  void deliver(const Edge& edge, Tensor grad);

  Options options_;
  uint64_t id_ = 0;
  std::vector<Target> targets_;
  std::priority_queue<Ref<Node>, std::vector<Ref<Node>>, Later> ready_;
};

}  // namespace gradwire
