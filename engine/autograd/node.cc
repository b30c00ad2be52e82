#include "engine/autograd/node.h"

#include <atomic>

#include "absl/strings/ascii.h"
#include "engine/autograd/checkpoint.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

std::atomic<uint64_t> next_sequence{1};

// Nodes whose last reference went while another node was being destroyed.
thread_local std::vector<Ref<Node>>* pending_release = nullptr;

}  // namespace

Node::Node() : sequence(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

Node::~Node() {
  // Move the edges out before they recurse; the outermost destructor drains the list.
  if (pending_release) {
    for (Edge& edge : edges) {
      if (edge.node) pending_release->push_back(std::move(edge.node));
    }
    return;
  }
  std::vector<Ref<Node>> list;
  pending_release = &list;
  for (Edge& edge : edges) {
    if (edge.node) list.push_back(std::move(edge.node));
  }
  while (!list.empty()) {
    Ref<Node> node = std::move(list.back());
    list.pop_back();
    node.reset();
  }
  pending_release = nullptr;
}

absl::Status freed_error(const std::string& name) {
  return runtime_error(
      "Trying to backward through the graph a second time (or directly access saved tensors after "
      "they have already been freed). Saved intermediate values of the graph are freed when you "
      "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
      "through the graph a second time or if you need to access saved tensors after calling "
      "backward. [",
      name, "]");
}

std::string node_name(std::string_view op) {
  std::string name;
  bool upper = true;
  for (char c : op.substr(op.rfind('.') + 1)) {
    if (c == '_') {
      upper = true;
      continue;
    }
    name.push_back(upper ? absl::ascii_toupper(c) : c);
    upper = false;
  }
  return name + "Backward0";
}

SavedTensor::SavedTensor() = default;
SavedTensor::~SavedTensor() = default;
SavedTensor::SavedTensor(const SavedTensor&) = default;
SavedTensor::SavedTensor(SavedTensor&&) noexcept = default;
SavedTensor& SavedTensor::operator=(SavedTensor other) noexcept {
  std::swap(tensor_, other.tensor_);
  std::swap(version_, other.version_);
  std::swap(own_output_, other.own_output_);
  std::swap(output_nr_, other.output_nr_);
  std::swap(checkpoint_, other.checkpoint_);
  std::swap(number_, other.number_);
  std::swap(maker_, other.maker_);
  return *this;
}

Checkpoint* SavedTensor::missing() const {
  return checkpoint_ && !checkpoint_->filled() ? checkpoint_.get() : nullptr;
}

SavedTensor::SavedTensor(const Tensor& tensor, const Node* maker) {
  version_ = tensor->storage ? tensor->storage->version : 0;
  bool leaf = tensor->is_leaf() && tensor->requires_grad();
  if (Slot& slot = Slot::current(); !slot.checkpoints.empty() && !leaf) {
    Ref<Checkpoint> checkpoint = slot.checkpoints.back().checkpoint;
    number_ = checkpoint->save(tensor);
    if (!slot.checkpoints.back().again) {
      checkpoint_ = checkpoint;
      own_output_ = maker != nullptr;
      output_nr_ = tensor->autograd ? tensor->autograd->output_nr : 0;
      if (!maker && tensor->requires_grad()) maker_ = grad_fn_of(tensor);
      return;
    }
  }
  if (maker) {
    own_output_ = true;
    output_nr_ = tensor->autograd ? tensor->autograd->output_nr : 0;
    tensor_ = detached(tensor);
    return;
  }
  if (tensor->is_leaf() && tensor->requires_grad()) {
    tensor_ = tensor;
    return;
  }
  tensor_ = detached(tensor);
  if (tensor->requires_grad()) {
    tensor_->meta().grad_fn = grad_fn_of(tensor);
    tensor_->meta().output_nr = tensor->autograd->output_nr;
  }
}

absl::StatusOr<Tensor> SavedTensor::get(const Ref<Node>& self) const {
  if (checkpoint_) {
    if (!checkpoint_->filled()) {
      return runtime_error("a checkpointed tensor of ", self->name(), " was not computed again");
    }
    Tensor again = detached(checkpoint_->get(number_));
    if (own_output_ || maker_) {
      again->meta().grad_fn = own_output_ ? self : maker_;
      again->meta().output_nr = output_nr_;
    }
    return again;
  }
  if (!tensor_) return freed_error(self->name());
  if (tensor_->storage && tensor_->storage->version != version_) {
    return runtime_error(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [",
        tensor_->text(), "], which is ",
        own_output_ ? absl::StrCat("output ", output_nr_, " of ", self->name())
                    : "an input of " + self->name(),
        self->site ? " at " + self->site->text : "", ", is at version ", tensor_->storage->version,
        "; expected version ", version_,
        " instead. Use an out-of-place operation, or clone() the tensor first.");
  }
  if (!own_output_) return tensor_;
  Tensor t = detached(tensor_);
  t->meta().grad_fn = self;
  t->meta().output_nr = output_nr_;
  return t;
}

AccumulateGrad::AccumulateGrad(const Tensor& leaf) : leaf_(leaf) {
  sequence = UINT64_MAX;  // leaves first: their gradients are final
  leaf_->meta().accumulator = this;
}

AccumulateGrad::~AccumulateGrad() {
  if (leaf_->autograd && leaf_->autograd->accumulator == this) {
    leaf_->autograd->accumulator = nullptr;
  }
}

Tensors AccumulateGrad::apply(Tensors grads) {
  if (grads[0]) accumulate_grad(leaf_, std::move(grads[0]));
  return {};
}

void accumulate_grad(const Tensor& tensor, Tensor fresh) {
  Tensor& grad = tensor->meta().grad;
  if (!fresh->poison) fresh = sum_to(cast(fresh, tensor->dtype), tensor->sizes);
  if (!grad || (grad->poison && !fresh->poison)) {
    // The gradient must not alias a tensor that others can write.
    bool shared = fresh->storage && (fresh->storage->use_count() > 2 || !fresh->contiguous());
    grad = Slot::current().grad_enabled || fresh->poison ? fresh
           : shared                                      ? clone(fresh)
                                                         : detached(fresh);
    return;
  }
  if (Slot::current().grad_enabled) {
    grad = add(grad, fresh);
  } else if (fresh->poison) {
    grad = fresh;
  } else {
    static const OpRef add_op("add");
    Tensor written = call_in_place(add_op, {grad, fresh}, {{}, {}, 1});
    if (written->poison) grad = written;
  }
}

namespace {

template <class List>
Checkpoint* missing_of(const List& saved) {
  for (const SavedTensor& each : saved) {
    if (Checkpoint* checkpoint = each.missing()) return checkpoint;
  }
  return nullptr;
}

}  // namespace

Checkpoint* OpNode::missing() const {
  Checkpoint* checkpoint = missing_of(inputs);
  return checkpoint ? checkpoint : missing_of(saved_outputs);
}

Checkpoint* PointwiseNode::missing() const {
  for (const Argument& argument : arguments) {
    if (Checkpoint* checkpoint = argument.tensor.missing()) return checkpoint;
  }
  return output.missing();
}

Checkpoint* ClientNode::missing() const {
  return missing_of(saved);
}

Tensors ClientNode::apply(Tensors) {
  return Tensors(edges.size(),
                 poisoned(not_implemented_error(
                     "[", title,
                     "] a Function that wrote into a view cannot be run: return a new "
                     "tensor, or clone() the view first")));
}

void ClientNode::release() {
  if (saved.empty()) return;
  saved.clear();
  released_ = true;
}

Tensors OpNode::apply(Tensors grads) {
  if (released_) return Tensors(edges.size(), poisoned(freed_error(name())));
  Backward backward(*this, std::move(grads));
  op->backward(backward);
  return backward.take();
}

void OpNode::release() {
  bool saves = false;
  for (auto& saved : inputs) saves = saves || saved.present();
  for (auto& saved : saved_outputs) saves = saves || saved.present();
  if (!saves) return;  // as torch: a node that saved nothing can run again
  inputs.clear();
  saved_outputs.clear();
  released_ = true;
}

namespace {

// A saved tensor that cannot be had ends the backward in which it is wanted.
Tensor saved_failed(const absl::Status& status) {
  Tensor t = poisoned(status);
  t->poison->reported = true;  // the run tells
  Slot::current().saved_failure = t->poison;
  return t;
}

}  // namespace

Tensor Backward::grad(int i) {
  if (grads_[i]) return grads_[i];
  const TensorSpec& spec = node.output_specs[i];
  return zeros(spec.sizes, spec.dtype);
}

Tensor Backward::input(int i) {
  if (node.inputs[i].present() || node.released()) {
    auto t = node.inputs[i].get(Ref<Node>(&node));
    return t.ok() ? *t : saved_failed(t.status());
  }
  return nullptr;  // an absent optional tensor
}

Tensor Backward::output(int i) {
  auto t = node.saved_outputs[i].get(Ref<Node>(&node));
  return t.ok() ? *t : saved_failed(t.status());
}

void PointwiseNode::release() {
  bool saves = output.present();
  for (auto& argument : arguments) saves = saves || argument.tensor.present();
  if (!saves) return;
  for (auto& argument : arguments) argument.tensor = SavedTensor();
  output = SavedTensor();
  released_ = true;
}

Tensors PointwiseNode::apply(Tensors grads) {
  if (released_) return Tensors(edges.size(), poisoned(freed_error(name())));
  Tensors results(edges.size());
  if (!grads[0]) return results;
  if (grads[0]->poison) return Tensors(edges.size(), grads[0]);
  Ref<Node> self(this);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& wanted = arguments[i];
    if (wanted.is_scalar || !edges[wanted.edge].node) continue;
    const PointwiseDef& derivative = def->derivative(static_cast<int>(i));
    absl::InlinedVector<PointwiseOperand, 4> operands;
    absl::Status status;
    for (size_t k = 0; k < arguments.size() + 2; ++k) {
      PointwiseOperand operand;
      if (k == arguments.size() + 1) {
        operand.tensor = grads[0];
      } else if (derivative.reads[k]) {
        if (k < arguments.size() && arguments[k].is_scalar) {
          operand.scalar = arguments[k].scalar;
        } else {
          auto saved = (k < arguments.size() ? arguments[k].tensor : output).get(self);
          if (!saved.ok()) {
            status = saved.status();
            break;
          }
          operand.tensor = *saved;
        }
      }
      operands.push_back(std::move(operand));
    }
    if (!status.ok()) {
      results[wanted.edge] = saved_failed(status);
      continue;
    }
    Tensor grad = invoke_pointwise(derivative, std::move(operands), {compute, wanted.dtype});
    results[wanted.edge] = sum_to(grad, wanted.sizes);
  }
  return results;
}

}  // namespace gradwire
