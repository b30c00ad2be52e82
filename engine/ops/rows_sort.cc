// Rows 570 to 589: order.
#include "engine/ops/call.h"

namespace gradwire {
namespace {

absl::Status infer_sort(const Call& call, TensorSpecs* out) {
  auto dim = wrap_dim(call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  out->push_back({call.in(0)->dtype, call.in(0)->sizes, {}});
  out->push_back({DType::kInt64, call.in(0)->sizes, {}});
  return absl::OkStatus();
}

absl::Status infer_topk(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  auto dim = wrap_dim(call.attr(1).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  int64_t k = call.attr(0).as_int();
  if (k < 0 || k > (x->rank() ? x->sizes[*dim] : 1)) {
    return runtime_error("selected index k out of range: ", k, " of ", x->text());
  }
  Dims sizes = x->sizes;
  if (!sizes.empty()) sizes[*dim] = k;
  out->push_back({x->dtype, sizes, {}});
  out->push_back({DType::kInt64, sizes, {}});
  return absl::OkStatus();
}

// The values' gradient goes back to where they came from.
void backward_order(Backward& b, int dim_slot) {
  static const OpRef scatter("scatter");
  const TensorSpec& whole = b.input_spec(0);
  if (whole.sizes.empty()) {
    b.set(0, b.grad(0));
    return;
  }
  b.set(0, call(scatter, {zeros(whole.sizes, whole.dtype), b.output(1), b.grad(0)},
                {b.attr(dim_slot)}));
}

}  // namespace

void add_sort_rows(Catalog& c) {
  auto& sort = c.add(570, OpKind::kKernel,
                     "sort(Tensor input, int dim=-1, bool descending=False, bool stable=False) -> "
                     "(Tensor values, Tensor indices)",
                     "input sorted along dim, and where each came from; nan counts as largest.");
  sort.infer = infer_sort;
  sort.lower = [](const Call& call, Task* task) {
    task->attributes[0] = Attribute(*wrap_dim(call.attr(0).as_int(), call.in(0)->rank()));
    return absl::OkStatus();
  };
  sort.backward = [](Backward& b) { backward_order(b, 0); };
  sort.saves_outputs = save(1);
  auto& topk = c.add(571, OpKind::kKernel,
                     "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True) "
                     "-> (Tensor values, Tensor indices)",
                     "The k largest (or smallest) along dim, and where they were.");
  topk.infer = infer_topk;
  topk.lower = [](const Call& call, Task* task) {
    task->attributes[1] = Attribute(*wrap_dim(call.attr(1).as_int(), call.in(0)->rank()));
    return absl::OkStatus();
  };
  topk.backward = [](Backward& b) { backward_order(b, 1); };
  topk.saves_outputs = save(1);
  sort.method = topk.method = true;
  auto& argsort = c.add(572, OpKind::kComposite,
                        "argsort(Tensor input, int dim=-1, bool descending=False, "
                        "bool stable=False) -> Tensor",
                        "The indices that sort input along dim.");
  argsort.compose = [](const Call& call) -> Tensors {
    static const OpRef op("sort");
    Tensors sorted = call_many(op, {call.in(0)}, call.attributes);
    return {sorted.size() > 1 ? sorted[1] : sorted[0]};
  };
  argsort.shape_rule = "same";
  argsort.type_rule = "int64";
  argsort.method = true;
}

}  // namespace gradwire
