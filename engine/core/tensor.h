// A tensor as dispatch sees it: geometry over a storage, and its place in the autograd graph.
// Belongs to one session and is used on that session's strand only; tasks hold Operands.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/autograd/client_code.h"
#include "engine/core/error_record.h"
#include "engine/core/recycled.h"
#include "engine/core/shape.h"
#include "engine/core/storage.h"

namespace gradwire {

class AutogradMetas;
class Node;
class TensorImpl;

using Tensor = Ref<TensorImpl>;
using Tensors = absl::InlinedVector<Tensor, 4>;

// Autograd state of a tensor that takes part in a graph; absent otherwise.
struct AutogradMeta : Recycled<AutogradMeta> {
  explicit AutogradMeta(AutogradMetas& all);
  // Frees long chains of gradients without recursion.
  ~AutogradMeta();
  AutogradMeta(const AutogradMeta&) = delete;
  AutogradMeta& operator=(const AutogradMeta&) = delete;

  bool requires_grad = false;        // of a leaf; a tensor with grad_fn always requires grad
  Ref<Node> grad_fn;                 // the node that made it; null for a leaf
  uint32_t output_nr = 0;            // which of the node's outputs it is
  Tensor grad;                       // accumulated gradient of a leaf
  std::shared_ptr<Tensor> retained;  // gradient of a non-leaf that asked to keep it
  std::vector<Hook> hooks;           // of a leaf; those of others are their node's
  Node* accumulator = nullptr;       // weak: the leaf's AccumulateGrad node, if one is alive

  // A differentiable view knows its base, for in-place writes through it.
  Tensor base;
  uint32_t base_version = 0;  // the storage's version when grad_fn was made (views only)

 private:
  friend class AutogradMetas;
  void unlink();
  AutogradMeta* next_ = nullptr;
  AutogradMeta** link_ = nullptr;  // what points to this one; null: in no list
};

// The autograd states of a session. Tensors can keep each other alive: a gradient with a graph
// leads back to its leaf, and a client may assign a tensor as its own gradient. As in torch, such
// tensors stay when they are released; the end of the session frees them. On the strand only.
class AutogradMetas {
 public:
  AutogradMetas() = default;
  ~AutogradMetas() { clear(); }
  AutogradMetas(const AutogradMetas&) = delete;
  AutogradMetas& operator=(const AutogradMetas&) = delete;

  // Cuts every tensor of the session off from its graph, gradient and base.
  void clear();

 private:
  friend struct AutogradMeta;
  AutogradMeta* first_ = nullptr;
};

class TensorImpl : public RefCounted, public Recycled<TensorImpl> {
 public:
  TensorImpl();
  ~TensorImpl() override;

  DType dtype = DType::kNone;
  Dims sizes;
  Dims strides;
  int64_t offset = 0;  // elements into the storage
  StorageRef storage;
  bool inference = false;  // made under inference_mode: no version counter checks, no autograd

  // Set: the op that should have made this tensor failed before it had a shape. Nothing above
  // holds then.
  ErrorRef poison;

  std::unique_ptr<AutogradMeta> autograd;

  int64_t numel() const { return numel_of(sizes); }
  int rank() const { return static_cast<int>(sizes.size()); }
  bool contiguous() const { return is_contiguous(sizes, strides); }

  // A view of what has got a history since it was made has one, too (see grad_fn_of).
  bool requires_grad() const {
    if (!autograd) return false;
    const AutogradMeta& meta = *autograd;
    return meta.requires_grad || meta.grad_fn ||
           (meta.base && meta.base_version != storage->version && meta.base->storage == storage &&
            meta.base->autograd && meta.base->autograd->grad_fn);
  }
  bool is_leaf() const { return !autograd || !autograd->grad_fn; }
  // Makes it when there is none, for the session of the command in hand.
  AutogradMeta& meta() {
    if (!autograd) make_meta();
    return *autograd;
  }
  std::string text() const;  // "float32[2, 3]", for messages

 private:
  void make_meta();
};

}  // namespace gradwire
