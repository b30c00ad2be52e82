#include "engine/exec/fuser.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "engine/ops/op_def.h"

namespace gradwire {
namespace {

constexpr size_t kMaxMembers = 48;
constexpr size_t kMaxInputs = 24;
constexpr size_t kMaxOutputs = 16;

bool same_geometry(const Operand& a, const Operand& b) {
  return a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
}

// How the group has touched one storage.
struct Access {
  Storage* storage;
  const Operand* geometry;  // of the first access; all accesses share it once it is written
  bool uniform = true;      // every access so far had that geometry
  bool written = false;
  int member = -1;          // last member that wrote it
  uint32_t references = 0;  // operands of the group that hold it
};

struct InputSlot {
  const Operand* operand;
};

bool fusable(const Task& task) {
  if (task.kind != TaskKind::kPointwise || task.program->can_fail || task.on_done || task.commits ||
      task.outputs.size() != 1) {
    return false;
  }
  for (const Operand& in : task.inputs) {
    if (in.storage->poison) return false;
  }
  return !task.outputs[0].storage->poison;
}

class GroupBuilder {
 public:
  // False when the task cannot join; the group is unchanged then.
  bool add(const Task& task) {
    const Operand& out = task.outputs[0];
    if (!tasks_.empty()) {
      if (out.sizes != tasks_[0]->outputs[0].sizes) return false;
      if (inputs_.size() + task.inputs.size() > kMaxInputs) return false;
    }
    for (const Operand& in : task.inputs) {
      Access* seen = find(in.storage.get());
      if (seen && seen->written && !same_geometry(*seen->geometry, in)) return false;
      // Reading what this very task writes is fine only element by element.
      if (in.storage == out.storage && !same_geometry(in, out)) return false;
    }
    if (Access* seen = find(out.storage.get())) {
      if (!seen->uniform || !same_geometry(*seen->geometry, out)) return false;
    }
    expr::Member member;
    member.program = task.program;
    for (const Operand& in : task.inputs) {
      Access& access = touch(in);
      if (access.written) {
        member.inputs.push_back(-1 - access.member);
      } else {
        member.inputs.push_back(input_number(in));
      }
    }
    Access& access = touch(out);
    access.written = true;
    access.member = static_cast<int>(members_.size());
    members_.push_back(std::move(member));
    tasks_.push_back(&task);
    return true;
  }

  size_t size() const { return tasks_.size(); }

  FusionGroup finish() {
    FusionGroup group;
    group.tasks = tasks_.size();
    if (tasks_.size() < 2) return group;
    for (const Access& access : accesses_) {
      if (!access.written) continue;
      // Temporaries that only the group holds need no memory.
      if (access.storage->use_count() <= access.references) continue;
      members_[access.member].output = static_cast<int>(group.outputs.size());
      group.outputs.push_back(&tasks_[access.member]->outputs[0]);
    }
    add_arguments(&group);
    // Nobody can ask for any of it: nothing to launch.
    if (!group.outputs.empty()) group.program = expr::merge(members_);
    return group;
  }

  // The group with a reduction over its only value; a group of no tasks when that cannot be.
  FusionGroup finish_with(const Task& reduction) {
    FusionGroup group;
    const Operand& in = reduction.inputs[0];
    Access* value = find(in.storage.get());
    if (!value || !value->written || !same_geometry(*value->geometry, in)) return group;
    for (const Access& access : accesses_) {
      if (!access.written) continue;
      uint32_t own = access.references + (&access == value ? 1 : 0);
      if (access.storage->use_count() > own) return group;
    }
    for (expr::Member& member : members_) member.output = -1;
    members_[value->member].output = 0;
    group.tasks = tasks_.size() + 1;
    add_arguments(&group);
    group.program = expr::merge(members_);
    group.reduction = &reduction;
    return group;
  }

  bool full() const { return tasks_.size() >= kMaxMembers || written_ >= kMaxOutputs * 3; }

 private:
  void add_arguments(FusionGroup* group) const {
    for (const InputSlot& slot : inputs_) group->inputs.push_back(slot.operand);
    for (const Task* task : tasks_) {
      group->scalars.insert(group->scalars.end(), task->scalars.begin(), task->scalars.end());
    }
  }

  Access* find(Storage* storage) {
    for (Access& access : accesses_) {
      if (access.storage == storage) return &access;
    }
    return nullptr;
  }

  Access& touch(const Operand& operand) {
    Access* access = find(operand.storage.get());
    if (!access) {
      accesses_.push_back({operand.storage.get(), &operand});
      access = &accesses_.back();
    } else if (!same_geometry(*access->geometry, operand)) {
      access->uniform = false;
    }
    ++access->references;
    return *access;
  }

  int input_number(const Operand& operand) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Operand& have = *inputs_[i].operand;
      if (have.storage == operand.storage && same_geometry(have, operand)) {
        return static_cast<int>(i);
      }
    }
    inputs_.push_back({&operand});
    return static_cast<int>(inputs_.size()) - 1;
  }

  absl::InlinedVector<Access, 16> accesses_;
  std::vector<InputSlot> inputs_;
  std::vector<expr::Member> members_;
  std::vector<const Task*> tasks_;
  size_t written_ = 0;
};

}  // namespace

KernelId FusedReductions::find(const Task& task) {
  if (task.kind != TaskKind::kKernel || !task.op || task.inputs.size() != 1 ||
      task.outputs.size() != 1 || task.checks || task.commits || task.in_place ||
      !task.scalars.empty() || task.prepare || task.on_done) {
    return 0;
  }
  auto [it, fresh] = known_.try_emplace(task.op);
  if (fresh && !task.op->kernel.empty()) {
    it->second.plain = backend_.find_kernel(task.op->kernel);
    it->second.over_program = backend_.find_kernel(task.op->kernel + "_of_program");
  }
  return task.kernel == it->second.plain ? it->second.over_program : 0;
}

FusionGroup find_group(const std::deque<std::unique_ptr<Task>>& ready, size_t limit,
                       FusedReductions& reductions) {
  FusionGroup single;
  single.tasks = 1;
  limit = std::min({limit, ready.size(), kMaxMembers});
  if (limit < 2 || !fusable(*ready[0])) return single;
  if (!fusable(*ready[1]) && !reductions.find(*ready[1])) return single;
  GroupBuilder builder;
  while (builder.size() < limit && !builder.full()) {
    const Task& task = *ready[builder.size()];
    if (!fusable(task) || !builder.add(task)) break;
  }
  if (builder.size() < ready.size()) {
    const Task& next = *ready[builder.size()];
    if (KernelId kernel = reductions.find(next)) {
      const Operand& in = next.inputs[0];
      if (numel_of(in.sizes) > 0 && is_dense(in.sizes, in.strides)) {
        FusionGroup group = builder.finish_with(next);
        group.kernel = kernel;
        if (group.tasks) return group;
      }
    }
  }
  if (builder.size() < 2) return single;
  return builder.finish();
}

}  // namespace gradwire
