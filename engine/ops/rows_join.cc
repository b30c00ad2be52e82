// Rows 373 to 419: joining.
#include "engine/core/promotion.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

absl::Status check_cat(const Call& call, int64_t* dim, DType* dtype, Dims* sizes) {
  if (call.inputs.empty()) return runtime_error("expected a non-empty list of Tensors");
  const Tensor* model = nullptr;
  *dtype = DType::kNone;
  PromotionState state;
  for (const Tensor& t : call.inputs) {
    state.add_tensor(t->dtype, t->sizes.empty());
    if (t->sizes.empty()) return runtime_error("zero-dimensional tensor cannot be concatenated");
    bool legacy_empty = t->sizes.size() == 1 && t->sizes[0] == 0;
    if (!legacy_empty && !model) model = &t;
  }
  *dtype = state.result();
  if (!model) model = &call.inputs[0];
  auto wrapped = dim_of(call, call.attr(0).as_int(), (*model)->rank());
  if (!wrapped.ok()) return wrapped.status();
  *dim = *wrapped;
  *sizes = (*model)->sizes;
  (*sizes)[*dim] = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (t->sizes.size() == 1 && t->sizes[0] == 0 && (*model)->rank() != 1) continue;
    if (t->rank() != (*model)->rank()) {
      return runtime_error("Tensors must have same number of dimensions: got ", (*model)->rank(),
                           " and ", t->rank());
    }
    for (int k = 0; k < t->rank(); ++k) {
      if (k != *dim && t->sizes[k] != (*sizes)[k]) {
        return runtime_error("Sizes of tensors must match except in dimension ", *dim,
                             ". Expected size ", (*sizes)[k], " but got size ", t->sizes[k],
                             " for tensor number ", i, " in the list.");
      }
    }
    (*sizes)[*dim] += t->sizes[*dim];
  }
  auto numel = checked_numel(*sizes);
  return numel.ok() ? absl::OkStatus() : numel.status();
}

// The pieces are copied into their places by pointwise tasks; the node hands each its slice back.
Tensors compose_cat(const Call& call) {
  int64_t dim = 0;
  DType dtype;
  Dims sizes;
  absl::Status status = check_cat(call, &dim, &dtype, &sizes);
  if (!status.ok()) return {poisoned(status)};
  static const OpRef narrow("narrow"), copy("copy_");
  class CatNode : public Node {
   public:
    int64_t dim;
    std::vector<TensorSpec> parts;
    std::string name() const override { return "CatBackward0"; }
    Tensors apply(Tensors grads) override {
      Tensors out(edges.size());
      int64_t at = 0;
      static const OpRef narrow_op("narrow");
      for (size_t i = 0; i < parts.size(); ++i) {
        if (static_cast<int64_t>(parts[i].sizes.size()) <= dim ||
            (parts[i].sizes.size() == 1 && parts[i].sizes[0] == 0)) {
          if (edges[i].node) out[i] = zeros(parts[i].sizes, parts[i].dtype);
          continue;
        }
        int64_t length = parts[i].sizes[dim];
        if (grads[0] && edges[i].node) {
          out[i] = cast(gradwire::call(narrow_op, {grads[0]}, {dim, at, length}), parts[i].dtype);
        }
        at += length;
      }
      return out;
    }
  };
  bool grad = false;
  Ref<Node> ref;
  if (Slot::current().grad_enabled) {
    for (const Tensor& t : call.inputs) grad = grad || t->requires_grad();
  }
  if (grad && is_floating(dtype)) {
    auto* node = new CatNode();
    ref = Ref<Node>(node);
    node->dim = dim;
    node->site = Slot::current().site;
    for (const Tensor& t : call.inputs) {
      node->parts.push_back({t->dtype, t->sizes, {}});
      node->edges.push_back(is_floating(t->dtype) ? gradient_edge(t) : Edge{});
    }
  }
  Tensor out = new_tensor({dtype, sizes, {}});
  {
    GradMode off(false);
    int64_t at = 0;
    for (const Tensor& t : call.inputs) {
      if (t->rank() != static_cast<int>(sizes.size())) continue;
      Tensor place = gradwire::call(narrow, {out}, {dim, at, t->sizes[dim]});
      at += t->sizes[dim];
      Tensor written = call_in_place(copy, {place, detached(t)});
      if (written->poison) return {written};
    }
  }
  if (ref) set_history(out, ref, 0);
  return {out};
}

Tensors compose_stack(const Call& call) {
  static const OpRef cat("cat");
  if (call.inputs.empty()) {
    return {poisoned(runtime_error("stack expects a non-empty TensorList"))};
  }
  auto dim = dim_of(call, call.attr(0).as_int(), call.in(0)->rank() + 1);
  if (!dim.ok()) return {poisoned(dim.status())};
  Tensors parts;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (t->sizes != call.in(0)->sizes) {
      return {poisoned(runtime_error("stack expects each tensor to be equal size, but got ",
                                     shape_text(call.in(0)->sizes), " at entry 0 and ",
                                     shape_text(t->sizes), " at entry ", i))};
    }
    parts.push_back(unsqueeze(t, *dim));
  }
  return call_list(cat, std::move(parts), {*dim});
}

}  // namespace

void add_join_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view shape_rule,
                       std::string_view type_rule) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = fn;
    row.shape_rule = std::string(shape_rule);
    row.type_rule = std::string(type_rule);
    return row;
  };
  composite(373, "cat(Tensor[] tensors, int dim=0) -> Tensor", "The tensors one after another.",
            compose_cat, "cat", "promote")
      .out = true;
  composite(374, "stack(Tensor[] tensors, int dim=0) -> Tensor",
            "The tensors along a new dimension.", compose_stack, "stack", "promote")
      .out = true;
}

}  // namespace gradwire
