#include "engine/ops/call.h"

#include "engine/core/promotion.h"
#include "kernels/random_counters.h"

namespace gradwire {
namespace {

// The outputs of a call that failed: as many as someone will look at.
Tensors failed(const Call& call, ErrorRef error) {
  int n = call.op->signature.fixed_outputs;
  if (call.wanted > n) n = call.wanted;
  if (n < 1) n = 1;
  return Tensors(n, poisoned(std::move(error)));
}

Tensors failed(const Call& call, const absl::Status& status) {
  std::string text(status.message());
  if (text.find('[') != 0) text = absl::StrCat("[", call.op->name, "] ", text);
  return failed(call, Slot::current().fail(make_error(error_kind(status), text)));
}

bool any_requires_grad(const Call& call) {
  if (!Slot::current().grad_enabled) return false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (!t || !t->requires_grad()) continue;
    bool excluded = false;
    for (int k : call.op->no_grad_inputs) excluded = excluded || k == static_cast<int>(i);
    if (!excluded) return true;
  }
  return false;
}

ScalarValue scalar_of(const Attribute& a) {
  ScalarValue v;
  if (a.is_bool()) {
    v.kind = ScalarValue::Kind::kBool;
    v.i = a.as_int();
  } else if (a.is_int()) {
    v.kind = ScalarValue::Kind::kInt;
    v.i = a.as_int();
  } else {
    v.f = a.as_double();
  }
  return v;
}

Tensors run_pointwise(const Call& call) {
  const OpDef& op = *call.op;
  absl::InlinedVector<PointwiseOperand, 4> operands;
  size_t next = 0;
  size_t k = 0;
  for (int index : op.operand_params) {
    while (static_cast<int>(k) < index) {
      if (op.signature.params[k].takes_ids()) ++next;
      ++k;
    }
    const Param& p = op.signature.params[k++];
    PointwiseOperand operand;
    if (p.takes_ids()) operand.tensor = call.inputs[next++];
    if (!operand.tensor) {
      const Attribute& a = call.attributes[p.attribute];
      if (!a.is_number()) {
        return failed(call, type_error("argument '", p.name, "' must be a Tensor or a number"));
      }
      operand.scalar = scalar_of(a);
      if (op.pointwise->rule == TypeRule::kSame && call.inputs[0] &&
          call.inputs[0]->dtype == DType::kBool) {
        operand.scalar = scalar_of(a.as_double() != 0);  // 0.5 is true
      }
      operand.weak = p.type == ParamType::kScalar;
    }
    operands.push_back(std::move(operand));
  }
  const Tensor self = call.form == Form::kInPlace ? call.inputs[0] : nullptr;
  return {invoke_pointwise(*op.pointwise, std::move(operands), {}, self)};
}

// A node for a row with a backward of its own.
Ref<Node> make_node(const Call& call) {
  auto* node = new OpNode();
  Ref<Node> ref(node);
  node->op = call.op;
  node->attributes = call.attributes;
  node->list_sizes = call.list_sizes;
  node->site = Slot::current().site;
  if (call.op->kind == OpKind::kView) {
    const Tensor& x = call.in(0);
    node->layout = {x->sizes, x->strides, x->offset};
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    bool excluded = false;
    for (int k : call.op->no_grad_inputs) excluded = excluded || k == static_cast<int>(i);
    bool wants = t && t->requires_grad() && is_floating(t->dtype) && !excluded;
    node->edges.push_back(wants ? gradient_edge(t) : Edge{});
    node->input_specs.push_back(t ? TensorSpec{t->dtype, t->sizes, {}} : TensorSpec{});
    uint32_t bit = i < 31 ? i : 31;
    bool saved = t && (call.op->saves_inputs >> bit & 1);
    node->inputs.push_back(saved ? SavedTensor(t, nullptr) : SavedTensor());
  }
  return ref;
}

// Stands where torch has no derivative either: an error beats a gradient that is silently zero.
class MissingNode : public Node {
 public:
  explicit MissingNode(std::string name) : name_(std::move(name)) { site = Slot::current().site; }
  std::string name() const override { return node_name(name_); }
  Tensors apply(Tensors) override {
    ErrorRef error =
        Slot::current().fail(runtime_error("derivative for ", name_, " is not implemented"));
    return Tensors(edges.size(), poisoned(std::move(error)));
  }

 private:
  std::string name_;
};

void mark_missing(const Call& call, const Tensors& outputs) {
  Ref<Node> node = missing_derivative(call.op->name);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    bool wants = t && t->requires_grad() && is_floating(t->dtype);
    if (wants) node->edges.push_back(gradient_edge(t));
  }
  node->outputs = static_cast<uint32_t>(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_floating(outputs[i]->dtype)) set_history(outputs[i], node, static_cast<uint32_t>(i));
  }
}

void finish_node(const Call& call, const Ref<Node>& ref, const Tensors& outputs) {
  auto* node = static_cast<OpNode*>(ref.get());
  node->outputs = static_cast<uint32_t>(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    node->output_specs.push_back({outputs[i]->dtype, outputs[i]->sizes, {}});
    if (is_floating(outputs[i]->dtype)) set_history(outputs[i], ref, static_cast<uint32_t>(i));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool saved = call.op->saves_outputs >> i & 1;
    node->saved_outputs.push_back(saved ? SavedTensor(outputs[i], node) : SavedTensor());
  }
}

// The last barrier against a view rule that trusted its arguments: every element of a view lies
// in its storage. Offsets are never negative, nor are strides. Without elements any offset will do.
absl::Status check_inside(const ViewSpec& spec, const Tensor& base) {
  auto numel = checked_numel(spec.sizes);
  if (!numel.ok()) return numel.status();
  bool inside = spec.sizes.size() == spec.strides.size() && spec.offset >= 0;
  __int128 last = spec.offset;
  for (size_t i = 0; inside && i < spec.sizes.size(); ++i) {
    inside = spec.sizes[i] <= 1 || spec.strides[i] >= 0;
    if (*numel) last += static_cast<__int128>(spec.sizes[i] - 1) * spec.strides[i];
  }
  __int128 reach = (last + 1) * static_cast<__int128>(dtype_size(base->dtype));
  if (inside && (*numel == 0 || reach <= static_cast<__int128>(base->storage->bytes))) {
    return absl::OkStatus();
  }
  return runtime_error("a view of sizes ", shape_text(spec.sizes), ", strides ",
                       shape_text(spec.strides), " and storage offset ", spec.offset,
                       " is out of bounds for storage of ", base->storage->bytes, " bytes");
}

Tensors run_view(const Call& call) {
  std::vector<ViewSpec> specs;
  absl::Status status = call.op->view(call, &specs);
  if (!status.ok()) return failed(call, status);
  const Tensor& base = call.in(0);
  for (ViewSpec& spec : specs) {
    status = check_inside(spec, base);
    if (!status.ok()) return failed(call, status);
    if (numel_of(spec.sizes) == 0) spec.offset = base->offset;  // so that offsets never add up
  }
  Tensors views;
  for (const ViewSpec& spec : specs) views.push_back(new_view(base, spec));
  // Every view knows its base, so that in-place writes through it reach the base's history.
  const Tensor& root = base->autograd && base->autograd->base ? base->autograd->base : base;
  bool grad = any_requires_grad(call);
  if (grad || (root->requires_grad() && !base->inference) ||
      (Slot::current().grad_enabled && is_floating(base->dtype))) {
    for (Tensor& v : views) {
      v->meta().base = root;
      v->meta().base_version = base->storage->version;
    }
  }
  if (grad && call.op->backward) {
    Ref<Node> node = make_node(call);
    finish_node(call, node, views);
  }
  return views;
}

// x.t_(), x.squeeze_(), ...: the tensor itself takes the view's geometry. No element changes, yet
// the version does, as torch's: whoever saved the tensor must not find it turned.
Tensors run_view_in_place(const Call& call) {
  const Tensor& self = call.in(0);
  std::vector<ViewSpec> specs;
  absl::Status status = call.op->view(call, &specs);
  if (status.ok() && specs.size() != 1) status = internal_error("an in-place form of many views");
  if (status.ok()) status = check_inside(specs[0], self);
  if (status.ok()) status = check_in_place_history(self, call.op->name + "_");
  if (!status.ok()) return failed(call, status);
  Ref<Node> node;
  if (any_requires_grad(call) && call.op->backward) node = make_node(call);
  self->sizes = specs[0].sizes;
  self->strides = specs[0].strides;
  if (numel_of(self->sizes) != 0) self->offset = specs[0].offset;
  ++self->storage->version;
  if (node) {
    finish_node(call, node, {self});
    if (self->autograd->base) self->autograd->base_version = self->storage->version;
  }
  return {self};
}

Tensors run_kernel(const Call& call) {
  Slot& slot = Slot::current();
  const OpDef& op = *call.op;
  KernelId kernel = op.kernel.empty() ? 0 : slot.session.worker.backend().find_kernel(op.kernel);
  if (!kernel && op.compose) return op.compose(call);
  if (!kernel) {
    return failed(call,
                  not_implemented_error("no kernel for device ", slot.session.worker.device()));
  }
  TensorSpecs specs;
  absl::Status status = op.infer(call, &specs);
  if (!status.ok()) return failed(call, status);
  for (const TensorSpec& spec : specs) {
    auto numel = checked_numel(spec.sizes);
    if (!numel.ok()) return failed(call, numel.status());
    if (!is_valid(spec.dtype)) return failed(call, type_error("not a dtype of a tensor"));
  }
  bool wanted = any_requires_grad(call);
  bool grad = op.backward && wanted;
  bool missing = !op.backward && !op.random && wanted;
  Ref<Node> node;
  Tensors outputs;
  bool in_place = call.form == Form::kInPlace;
  if (in_place) {
    absl::Status allowed = check_in_place(call.in(0), op.name + "_");
    if (!allowed.ok()) return failed(call, allowed);
  }
  for (size_t i = 0; grad && i < call.inputs.size(); ++i) {
    if (!(op.saves_inputs >> (i < 31 ? i : 31) & 1)) continue;
    status = check_saved(call.inputs[i]);
    if (!status.ok()) return failed(call, status);
  }
  auto task = std::make_unique<Task>();
  task->op = call.op;
  task->kernel = kernel;
  task->checks = op.checks;
  task->commits = op.commits;
  for (const Tensor& t : call.inputs) task->inputs.push_back(t ? operand_of(t) : Operand{});
  task->attributes = call.attributes;
  if (grad) node = make_node(call);
  if (op.writes_first) {
    Tensor target = call.in(0);
    if (!in_place) {
      GradMode off(false);
      target = clone(target);
    }
    task->in_place = in_place;
    task->inputs[0] = operand_of(target);
    outputs.push_back(target);
    ++target->storage->version;
  } else {
    for (const TensorSpec& spec : specs) outputs.push_back(new_tensor(spec));
  }
  for (const Tensor& t : outputs) task->outputs.push_back(operand_of(t));
  if (op.random) {
    task->seed = slot.generator.seed;
    task->offset = slot.generator.reserve(
        philox_counters(op.kernel, outputs.empty() ? 0 : outputs[0]->numel()));
  }
  if (op.lower) {
    status = op.lower(call, task.get());
    if (!status.ok()) return failed(call, status);
  }
  slot.push(std::move(task));
  if (grad) {
    if (in_place) {
      auto* raw = static_cast<OpNode*>(node.get());
      raw->output_specs.push_back({outputs[0]->dtype, outputs[0]->sizes, {}});
      rebase_history(outputs[0], node);
      raw->saved_outputs.push_back(op.saves_outputs & 1 ? SavedTensor(outputs[0], raw)
                                                        : SavedTensor());
    } else {
      finish_node(call, node, outputs);
    }
  }
  if (missing && !in_place) mark_missing(call, outputs);
  return outputs;
}

// A composite with a stated gradient: what it is made of leaves no history.
Tensors run_stated(const Call& call) {
  Ref<Node> node = make_node(call);
  Tensors outputs;
  {
    GradMode off(false);
    outputs = call.op->compose(call);
  }
  for (const Tensor& t : outputs) {
    if (t->poison) return outputs;
  }
  finish_node(call, node, outputs);
  return outputs;
}

Tensors run_plain(const Call& call) {
  switch (call.op->kind) {
    case OpKind::kPointwise:
      return run_pointwise(call);
    case OpKind::kView:
      return run_view(call);
    case OpKind::kComposite:
      if (call.op->backward && any_requires_grad(call)) return run_stated(call);
      return call.op->compose(call);
    case OpKind::kKernel:
      return run_kernel(call);
    case OpKind::kCommand:
      break;
  }
  return failed(call, internal_error("a command inside the engine"));
}

void write_out(const Call& call, const Tensors& results, Tensors* written) {
  static const OpRef copy("copy_");
  for (size_t i = 0; i < call.outs.size() && i < results.size(); ++i) {
    Tensor out = call.outs[i];
    const Tensor& result = results[i];
    if (result->poison || out->poison) {
      written->push_back(poisoned(result->poison ? result->poison : out->poison));
      continue;
    }
    if (out->requires_grad()) {
      written->push_back(poisoned(runtime_error(
          "[", call.op->name, "] functions with out=... arguments don't support automatic ",
          "differentiation, but one of the arguments requires grad.")));
      continue;
    }
    if (call.op->type_rule == "same" && call.op->kind != OpKind::kPointwise &&
        out->dtype != result->dtype) {
      written->push_back(poisoned(runtime_error(
          "Expected out tensor to have dtype ", std::string(dtype_name(result->dtype)),
          ", but got ", std::string(dtype_name(out->dtype)), " instead [", call.op->name, "]")));
      continue;
    }
    if (!can_cast(result->dtype, out->dtype)) {
      written->push_back(
          poisoned(runtime_error("result type ", std::string(dtype_name(result->dtype)),
                                 " can't be cast to the desired output type ",
                                 std::string(dtype_name(out->dtype)), " [", call.op->name, "]")));
      continue;
    }
    if (out->sizes != result->sizes) {
      // The out tensor takes the result's shape, with memory of its own.
      Tensor fresh = new_tensor({out->dtype, result->sizes, {}});
      out->sizes = fresh->sizes;
      out->strides = fresh->strides;
      out->offset = 0;
      out->storage = fresh->storage;
    }
    GradMode off(false);
    written->push_back(call_in_place(copy, {out, result}));
  }
}

}  // namespace

Tensors invoke(Call call) {
  for (const Tensor& t : call.inputs) {
    if (t && t->poison) return failed(call, t->poison);
  }
  if (call.form == Form::kInPlace && (call.inputs.empty() || !call.inputs[0])) {
    return failed(call, type_error("an in-place op needs a tensor to write"));
  }
  if (call.op->check) {
    absl::Status status = call.op->check(call);
    if (!status.ok()) return failed(call, status);
  }
  if (call.form == Form::kOut) {
    Call plain = call;
    plain.form = Form::kPlain;
    plain.outs.clear();
    Tensors written;
    write_out(call, run_plain(plain), &written);
    return written;
  }
  if (call.form == Form::kInPlace && call.op->kind == OpKind::kView) {
    return run_view_in_place(call);
  }
  bool direct =
      call.op->kind == OpKind::kPointwise || call.op->writes_first ||
      (call.op->kind == OpKind::kComposite && call.op->in_place && call.op->name.back() == '_');
  if (call.form == Form::kInPlace && !direct) {
    // No in-place kernel: the result is computed aside and copied over.
    static const OpRef copy("copy_");
    Tensor self = call.inputs[0];
    absl::Status allowed = check_in_place(self, call.op->name + "_");
    if (!allowed.ok()) return failed(call, allowed);
    // What backward saves of the input must survive the write.
    bool saves = call.op->kind == OpKind::kComposite || (call.op->saves_inputs & 1);
    if (saves && any_requires_grad(call)) call.inputs[0] = clone(self);
    call.form = Form::kPlain;
    Tensors results = run_plain(call);
    if (results[0]->poison) return results;
    if (results[0]->sizes != self->sizes) {
      return failed(
          call, runtime_error("output with shape ", shape_text(self->sizes),
                              " doesn't match the result's shape ", shape_text(results[0]->sizes)));
    }
    if (!can_cast(results[0]->dtype, self->dtype)) {
      return failed(call, runtime_error("result type ", std::string(dtype_name(results[0]->dtype)),
                                        " can't be cast to the desired output type ",
                                        std::string(dtype_name(self->dtype))));
    }
    return {call_in_place(copy, {self, results[0]})};
  }
  return run_plain(call);
}

namespace {

Call make_call(const OpRef& ref, Tensors inputs, AttributeList attributes) {
  Call c;
  c.op = ref.get();
  const Signature& signature = c.op->signature;
  if (signature.lists == 1) {
    c.list_sizes.push_back(static_cast<int>(inputs.size()) - signature.single_ids);
  }
  c.inputs = std::move(inputs);
  size_t given = attributes.size();
  attributes.resize(signature.attributes);
  for (const Param& p : signature.params) {
    if (p.attribute >= static_cast<int>(given)) attributes[p.attribute] = p.default_value;
  }
  c.attributes = std::move(attributes);
  return c;
}

}  // namespace

Tensors call_many(const OpRef& op, std::initializer_list<Tensor> inputs, AttributeList attributes) {
  return invoke(make_call(op, Tensors(inputs.begin(), inputs.end()), std::move(attributes)));
}

Tensor call(const OpRef& op, std::initializer_list<Tensor> inputs, AttributeList attributes) {
  return call_many(op, inputs, std::move(attributes))[0];
}

Ref<Node> missing_derivative(const std::string& name) {
  return Ref<Node>(new MissingNode(name));
}

Tensor with_number(const OpRef& op, const Tensor& a, Attribute number, Attribute alpha) {
  // Rows whose first operand must be a tensor have no attribute for it.
  AttributeList attributes(op.get()->signature.params[1].attribute);
  attributes.push_back(std::move(number));
  if (!alpha.none()) attributes.push_back(std::move(alpha));
  return call(op, {a, nullptr}, std::move(attributes));
}

Tensors call_list(const OpRef& op, Tensors inputs, AttributeList attributes) {
  return invoke(make_call(op, std::move(inputs), std::move(attributes)));
}

Tensor call_in_place(const OpRef& op, std::initializer_list<Tensor> inputs,
                     AttributeList attributes) {
  Call c = make_call(op, Tensors(inputs.begin(), inputs.end()), std::move(attributes));
  c.form = Form::kInPlace;
  return invoke(std::move(c))[0];
}

Tensor poisoned(ErrorRef error) {
  Tensor t = make_ref<TensorImpl>();
  t->poison = std::move(error);
  return t;
}

Tensor poisoned(const absl::Status& status) {
  return poisoned(Slot::current().fail(status));
}

absl::StatusOr<int64_t> dim_of(const Call& call, int64_t dim, int64_t rank) {
  auto wrapped = wrap_dim(dim, rank);
  if (wrapped.ok()) return wrapped;
  return make_error(ErrorKind::kIndex,
                    absl::StrCat("[", call.op->name, "] ", wrapped.status().message()));
}

absl::Status infer_like_first(const Call& call, TensorSpecs* outputs) {
  outputs->push_back({call.in(0)->dtype, call.in(0)->sizes, {}});
  return absl::OkStatus();
}

Tensor new_tensor(const TensorSpec& spec) {
  Slot& slot = Slot::current();
  Tensor t = make_ref<TensorImpl>();
  t->dtype = spec.dtype;
  t->sizes = spec.sizes;
  t->strides =
      spec.strides.size() == spec.sizes.size() ? spec.strides : contiguous_strides(spec.sizes);
  t->inference = slot.inference;
  size_t bytes = static_cast<size_t>(numel_of(t->sizes)) * dtype_size(t->dtype);
  t->storage = make_ref<Storage>(bytes, slot.session.worker.allocator(), slot.session.account);
  return t;
}

Tensor new_view(const Tensor& base, const ViewSpec& spec) {
  Tensor t = make_ref<TensorImpl>();
  t->dtype = base->dtype;
  t->sizes = spec.sizes;
  t->strides = spec.strides;
  t->offset = spec.offset;
  t->storage = base->storage;
  t->inference = base->inference;
  return t;
}

Tensor detached(const Tensor& tensor) {
  Tensor t = new_view(tensor, {tensor->sizes, tensor->strides, tensor->offset});
  t->poison = tensor->poison;
  return t;
}

Operand operand_of(const Tensor& t) {
  return {t->storage, t->dtype, t->sizes, t->strides, t->offset};
}

Operand operand_of(const Tensor& t, const ViewSpec& spec) {
  return {t->storage, t->dtype, spec.sizes, spec.strides, spec.offset};
}

}  // namespace gradwire
