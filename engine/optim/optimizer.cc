#include "engine/optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

bool is_sgd(const OpDef& row) {
  return row.name == "optim.SGD";
}

}  // namespace

Optimizer::Optimizer(const OpDef& row)
    : row_(row), buffers_(static_cast<int>(row.signature.outputs.size()) - 1) {}

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
  }
  groups_.push_back(std::move(group));
  // The executor may be reading the counts: the longer list is a new object.
  auto grown = std::make_shared<Counts>();
  grown->steps.resize(params_.size());
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kHost;
  task->on_done = [old = counts_, grown](ErrorRef) {
    std::copy(old->steps.begin(), old->steps.end(), grown->steps.begin());
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
  bool used[3] = {true, true, false};
  if (is_sgd(row_)) {
    used[0] = o[1] != 0;  // momentum
    task->attributes = {o[0], o[1], o[2], o[3], o[4] != 0, o[5] != 0, IntList()};
  } else {
    used[2] = o[5] != 0;  // amsgrad
    bool decoupled = row_.name == "optim.AdamW";
    task->attributes = {o[0], o[1], o[2], o[3], o[4], o[5] != 0, o[6] != 0, decoupled, IntList()};
  }
  for (int member : members) {
    for (int b = 0; b < buffers_; ++b) {
      Tensor& buffer = params_[member].buffers[b];
      if (!used[b] || buffer) continue;
      const Tensor& p = params_[member].tensor;
      bool inference = std::exchange(slot.inference, false);
      buffer = full(p->sizes, 0, p->dtype);
      slot.inference = inference;
    }
  }
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
      Operand operand = used[b] ? operand_of(buffer) : Operand{};
      task->inputs.push_back(operand);
      task->outputs.push_back(operand);
      if (used[b]) ++buffer->storage->version;
    }
  }
  bool sgd = is_sgd(row_);
  task->prepare = [counts = counts_, members, sgd](Task& t) {
    IntList list;
    for (int member : members) {
      int64_t done = counts->steps[member];
      list.push_back(sgd ? (done == 0 ? 1 : 0) : done + 1);
    }
    t.attributes.back() = Attribute(std::move(list));
  };
  // SGD counts from the first step that has a momentum buffer: that one copies the gradient.
  task->on_done = [counts = counts_, members, counted = !sgd || used[0]](ErrorRef error) {
    if (error || !counted) return;
    for (int member : members) ++counts->steps[member];
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
  // The count is what the executor will have reached here.
  Tensor step = new_tensor({DType::kFloat32, {}, {}});
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kCopyIn;
  task->outputs.push_back(operand_of(step));
  task->prepare = [counts = counts_, index](Task& t) {
    float value = static_cast<float>(counts->steps[index]);
    t.host.assign(reinterpret_cast<const char*>(&value), sizeof value);
  };
  Slot::current().push(std::move(task));
  Tensors out{step};
  for (const Tensor& b : p.buffers) out.push_back(b ? detached(b) : nullptr);
  return out;
}

absl::Status Optimizer::load_state(int64_t index, int64_t step, const Tensors& state) {
  if (index < 0 || index >= static_cast<int64_t>(params_.size())) {
    return index_error("[", row_.name, "] no parameter ", index);
  }
  if (state.size() > static_cast<size_t>(buffers_)) {
    return value_error("[", row_.name, "] has ", buffers_, " state tensors, got ", state.size());
  }
  Parameter& p = params_[index];
  for (size_t i = 0; i < state.size(); ++i) {
    if (!state[i]) {
      p.buffers[i] = nullptr;
      continue;
    }
    if (state[i]->poison) return make_error(state[i]->poison->kind, state[i]->poison->message);
    if (state[i]->sizes != p.tensor->sizes) {
      return value_error("[", row_.name, "] state ", state[i]->text(), " does not fit parameter ",
                         p.tensor->text());
    }
    GradMode off(false);
    p.buffers[i] = detached(clone(cast(state[i], p.tensor->dtype)));
  }
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kHost;
  int64_t reached = is_sgd(row_) && p.buffers[0] ? std::max<int64_t>(step, 1) : step;
  task->on_done = [counts = counts_, index, reached](ErrorRef) { counts->steps[index] = reached; };
  Slot::current().push(std::move(task));
  return absl::OkStatus();
}

}  // namespace gradwire
