// The autograd graph. Nodes are made at dispatch and point from outputs to inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/autograd/client_code.h"
#include "engine/core/tensor.h"
#include "engine/ops/op_def.h"

namespace gradwire {

// Where a gradient goes next: input `index` of `node`; a null node wants none.
struct Edge {
  Ref<Node> node;
  uint32_t index = 0;
};

class Checkpoint;
class ClientNode;

// A tensor kept for backward, with the version its storage had. Holds an alias, never the tensor
// itself when that could close a cycle through its own node. In a checkpointed region it holds
// only the tensor's number there.
class SavedTensor {
 public:
  SavedTensor();
  // `maker`: the node being built when the tensor is one of its own outputs, else null.
  SavedTensor(const Tensor& tensor, const Node* maker);
  ~SavedTensor();
  SavedTensor(const SavedTensor&);
  SavedTensor(SavedTensor&&) noexcept;
  SavedTensor& operator=(SavedTensor) noexcept;

  bool present() const { return tensor_.get() != nullptr || checkpoint_.get() != nullptr; }
  // The region that must be computed again before get(); null: none.
  Checkpoint* missing() const;
  // The tensor with its history. `self` is the node that saved it. Error: the storage has been
  // written in place since, or the saved tensors were freed.
  absl::StatusOr<Tensor> get(const Ref<Node>& self) const;

 private:
  Tensor tensor_;
  uint32_t version_ = 0;
  bool own_output_ = false;
  uint32_t output_nr_ = 0;
  Ref<Checkpoint> checkpoint_;
  uint32_t number_ = 0;  // in the checkpoint
  Ref<Node> maker_;      // of a checkpointed tensor that is no output of its own node
};

class Node : public RefCounted {
 public:
  Node();
  // Frees long chains without recursion.
  ~Node() override;

  // Gradients of the outputs (null: none came) to gradients of the inputs, one for each edge.
  virtual Tensors apply(Tensors grads) = 0;
  // Drops what was saved; a second apply() is then an error.
  virtual void release() {}
  virtual bool released() const { return false; }
  // Poisons carry errors; a node's own error names it. As torch spells it: "MulBackward0".
  virtual std::string name() const = 0;
  // The checkpointed region that must run again before apply(); null: none.
  virtual Checkpoint* missing() const { return nullptr; }
  // Set for nodes whose gradients a client computes: they are never applied.
  virtual ClientNode* client() { return nullptr; }
  virtual std::vector<Hook>& hooks() { return hooks_; }

  absl::InlinedVector<Edge, 2> edges;
  uint32_t outputs = 1;  // gradients that apply() takes
  uint64_t sequence;     // later nodes run first
  Ref<const Site> site;  // the forward line
  // Non-leaf tensors that asked for their gradient: (output, holder).
  std::vector<std::pair<uint32_t, std::weak_ptr<Tensor>>> retained;

 private:
  std::vector<Hook> hooks_;
};

// "mul" to "MulBackward0", as torch names the nodes of its graph.
std::string node_name(std::string_view op);
// Adds a gradient to a .grad place, cast and summed to what the tensor is.
void accumulate_grad(const Tensor& tensor, Tensor grad);

// Ends at a leaf: adds what comes to the leaf's .grad.
class AccumulateGrad : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  ~AccumulateGrad() override;
  Tensors apply(Tensors grads) override;
  std::string name() const override { return "AccumulateGrad"; }
  std::vector<Hook>& hooks() override { return leaf_->meta().hooks; }
  const Tensor& leaf() const { return leaf_; }

 private:
  Tensor leaf_;
};

// A catalog row's node: what the row's backward needs.
class OpNode : public Node, public Recycled<OpNode> {
 public:
  Tensors apply(Tensors grads) override;
  void release() override;
  bool released() const override { return released_; }
  std::string name() const override { return node_name(op->name); }
  Checkpoint* missing() const override;

  const OpDef* op = nullptr;
  AttributeList attributes;
  absl::InlinedVector<int, 2> list_sizes;
  absl::InlinedVector<TensorSpec, 4> input_specs;  // dtype kNone: absent
  absl::InlinedVector<TensorSpec, 2> output_specs;
  absl::InlinedVector<SavedTensor, 4> inputs;  // by input number; not present: not saved
  absl::InlinedVector<SavedTensor, 2> saved_outputs;
  ViewSpec layout;  // views only: the geometry of input 0

 private:
  bool released_ = false;
};

// A pointwise op's node: derivatives come from the expression.
class PointwiseNode : public Node, public Recycled<PointwiseNode> {
 public:
  struct Argument {
    SavedTensor tensor;  // saved when some derivative reads it
    ScalarValue scalar;
    bool is_scalar = false;
    DType dtype = DType::kNone;
    Dims sizes;
    int edge = -1;  // its place among the edges, -1 for scalars
  };
  Tensors apply(Tensors grads) override;
  void release() override;
  bool released() const override { return released_; }
  std::string name() const override { return node_name(def->name); }
  Checkpoint* missing() const override;

  const PointwiseDef* def = nullptr;
  DType compute = DType::kNone;
  absl::InlinedVector<Argument, 4> arguments;
  SavedTensor output;
  TensorSpec output_spec;

 private:
  bool released_ = false;
};

// A torch.autograd.Function's node: a client computes its gradients.
class ClientNode : public Node {
 public:
  Tensors apply(Tensors grads) override;  // an error: the run asks the client
  void release() override;
  bool released() const override { return released_; }
  std::string name() const override { return title; }
  Checkpoint* missing() const override;
  ClientNode* client() override { return this; }

  CodeRef code;
  std::string title;
  bool materialize = true;  // gradients that did not come are zeros
  absl::InlinedVector<TensorSpec, 4> input_specs;
  absl::InlinedVector<TensorSpec, 2> output_specs;
  std::vector<SavedTensor> saved;
  std::vector<bool> saved_none;  // the place was None

 private:
  bool released_ = false;
};

// The error of a backward through freed buffers.
absl::Status freed_error(const std::string& name);

// What a row's backward sees.
class Backward {
 public:
  Backward(OpNode& node, Tensors grads) : node(node), grads_(std::move(grads)) {
    results_.resize(node.edges.size());
  }

  // The gradient that came for output i; zeros when none did and `zeros` is set, else null.
  Tensor grad(int i = 0);
  bool has_grad(int i) const { return grads_[i].get() != nullptr; }
  // A saved tensor (poisoned with the reason when it cannot be had).
  Tensor input(int i);
  Tensor output(int i);
  const Attribute& attr(int i) const { return node.attributes[i]; }
  const TensorSpec& input_spec(int i) const { return node.input_specs[i]; }
  const TensorSpec& output_spec(int i) const { return node.output_specs[i]; }
  int inputs() const { return static_cast<int>(node.input_specs.size()); }
  // Whether input i wants a gradient.
  bool needs(int i) const { return node.edges[i].node.get() != nullptr; }
  void set(int i, Tensor grad) { results_[i] = std::move(grad); }
  // What was set for input i so far.
  const Tensor& result(int i) const { return results_[i]; }
  Tensors take() { return std::move(results_); }

  OpNode& node;

 private:
  Tensors grads_;
  Tensors results_;
};

// Whether backward may keep the tensor. Error: it was made in inference mode.
absl::Status check_saved(const Tensor& tensor);
// The edge that a gradient of this tensor flows along; null node when it needs none.
Edge gradient_edge(const Tensor& tensor);
// Makes `node` the tensor's maker.
void set_history(const Tensor& tensor, const Ref<Node>& node, uint32_t output_nr);
// The same after an in-place write; through a view it rewrites the base's history too.
void rebase_history(const Tensor& tensor, const Ref<Node>& node);
// The tensor's grad_fn, made anew for a view whose base was written in place since.
Ref<Node> grad_fn_of(const Tensor& tensor);
// Whether an in-place write is allowed. Errors: a leaf that requires grad, a view of one, overlap.
absl::Status check_in_place(const Tensor& tensor, const std::string& op);
// The same without overlap: a tensor may take another geometry in place whatever it has.
absl::Status check_in_place_history(const Tensor& tensor, const std::string& op);

}  // namespace gradwire
