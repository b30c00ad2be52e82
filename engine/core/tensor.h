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

class Node;
class TensorImpl;

using Tensor = Ref<TensorImpl>;
using Tensors = absl::InlinedVector<Tensor, 4>;

// Autograd state of a tensor that takes part in a graph; absent otherwise.
struct AutogradMeta : Recycled<AutogradMeta> {
  AutogradMeta();
  ~AutogradMeta();

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

  bool requires_grad() const { return autograd && (autograd->requires_grad || autograd->grad_fn); }
  bool is_leaf() const { return !autograd || !autograd->grad_fn; }
  AutogradMeta& meta() {
    if (!autograd) autograd = std::make_unique<AutogradMeta>();
    return *autograd;
  }
  std::string text() const;  // "float32[2, 3]", for messages
};

}  // namespace gradwire
