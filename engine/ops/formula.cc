#include "engine/ops/formula.h"

#include <algorithm>
#include <numeric>

namespace gradwire {
namespace {

class FormulaNode : public Node {
 public:
  std::string text;
  std::vector<Formula> formulas;
  absl::InlinedVector<DType, 4> dtypes;

  std::string name() const override { return text; }
  Tensors apply(Tensors grads) override {
    Tensors results(edges.size());
    for (size_t i = 0; grads[0] && i < edges.size(); ++i) {
      if (edges[i].node) results[i] = cast(formulas[i](grads[0]), dtypes[i]);
    }
    return results;
  }
};

}  // namespace

Tensor with_gradient(const std::string& name, Tensor out, std::initializer_list<Tensor> inputs,
                     std::vector<Formula> formulas) {
  if (out->poison || !Slot::current().grad_enabled || !is_floating(out->dtype)) return out;
  bool wanted = false;
  for (const Tensor& t : inputs) wanted = wanted || t->requires_grad();
  if (!wanted) return out;
  auto* node = new FormulaNode();
  Ref<Node> ref(node);
  node->text = name;
  node->formulas = std::move(formulas);
  node->site = Slot::current().site;
  for (const Tensor& t : inputs) {
    node->dtypes.push_back(t->dtype);
    node->edges.push_back(is_floating(t->dtype) ? gradient_edge(t) : Edge{});
  }
  set_history(out, ref, 0);
  return out;
}

Tensor put_in(const std::string& name, const Tensor& base, const Tensor& src, const Formula& cut) {
  static const OpRef copy("copy_");
  Tensor out;
  Dims sizes;
  {
    GradMode off(false);
    out = clone(base);
    Tensor hole = cut(out);
    if (hole->poison) return hole;
    if (hole->sizes != src->sizes) {
      return poisoned(runtime_error("[", name,
                                    "] expected src to have a size equal to the slice of self. "
                                    "src size = ",
                                    shape_text(src->sizes),
                                    ", slice size = ", shape_text(hole->sizes)));
    }
    sizes = hole->sizes;
    Tensor written = call_in_place(copy, {hole, detached(src)});
    if (written->poison) return written;
  }
  return with_gradient(
      name, out, {base, src},
      {[name, sizes, cut](const Tensor& g) { return put_in(name, g, zeros(sizes, g->dtype), cut); },
       cut});
}

IntList layout_of(const Tensor& tensor) {
  IntList order(tensor->sizes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!is_dense(tensor->sizes, tensor->strides)) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return tensor->strides[a] > tensor->strides[b]; });
  return order;
}

absl::Status check_outputs(const Call& call, int64_t outputs) {
  constexpr int64_t kUnasked = 1 << 16;
  if (outputs <= std::max<int64_t>(call.wanted, kUnasked)) return absl::OkStatus();
  return runtime_error("[", call.op->name, "] would give ", outputs, " outputs, more than were ",
                       "asked for");
}

}  // namespace gradwire
