// In-place writes and views in the graph.
#include "engine/ops/call.h"

namespace gradwire {
namespace {

static const OpRef kAsStrided("as_strided");

Tensor as_strided(const Tensor& t, const ViewSpec& spec) {
  return call(kAsStrided, {t},
              {IntList(spec.sizes.begin(), spec.sizes.end()),
               IntList(spec.strides.begin(), spec.strides.end()), spec.offset});
}

// Geometry of a view of `base`, moved onto a row-major tensor of the base's sizes. The base is
// dense or row-major; a base with gaps is walked in its own layout by its extent.
struct Footprint {
  Dims base_sizes;
  Dims base_strides;
  int64_t base_offset = 0;
  ViewSpec view;

  // A fresh block laid out as the base, with offset 0.
  Tensor fresh(DType dtype) const {
    Dims extent{extent_of(base_sizes, base_strides)};
    return zeros(extent, dtype);
  }
  ViewSpec base_spec() const { return {base_sizes, base_strides, 0}; }
  ViewSpec view_spec() const { return {view.sizes, view.strides, view.offset - base_offset}; }
};

Footprint footprint(const Tensor& base, const Tensor& view) {
  return {base->sizes, base->strides, base->offset, {view->sizes, view->strides, view->offset}};
}

// base.grad_fn after `view` of it was written in place by `inner`.
class CopySlices : public Node {
 public:
  Footprint place;
  Ref<Node> inner;  // its edge 0 is the view itself
  DType dtype = DType::kNone;

  std::string name() const override { return "CopySlices"; }
  void release() override { inner->release(); }
  bool released() const override { return inner->released(); }
  Checkpoint* missing() const override { return inner->missing(); }

  Tensors apply(Tensors grads) override {
    Tensors results(edges.size());
    if (!grads[0]) return results;
    // The gradient in the base's layout, with the view cut out and sent through `inner`.
    Tensor block = place.fresh(dtype);
    static const OpRef copy("copy_");
    Tensor whole = call_in_place(copy, {as_strided(block, place.base_spec()), grads[0]});
    if (whole->poison) return Tensors(edges.size(), whole);
    Tensor slice = clone(as_strided(block, place.view_spec()));
    Tensors inner_grads = inner->apply({slice});
    Tensor hole = as_strided(block, place.view_spec());
    Tensor written;
    if (!inner_grads.empty() && inner_grads[0]) {
      written = call_in_place(copy, {hole, inner_grads[0]});
    } else {
      static const OpRef mul_op("mul");
      written = call_in_place(copy, {hole, zeros(place.view.sizes, dtype)});
    }
    results[0] = written->poison ? written : clone(as_strided(block, place.base_spec()));
    for (size_t i = 1; i < results.size() && i < inner_grads.size(); ++i) {
      results[i] = inner_grads[i];
    }
    return results;
  }
};

// grad_fn of a view whose base was written in place after the view was made.
class ViewOfBase : public Node {
 public:
  Footprint place;
  DType dtype = DType::kNone;

  std::string name() const override { return "AsStridedBackward0"; }
  Tensors apply(Tensors grads) override {
    if (!grads[0]) return {nullptr};
    Tensor block = place.fresh(dtype);
    static const OpRef copy("copy_");
    Tensor written = call_in_place(copy, {as_strided(block, place.view_spec()), grads[0]});
    if (written->poison) return {written};
    return {clone(as_strided(block, place.base_spec()))};
  }
};

}  // namespace

Ref<Node> grad_fn_of(const Tensor& tensor) {
  if (!tensor->autograd) return nullptr;
  AutogradMeta& meta = *tensor->autograd;
  if (meta.base && meta.base->requires_grad() && !meta.base->is_leaf() &&
      meta.base_version != tensor->storage->version && tensor->storage == meta.base->storage) {
    auto* node = new ViewOfBase();
    Ref<Node> ref(node);
    node->place = footprint(meta.base, tensor);
    node->dtype = tensor->dtype;
    node->edges.push_back(gradient_edge(meta.base));
    node->site = Slot::current().site;
    meta.grad_fn = ref;
    meta.output_nr = 0;
    meta.base_version = tensor->storage->version;
  }
  return meta.grad_fn;
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor->autograd) return {};
  AutogradMeta& meta = *tensor->autograd;
  if (Ref<Node> node = grad_fn_of(tensor)) return {node, meta.output_nr};
  if (!meta.requires_grad) return {};
  if (!meta.accumulator) return {Ref<Node>(new AccumulateGrad(tensor)), 0};
  return {Ref<Node>(meta.accumulator), 0};
}

void set_history(const Tensor& tensor, const Ref<Node>& node, uint32_t output_nr) {
  AutogradMeta& meta = tensor->meta();
  meta.grad_fn = node;
  meta.output_nr = output_nr;
}

void rebase_history(const Tensor& tensor, const Ref<Node>& node) {
  AutogradMeta& meta = tensor->meta();
  if (!meta.base) {
    set_history(tensor, node, 0);
    return;
  }
  Tensor base = meta.base;
  auto* slices = new CopySlices();
  Ref<Node> ref(slices);
  slices->place = footprint(base, tensor);
  slices->dtype = base->dtype;
  slices->site = node->site;
  slices->edges = node->edges;
  // Input 0 of the inner op is the view: from here on it is the base that flows on.
  if (slices->edges.empty()) slices->edges.emplace_back();
  slices->edges[0] = gradient_edge(base);
  slices->inner = node;
  set_history(base, ref, 0);
  meta.base_version = tensor->storage->version - 1;  // the view's own history is made anew
  meta.grad_fn = nullptr;
  grad_fn_of(tensor);
}

absl::Status check_saved(const Tensor& tensor) {
  if (!tensor || !tensor->inference) return absl::OkStatus();
  return runtime_error(
      "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
      "inference mode in computation tracked by autograd. To work around this, you can make a "
      "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
      "`torch.inference_mode()`.");
}

absl::Status check_in_place(const Tensor& tensor, const std::string& op) {
  if (tensor->inference && !Slot::current().inference) {
    return runtime_error(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
        "clone to get a normal tensor before doing inplace update.See "
        "https://github.com/pytorch/rfcs/pull/17 for more details. [",
        op, "]");
  }
  if (may_overlap(tensor->sizes, tensor->strides)) {
    return runtime_error(
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation. [",
        op, " on ", tensor->text(), "]");
  }
  return check_in_place_history(tensor, op);
}

absl::Status check_in_place_history(const Tensor& tensor, const std::string& op) {
  if (!Slot::current().grad_enabled) return absl::OkStatus();
  if (tensor->requires_grad() && tensor->is_leaf() &&
      !(tensor->autograd && tensor->autograd->base)) {
    return runtime_error(
        "a leaf Variable that requires grad is being used in an in-place operation. [", op, " on ",
        tensor->text(), "]; write under no_grad(), or to a clone()");
  }
  if (tensor->autograd && tensor->autograd->base) {
    const Tensor& base = tensor->autograd->base;
    if (base->requires_grad() && base->is_leaf()) {
      return runtime_error(
          "a view of a leaf Variable that requires grad is being used in an in-place operation. [",
          op, " on ", tensor->text(), "]; write under no_grad(), or to a clone()");
    }
  }
  return absl::OkStatus();
}

}  // namespace gradwire
