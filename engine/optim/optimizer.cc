#include "engine/optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/ops/call.h"

namespace gradwire {

Optimizer::Optimizer(const OpDef& row)
    : row_(row),
      kind_(optimizer_kind(row.name)),
      buffers_(static_cast<int>(row.signature.outputs.size()) - 1 - kind_.scalars) {}

std::vector<float> Optimizer::Counts::before(const OptimizerKind& kind, const FloatList& options,
                                             int member) const {
  auto from = scalars.begin() + static_cast<int64_t>(member) * kind.scalars;
  std::vector<float> out(from, from + kind.scalars);
  if (kind.start && steps[member] == 0) kind.start(options, out.data());
  return out;
}

bool Optimizer::uses(const Parameter& parameter, const FloatList& options, int buffer) const {
  return !kind_.uses || kind_.uses(options, parameter.tensor->sizes, buffer);
}

void Optimizer::make_buffers(Parameter& parameter, const FloatList& options) {
  const Tensor& p = parameter.tensor;
  bool inference = std::exchange(Slot::current().inference, false);
  for (int b = 0; b < buffers_; ++b) {
    Tensor& buffer = parameter.buffers[b];
    if (buffer || !uses(parameter, options, b)) continue;
    Dims sizes = kind_.shape ? kind_.shape(p->sizes, b) : p->sizes;
    buffer = full(sizes, kind_.fills ? kind_.fills(options, b) : 0, p->dtype);
  }
  Slot::current().inference = inference;
}

absl::Status Optimizer::add_group(const Tensors& params, FloatList options) {
  if (options.size() != static_cast<size_t>(row_.signature.attributes)) {
    return value_error("[", row_.name, "] takes ", row_.signature.attributes,
                       " options for a group, got ", options.size());
  }
  for (const Tensor& p : params) {
    if (p->poison) return make_error(p->poison->kind, p->poison->message);
    if (!is_floating(p->dtype)) {
      return runtime_error("[", row_.name, "] parameters must be floating point, got ", p->text());
    }
    if (!p->is_leaf()) return value_error("can't optimize a non-leaf Tensor");
    for (const Parameter& have : params_) {
      if (have.tensor == p) {
        return value_error("some parameters appear in more than one parameter group");
      }
    }
  }
  Group group;
  group.options = std::move(options);
  for (const Tensor& p : params) {
    group.members.push_back(static_cast<int>(params_.size()));
    params_.push_back({p, Tensors(buffers_)});
    if (kind_.eager) make_buffers(params_.back(), group.options);
  }
  groups_.push_back(std::move(group));
  // The executor may be reading the counts: the longer list is a new object.
  auto grown = std::make_shared<Counts>();
  grown->steps.resize(params_.size());
  grown->scalars.resize(params_.size() * kind_.scalars);
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kHost;
  task->on_done = [old = counts_, grown](ErrorRef) {
    std::copy(old->steps.begin(), old->steps.end(), grown->steps.begin());
    std::copy(old->scalars.begin(), old->scalars.end(), grown->scalars.begin());
  };
  Slot::current().push(std::move(task));
  counts_ = grown;
  return absl::OkStatus();
}

absl::Status Optimizer::set_group(int64_t group, FloatList options) {
  if (group < 0 || group >= static_cast<int64_t>(groups_.size())) {
    return index_error("[", row_.name, "] no parameter group ", group);
  }
  if (options.size() != groups_[group].options.size()) {
    return value_error("[", row_.name, "] takes ", groups_[group].options.size(), " options");
  }
  groups_[group].options = std::move(options);
  return absl::OkStatus();
}

absl::Status Optimizer::step() {
  std::vector<StorageRef> guards;
  for (const Parameter& p : params_) {
    if (!p.tensor->autograd || !p.tensor->autograd->grad) continue;
    const Tensor& grad = p.tensor->autograd->grad;
    if (grad->poison) {
      Slot::current().sink.reply(0, RefusedEvent{grad->poison});
      return absl::OkStatus();
    }
    if (grad->sizes != p.tensor->sizes) {
      return runtime_error("[", row_.name, "] gradient ", grad->text(), " of parameter ",
                           p.tensor->text());
    }
    guards.push_back(grad->storage);
    guards.push_back(p.tensor->storage);
  }
  for (const Group& group : groups_) {
    absl::flat_hash_map<DType, std::vector<int>> by_dtype;
    for (int member : group.members) {
      const Tensor& p = params_[member].tensor;
      if (p->autograd && p->autograd->grad) by_dtype[p->dtype].push_back(member);
    }
    for (auto& [dtype, members] : by_dtype) {
      GW_RETURN_IF_ERROR(queue_step(group, members, guards));
    }
  }
  return absl::OkStatus();
}

absl::Status Optimizer::queue_step(const Group& group, const std::vector<int>& members,
                                   const std::vector<StorageRef>& guards) {
  Slot& slot = Slot::current();
  auto task = std::make_unique<Task>();
  task->kernel = slot.session.worker.backend().find_kernel(row_.kernel);
  if (!task->kernel) return not_implemented_error("[", row_.name, "] no kernel on this device");
  task->commits = true;
  task->guards = guards;
  const FloatList& o = group.options;
  task->attributes = kind_.attributes ? kind_.attributes(o) : AttributeList{o};
  task->attributes.push_back(IntList());
  if (!kind_.attributes) task->attributes.push_back(FloatList());
  for (int member : members) make_buffers(params_[member], o);
  for (int member : members) {
    const Tensor& p = params_[member].tensor;
    task->inputs.push_back(operand_of(p));
    task->outputs.push_back(operand_of(p));
    ++p->storage->version;
  }
  for (int member : members) {
    const Tensor& p = params_[member].tensor;
    task->inputs.push_back(operand_of(cast(p->autograd->grad, p->dtype)));
  }
  for (int b = 0; b < buffers_; ++b) {
    for (int member : members) {
      const Tensor& buffer = params_[member].buffers[b];
      bool used = uses(params_[member], o, b);
      Operand operand = used ? operand_of(buffer) : Operand{};
      task->inputs.push_back(operand);
      task->outputs.push_back(operand);
      if (used) ++buffer->storage->version;
    }
  }
  task->prepare = [counts = counts_, members, options = o, &kind = kind_](Task& t) {
    IntList list;
    FloatList scalars;
    for (int member : members) {
      int64_t done = counts->steps[member];
      list.push_back(kind.first_only ? (done == 0 ? 1 : 0) : done + 1);
      for (float x : counts->before(kind, options, member)) scalars.push_back(x);
    }
    size_t at = t.attributes.size() - (kind.attributes ? 1 : 2);
    t.attributes[at] = Attribute(std::move(list));
    if (!kind.attributes) t.attributes[at + 1] = Attribute(std::move(scalars));
  };
  // SGD counts from the first step that has a momentum buffer: that one copies the gradient.
  bool counted = !kind_.counts || kind_.counts(o);
  task->on_done = [counts = counts_, members, counted, options = o, &kind = kind_](ErrorRef error) {
    if (error || !counted) return;
    for (int member : members) {
      std::vector<float> scalars = counts->before(kind, options, member);
      int64_t step = ++counts->steps[member];
      if (kind.advance) kind.advance(options, step, scalars.data());
      std::copy(scalars.begin(), scalars.end(),
                counts->scalars.begin() + static_cast<int64_t>(member) * kind.scalars);
    }
  };
  slot.push(std::move(task));
  return absl::OkStatus();
}

void Optimizer::zero_grad(bool set_to_none) {
  for (Parameter& p : params_) {
    if (!p.tensor->autograd || !p.tensor->autograd->grad) continue;
    Tensor& grad = p.tensor->autograd->grad;
    if (set_to_none || grad->poison) {
      grad = nullptr;
    } else {
      grad = zeros(p.tensor->sizes, p.tensor->dtype);
    }
  }
}

absl::StatusOr<Tensors> Optimizer::state(int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(params_.size())) {
    return index_error("[", row_.name, "] no parameter ", index);
  }
  const Parameter& p = params_[index];
  bool begun = false;
  for (const Tensor& b : p.buffers) begun = begun || b;
  Tensors out{number(index, -1)};
  for (int i = 0; i < kind_.scalars; ++i) out.push_back(begun ? number(index, i) : nullptr);
  for (const Tensor& b : p.buffers) out.push_back(b ? detached(b) : nullptr);
  return out;
}

// The value is what the executor will have reached here.
Tensor Optimizer::number(int64_t index, int scalar) {
  Tensor out = new_tensor({DType::kFloat32, {}, {}});
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kCopyIn;
  task->outputs.push_back(operand_of(out));
  task->prepare = [counts = counts_, index, scalar, each = kind_.scalars](Task& t) {
    float value = scalar < 0 ? static_cast<float>(counts->steps[index])
                             : counts->scalars[index * each + scalar];
    t.host.assign(reinterpret_cast<const char*>(&value), sizeof value);
  };
  Slot::current().push(std::move(task));
  return out;
}

absl::Status Optimizer::load_state(int64_t index, int64_t step, const Tensors& state,
                                   const FloatList& scalars) {
  if (index < 0 || index >= static_cast<int64_t>(params_.size())) {
    return index_error("[", row_.name, "] no parameter ", index);
  }
  if (state.size() > static_cast<size_t>(buffers_)) {
    return value_error("[", row_.name, "] has ", buffers_, " state tensors, got ", state.size());
  }
  if (step < 0) return value_error("[", row_.name, "] step count ", step, " is negative");
  if (scalars.size() != static_cast<size_t>(kind_.scalars) && (step > 0 || !scalars.empty())) {
    return value_error("[", row_.name, "] has ", kind_.scalars, " state numbers, got ",
                       scalars.size());
  }
  Parameter& p = params_[index];
  for (size_t i = 0; i < state.size(); ++i) {
    if (!state[i]) {
      p.buffers[i] = nullptr;
      continue;
    }
    if (state[i]->poison) return make_error(state[i]->poison->kind, state[i]->poison->message);
    int b = static_cast<int>(i);
    if (state[i]->sizes != (kind_.shape ? kind_.shape(p.tensor->sizes, b) : p.tensor->sizes)) {
      return value_error("[", row_.name, "] state ", state[i]->text(), " does not fit parameter ",
                         p.tensor->text());
    }
    GradMode off(false);
    p.buffers[i] = detached(clone(cast(state[i], p.tensor->dtype)));
  }
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kHost;
  int64_t reached = kind_.first_only && p.buffers[0] ? std::max<int64_t>(step, 1) : step;
  task->on_done = [counts = counts_, index, reached, scalars](ErrorRef) {
    counts->steps[index] = reached;
    std::copy(scalars.begin(), scalars.end(),
              counts->scalars.begin() + index * static_cast<int64_t>(scalars.size()));
  };
  Slot::current().push(std::move(task));
  return absl::OkStatus();
}

}  // namespace gradwire
