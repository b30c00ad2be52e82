// Pointwise calls: promotion, broadcasting, the task, and the node.
#include "absl/container/flat_hash_map.h"
#include "engine/core/promotion.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

using Operands = absl::InlinedVector<PointwiseOperand, 4>;

absl::StatusOr<PointwiseTypes> types_of(const PointwiseDef& def, const Operands& operands,
                                        const Tensor& self) {
  Slot& slot = Slot::current();
  PromotionState state;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].weak || (def.booleans[i] && def.rule != TypeRule::kLogical)) continue;
    if (const Tensor& t = operands[i].tensor) {
      state.add_tensor(t->dtype, t->sizes.empty());
    } else if (operands[i].scalar.kind == ScalarValue::Kind::kFloat) {
      state.add_scalar_float(slot.default_float);
    } else if (operands[i].scalar.kind == ScalarValue::Kind::kInt) {
      state.add_scalar_int();
    } else {
      state.add_scalar_bool();
    }
  }
  DType common = state.result();
  if (def.rule == TypeRule::kSame && operands[0].tensor) common = operands[0].tensor->dtype;
  PointwiseTypes types{common, common};
  auto named = [&] { return std::string(dtype_name(common)); };
  switch (def.rule) {
    case TypeRule::kPromote:
    case TypeRule::kSame:
      break;
    case TypeRule::kPromoteFloat:
      if (!is_floating(common)) types = {slot.default_float, slot.default_float};
      break;
    case TypeRule::kCompare:
    case TypeRule::kLogical:
    case TypeRule::kFloatTest:
      types.output = DType::kBool;
      break;
    case TypeRule::kFloatOnly:
      if (!is_floating(common)) {
        return not_implemented_error("\"", def.name, "\" not implemented for '", named(), "'");
      }
      break;
    case TypeRule::kIntegral:
      if (is_floating(common)) {
        return not_implemented_error("\"", def.name, "\" not implemented for '", named(), "'");
      }
      break;
    case TypeRule::kNumeric:
      if (common == DType::kBool) {
        return not_implemented_error("[", def.name, "] is not supported for bool tensors; use ",
                                     "logical_not or bitwise_not (~) instead");
      }
      break;
    case TypeRule::kNoBool:
      if (common == DType::kBool) {
        return not_implemented_error(
            "Subtraction, the `-` operator, with a bool tensor is not supported. ",
            "Use the `^` or `logical_xor()` operator instead. [", def.name, "]");
      }
      break;
  }
  // Bool arithmetic is that of bytes, stored as "not zero".
  if (types.compute == DType::kBool && def.rule != TypeRule::kIntegral) {
    types.compute = DType::kUInt8;
  }
  if (self) {
    if (!can_cast(types.output, self->dtype)) {
      return runtime_error("result type ", std::string(dtype_name(types.output)),
                           " can't be cast to the desired output type ",
                           std::string(dtype_name(self->dtype)), " [", def.name, "_]");
    }
    types.output = self->dtype;
  }
  return types;
}

const expr::Program* program_of(const PointwiseDef& def, const Operands& operands,
                                PointwiseTypes types) {
  uint64_t key = static_cast<uint64_t>(types.compute) | static_cast<uint64_t>(types.output) << 4;
  int shift = 8;
  for (const PointwiseOperand& o : operands) {
    uint64_t code = o.tensor ? static_cast<uint64_t>(o.tensor->dtype) : 15;
    key |= code << shift;
    shift += 4;
  }
  thread_local absl::flat_hash_map<std::pair<const PointwiseDef*, uint64_t>, const expr::Program*>
      cache;
  auto [it, fresh] = cache.try_emplace({&def, key}, nullptr);
  if (fresh) {
    std::vector<expr::OperandType> kinds;
    for (const PointwiseOperand& o : operands) {
      kinds.push_back({!o.tensor, o.tensor ? o.tensor->dtype : DType::kNone});
    }
    it->second = expr::instantiate(def.graph, types.compute, kinds, types.output);
  }
  return it->second;
}

// A permuted dense operand of the full size decides the result's layout.
Dims result_strides(const Operands& operands, const Dims& sizes) {
  for (const PointwiseOperand& o : operands) {
    if (o.tensor && o.tensor->sizes == sizes) return like_strides(sizes, o.tensor->strides);
  }
  return contiguous_strides(sizes);
}

// Whether `b` can reach memory of `a` other than element by element.
bool entangled(const Tensor& a, const Tensor& b) {
  if (!(a->storage == b->storage)) return false;
  if (a->offset == b->offset && a->sizes == b->sizes && a->strides == b->strides) return false;
  int64_t a_end = a->offset + extent_of(a->sizes, a->strides);
  int64_t b_end = b->offset + extent_of(b->sizes, b->strides);
  return a->offset < b_end && b->offset < a_end;
}

absl::Status record(const PointwiseDef& def, const Operands& operands, PointwiseTypes types,
                    const Tensor& result, const Tensor& self, const Tensor& self_before) {
  if (!def.differentiable) {
    Ref<Node> node = missing_derivative(def.name);
    for (const PointwiseOperand& operand : operands) {
      const Tensor& t = operand.tensor;
      if (t && t->requires_grad() && is_floating(t->dtype)) {
        node->edges.push_back(gradient_edge(t));
      }
    }
    if (self) {
      rebase_history(self, node);
    } else {
      set_history(result, node, 0);
    }
    return absl::OkStatus();
  }
  auto* raw = new PointwiseNode();
  Ref<Node> node(raw);
  raw->def = &def;
  raw->compute = types.compute;
  raw->site = Slot::current().site;
  raw->output_spec = {result->dtype, result->sizes, {}};
  raw->arguments.resize(operands.size());
  std::bitset<PointwiseDef::kMaxOperands> needed;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto& argument = raw->arguments[i];
    const Tensor& t = operands[i].tensor;
    if (!t) {
      argument.is_scalar = true;
      argument.scalar = operands[i].scalar;
      continue;
    }
    argument.dtype = t->dtype;
    argument.sizes = t->sizes;
    argument.edge = static_cast<int>(raw->edges.size());
    bool wants = t->requires_grad() && !def.booleans[i] && is_floating(t->dtype);
    raw->edges.push_back(wants ? gradient_edge(t) : Edge{});
    if (!wants) continue;
    needed |= def.derivative(static_cast<int>(i)).reads;
  }
  // Histories are set before outputs are saved, after inputs are.
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!needed[i] || !operands[i].tensor) continue;
    const Tensor& t = i == 0 && self_before ? self_before : operands[i].tensor;
    GW_RETURN_IF_ERROR(check_saved(t));
    raw->arguments[i].tensor = SavedTensor(t, nullptr);
  }
  if (self) {
    rebase_history(self, node);
  } else {
    set_history(result, node, 0);
  }
  if (needed[operands.size()]) raw->output = SavedTensor(result, raw);
  return absl::OkStatus();
}

}  // namespace

Tensor invoke_pointwise(const PointwiseDef& def, Operands operands, PointwiseTypes types,
                        const Tensor& self) {
  Slot& slot = Slot::current();
  Dims sizes;
  bool grad = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& t = operands[i].tensor;
    if (!t) continue;
    if (t->poison) return poisoned(t->poison);
    auto merged = broadcast_shapes(sizes, t->sizes);
    if (!merged.ok()) {
      return poisoned(make_error(error_kind(merged.status()),
                                 absl::StrCat("[", def.name, "] ", merged.status().message())));
    }
    sizes = *std::move(merged);
    grad = grad || (slot.grad_enabled && !def.booleans[i] && t->requires_grad());
  }
  if (auto numel = checked_numel(sizes); !numel.ok()) return poisoned(numel.status());
  if (types.compute == DType::kNone) {
    auto found = types_of(def, operands, self);
    if (!found.ok()) return poisoned(found.status());
    types = *found;
  }
  grad = grad && is_floating(types.output) && is_floating(types.compute);

  Tensor self_before;
  if (self) {
    if (sizes != self->sizes) {
      return poisoned(runtime_error("output with shape ", shape_text(self->sizes),
                                    " doesn't match the broadcast shape ", shape_text(sizes), " [",
                                    def.name, "_]"));
    }
    absl::Status allowed = check_in_place(self, def.name + "_");
    if (!allowed.ok()) return poisoned(allowed);
    for (size_t i = 1; i < operands.size(); ++i) {
      // Element-by-element order would show in the result: read a copy.
      if (operands[i].tensor && entangled(self, operands[i].tensor)) {
        operands[i].tensor = clone(operands[i].tensor);
      }
    }
    if (grad) {
      bool reads_self = false;
      for (size_t i = 0; i < operands.size(); ++i) {
        const Tensor& t = operands[i].tensor;
        if (t && t->requires_grad() && !def.booleans[i]) {
          reads_self = reads_self || def.derivative(static_cast<int>(i)).reads[0];
        }
      }
      if (reads_self) {
        GradMode off(false);
        self_before = clone(self);
      }
    }
  }

  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kPointwise;
  task->program = program_of(def, operands, types);
  for (const PointwiseOperand& o : operands) {
    if (o.tensor) {
      task->inputs.push_back(operand_of(o.tensor));
    } else {
      task->scalars.push_back(o.scalar);
    }
  }
  Tensor result = self;
  if (self) {
    task->in_place = true;
    ++self->storage->version;
  } else {
    result = new_tensor({types.output, sizes, result_strides(operands, sizes)});
  }
  task->outputs.push_back(operand_of(result));
  slot.push(std::move(task));
  if (!grad) return result;
  absl::Status recorded = record(def, operands, types, result, self, self_before);
  return recorded.ok() ? result : poisoned(recorded);
}

}  // namespace gradwire
