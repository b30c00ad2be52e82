// Rows 300 to 349: tensors from nothing, copies and conversions.
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

absl::Status infer_sized(const Call& call, TensorSpecs* outputs) {
  const IntList& sizes = call.attr(0).as_ints();
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  outputs->push_back({call.attributes.back().as_dtype(), Dims(sizes.begin(), sizes.end()), {}});
  return absl::OkStatus();
}

absl::Status lower_fill(const Call& call, Task* task) {
  task->attributes = {call.attr(1)};
  return absl::OkStatus();
}

absl::Status infer_arange(const Call& call, TensorSpecs* outputs) {
  const Attribute& start = call.attr(0);
  const Attribute& end = call.attr(1);
  const Attribute& step = call.attr(2);
  if (step.as_double() == 0) return runtime_error("step must be nonzero");
  if ((step.as_double() > 0 && start.as_double() > end.as_double()) ||
      (step.as_double() < 0 && start.as_double() < end.as_double())) {
    return runtime_error("upper bound and lower bound inconsistent with step sign");
  }
  double count = std::ceil((end.as_double() - start.as_double()) / step.as_double());
  if (!(count < 1e15)) return runtime_error("unsupported range");
  Dims sizes{static_cast<int64_t>(count)};
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  outputs->push_back({call.attr(3).as_dtype(), sizes, {}});
  return absl::OkStatus();
}

absl::Status infer_linspace(const Call& call, TensorSpecs* outputs) {
  int64_t steps = call.attr(2).as_int();
  if (steps < 0) return runtime_error("number of steps must be non-negative");
  if (call.attr(3).as_dtype() == DType::kBool) {
    return not_implemented_error("\"linspace\" not implemented for 'Bool'");
  }
  outputs->push_back({call.attr(3).as_dtype(), {steps}, {}});
  return absl::OkStatus();
}

absl::Status infer_eye(const Call& call, TensorSpecs* outputs) {
  if (call.attr(0).as_ints().size() != 2) {
    return runtime_error("[eye] size must have 2 entries, got ",
                         shape_text(call.attr(0).as_ints()));
  }
  return infer_sized(call, outputs);
}

// A pointwise def of the identity, for copies and casts.
const PointwiseDef& identity() {
  static const PointwiseDef* def = [] {
    expr::Builder b;
    expr::Graph g = b.finish(b.operand(0));
    g.operands = 1;
    return new PointwiseDef("copy", g, TypeRule::kPromote);
  }();
  return *def;
}

// x copied with a dtype and strides of its own.
Tensor copied(const Tensor& x, DType dtype, const Dims& strides) {
  Slot& slot = Slot::current();
  Tensor out = new_tensor({dtype, x->sizes, strides});
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kPointwise;
  DType compute = x->dtype == DType::kBool ? DType::kUInt8 : x->dtype;
  expr::OperandType operand{false, x->dtype};
  thread_local absl::flat_hash_map<uint32_t, const expr::Program*> cache;
  auto [it, fresh] = cache.try_emplace(
      static_cast<uint32_t>(x->dtype) << 8 | static_cast<uint32_t>(dtype), nullptr);
  if (fresh) it->second = expr::instantiate(identity().graph, compute, {&operand, 1}, dtype);
  task->program = it->second;
  task->inputs.push_back(operand_of(x));
  task->outputs.push_back(operand_of(out));
  slot.push(std::move(task));
  return out;
}

class ConvertNode : public Node {
 public:
  DType dtype;
  Dims sizes;
  std::string name() const override { return "ToCopyBackward0"; }
  Tensors apply(Tensors grads) override {
    if (!grads[0]) return {nullptr};
    return {sum_to(cast(grads[0], dtype), sizes)};
  }
};

Tensor with_history(const Tensor& x, Tensor out) {
  if (!Slot::current().grad_enabled || !x->requires_grad() || !is_floating(out->dtype)) return out;
  auto* node = new ConvertNode();
  Ref<Node> ref(node);
  node->dtype = x->dtype;
  node->sizes = x->sizes;
  node->site = Slot::current().site;
  node->edges.push_back(gradient_edge(x));
  set_history(out, ref, 0);
  return out;
}

Tensors compose_to(const Call& call) {
  const Tensor& x = call.in(0);
  DType dtype = call.attr(0).as_dtype();
  if (dtype == x->dtype) return {x};
  return {with_history(x, copied(x, dtype, like_strides(x->sizes, x->strides)))};
}

Tensors compose_clone(const Call& call) {
  const Tensor& x = call.in(0);
  return {with_history(x, copied(x, x->dtype, like_strides(x->sizes, x->strides)))};
}

Tensors compose_contiguous(const Call& call) {
  const Tensor& x = call.in(0);
  if (x->contiguous()) return {x};
  return {with_history(x, copied(x, x->dtype, contiguous_strides(x->sizes)))};
}

// Writes src over self, converting and broadcasting.
Tensors compose_copy(const Call& call) {
  const Tensor& self = call.in(0);
  Tensor src = call.in(1);
  auto sizes = broadcast_shapes(self->sizes, src->sizes);
  if (!sizes.ok() || *sizes != self->sizes) {
    return {poisoned(runtime_error("The expanded size of the tensor ", self->text(),
                                   " must match the existing size of ", src->text(), " [copy_]"))};
  }
  absl::Status allowed = check_in_place(self, "copy_");
  if (!allowed.ok()) return {poisoned(allowed)};
  if (self->storage == src->storage) {
    if (self->offset == src->offset && self->strides == src->strides) return {self};
    src = clone(src);
  }
  Slot& slot = Slot::current();
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kPointwise;
  task->in_place = true;
  DType compute = src->dtype == DType::kBool ? DType::kUInt8 : src->dtype;
  expr::OperandType operand{false, src->dtype};
  task->program = expr::instantiate(identity().graph, compute, {&operand, 1}, self->dtype);
  task->inputs.push_back(operand_of(src));
  task->outputs.push_back(operand_of(self));
  ++self->storage->version;
  slot.push(std::move(task));
  bool grad = slot.grad_enabled && is_floating(self->dtype) &&
              (self->requires_grad() || src->requires_grad());
  if (grad) {
    class CopyNode : public Node {
     public:
      DType dtype;
      Dims sizes;
      TensorSpec self;
      std::string name() const override { return "CopyBackwards"; }
      Tensors apply(Tensors grads) override {
        Tensors out(2);
        // What was there before has no influence any more.
        if (grads[0] && edges[0].node) out[0] = zeros(self.sizes, self.dtype);
        if (grads[0] && edges[1].node) out[1] = sum_to(cast(grads[0], dtype), sizes);
        return out;
      }
    };
    auto* node = new CopyNode();
    Ref<Node> ref(node);
    node->dtype = src->dtype;
    node->sizes = src->sizes;
    node->site = slot.site;
    node->self = {self->dtype, self->sizes, {}};
    node->edges.push_back(gradient_edge(self));
    node->edges.push_back(is_floating(src->dtype) ? gradient_edge(src) : Edge{});
    rebase_history(self, ref);
  }
  return {self};
}

Tensors compose_detach(const Call& call) {
  return {detached(call.in(0))};
}

Tensors compose_fill(const Call& call) {
  static const OpRef copy("copy_");
  const Tensor& self = call.in(0);
  Tensor value = call.in(1) ? call.in(1) : full({}, call.attr(0).as_double(), self->dtype);
  if (call.in(1) && !call.in(1)->sizes.empty()) {
    return {
        poisoned(runtime_error("fill_ only supports 0-dimension value tensor but got tensor "
                               "with ",
                               call.in(1)->sizes.size(), " dimensions."))};
  }
  if (!call.in(1)) {
    static const OpRef full_op("full");
    value = gradwire::call(full_op, {}, {IntList{}, call.attr(0), self->dtype});
  }
  return {call_in_place(copy, {self, value})};
}

}  // namespace

void add_create_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, std::string_view shape_rule) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kKernel, signature, doc);
    row.infer = infer;
    row.shape_rule = std::string(shape_rule);
    row.type_rule = "given";
    return row;
  };
  auto& full_row = kernel(300, "full(int[] size, Scalar fill_value, *, dtype dtype) -> Tensor",
                          "A tensor of fill_value.", infer_sized, "size");
  full_row.out = true;
  full_row.kernel = "fill";
  full_row.lower = lower_fill;
  auto& arange = kernel(301,
                        "arange(Scalar start, Scalar end, Scalar step=1, *, dtype dtype) "
                        "-> Tensor",
                        "start, start + step, ... below end.", infer_arange, "");
  arange.out = true;
  arange.lower = [](const Call& call, Task* task) {
    task->attributes = {call.attr(0), call.attr(2)};
    return absl::OkStatus();
  };
  auto& linspace = kernel(302,
                          "linspace(Scalar start, Scalar end, int steps, *, dtype dtype) "
                          "-> Tensor",
                          "steps values from start to end, both included.", infer_linspace, "");
  linspace.out = true;
  linspace.lower = [](const Call& call, Task* task) {
    double start = call.attr(0).as_double(), end = call.attr(1).as_double();
    bool whole = !is_floating(call.attr(3).as_dtype());  // the ends are of the result's dtype
    task->attributes = {whole ? std::trunc(start) : start, whole ? std::trunc(end) : end};
    return absl::OkStatus();
  };
  auto& eye = kernel(303, "eye(int[] size, *, dtype dtype) -> Tensor", "Ones on the diagonal.",
                     infer_eye, "size");
  eye.out = true;
  eye.lower = [](const Call&, Task* task) {
    task->attributes = {};
    return absl::OkStatus();
  };
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn compose, std::string_view shape_rule,
                       std::string_view type_rule) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = compose;
    row.shape_rule = std::string(shape_rule);
    row.type_rule = std::string(type_rule);
    return row;
  };
  composite(310, "to(Tensor input, dtype dtype) -> Tensor",
            "input converted; input itself when "
            "it has that dtype.",
            compose_to, "same", "given");
  composite(311, "clone(Tensor input) -> Tensor", "A copy with memory of its own.", compose_clone,
            "same", "same")
      .method = true;
  composite(312, "contiguous(Tensor input) -> Tensor",
            "A row-major copy, or input when it is "
            "row-major.",
            compose_contiguous, "same", "same")
      .method = true;
  auto& copy = composite(313, "copy_(Tensor input, Tensor src) -> Tensor",
                         "Writes src over input, converting and broadcasting.", compose_copy,
                         "same", "same");
  copy.in_place = true;
  composite(314, "detach(Tensor input) -> Tensor", "The same memory without history.",
            compose_detach, "same", "same")
      .method = true;
  auto& fill = composite(315, "fill_(Tensor input, Operand value) -> Tensor",
                         "Sets every element to value.", compose_fill, "same", "same");
  fill.in_place = true;
}

}  // namespace gradwire
