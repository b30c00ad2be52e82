// Rows 1 to 24: what acts on the session. Each answers as its document says.
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_set.h"
#include "engine/io/upload.h"
#include "engine/ops/call.h"
#include "engine/ops/commands.h"
#include "engine/ops/dispatch.h"

namespace gradwire {
namespace {

Progress define(Slot& slot, const Command& command, Tensor tensor) {
  if (command.outputs.empty()) return Progress::kDone;
  absl::Status status = slot.define(command.outputs[0], std::move(tensor));
  return status.ok() ? Progress::kDone : refuse(slot, command, status);
}

Progress read(Slot& slot, const Call& call, const Command& command) {
  struct Plan {
    std::vector<HostTensor> values;
    std::vector<size_t> places;  // of the blocks among the values
  };
  auto plan = std::make_shared<Plan>();
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kRead;
  GradMode off(false);
  for (const Tensor& t : call.inputs) {
    HostTensor value;
    Tensor flat = t->poison ? t : contiguous(detached(t));
    if (flat->poison) {
      value.error = flat->poison;
      value.error->reported = true;
    } else {
      value.dtype = flat->dtype;
      value.sizes = flat->sizes;
      plan->places.push_back(plan->values.size());
      task->inputs.push_back(operand_of(flat));
    }
    plan->values.push_back(std::move(value));
  }
  task->on_values = [plan, sink = &slot.sink,
                     number = command.number](std::vector<Task::ReadBlock> blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      HostTensor& value = plan->values[plan->places[i]];
      value.data = std::move(blocks[i].data);
      value.error = std::move(blocks[i].error);
      if (value.error) value.error->reported = true;
    }
    sink->reply(number, ValuesReply{std::move(plan->values)});
  };
  slot.push(std::move(task));
  return Progress::kDone;
}

Progress meta(Slot& slot, const Call& call, const Command& command) {
  MetasReply reply;
  for (const Tensor& t : call.inputs) reply.metas.push_back(meta_of(t));
  slot.sink.reply(command.number, std::move(reply));
  return Progress::kDone;
}

Tensor grad_of(const Tensor& t) {
  if (!t->autograd) return nullptr;
  return t->autograd->retained ? *t->autograd->retained : t->autograd->grad;
}

Progress grad(Slot& slot, const Call& call, const Command& command) {
  const Tensor& t = call.in(0);
  if (t->poison) return answer_error(slot, command, t->poison);
  Tensor g = grad_of(t);
  MetasReply reply;
  reply.metas.push_back(g ? meta_of(g) : TensorMeta{});
  if (g) define(slot, command, g);
  slot.sink.reply(command.number, std::move(reply));
  return Progress::kDone;
}

Progress set_grad(Slot& slot, const Call& call, const Command& command) {
  const Tensor& t = call.in(0);
  if (ErrorRef bad = first_poison({t})) return refuse(slot, command, bad);
  Tensor g = call.in(1);
  if (g && !g->poison && (g->sizes != t->sizes || g->dtype != t->dtype)) {
    return refuse(slot, command,
                  runtime_error("assigned grad has data of a different size or type: ", g->text(),
                                " for ", t->text()));
  }
  if (t->autograd && t->autograd->retained) {
    *t->autograd->retained = g;
  } else {
    t->meta().grad = g;
  }
  return Progress::kDone;
}

Progress requires_grad(Slot& slot, const Call& call, const Command& command) {
  bool on = call.attr(0).as_bool();
  for (const Tensor& t : call.inputs) {
    if (t->poison) return refuse(slot, command, t->poison);
    if (on && !is_floating(t->dtype)) {
      return refuse(
          slot, command,
          runtime_error("only Tensors of floating point dtype can require gradients, got ",
                        t->text()));
    }
    if (on && t->inference && !slot.inference) {
      return refuse(slot, command,
                    runtime_error("Setting requires_grad=True on inference tensor outside "
                                  "InferenceMode is not allowed."));
    }
    if (!t->is_leaf()) {
      if (on) continue;
      return refuse(slot, command,
                    runtime_error("you can only change requires_grad flags of leaf variables. If "
                                  "you want to use a computed variable in a subgraph that doesn't "
                                  "require differentiation use var_no_grad = var.detach()."));
    }
    if (on || t->autograd) t->meta().requires_grad = on;
  }
  return Progress::kDone;
}

Progress retain_grad(Slot& slot, const Call& call, const Command& command) {
  const Tensor& t = call.in(0);
  if (t->poison) return refuse(slot, command, t->poison);
  if (!t->requires_grad()) {
    return refuse(slot, command,
                  runtime_error("can't retain_grad on Tensor that has requires_grad=False"));
  }
  if (t->is_leaf() || t->autograd->retained) return Progress::kDone;
  t->autograd->retained = std::make_shared<Tensor>();
  grad_fn_of(t)->retained.emplace_back(t->autograd->output_nr, t->autograd->retained);
  return Progress::kDone;
}

Progress set_grad_mode(Slot& slot, const Call& call, const Command&) {
  slot.inference = call.attr(1).as_bool();
  slot.grad_enabled = call.attr(0).as_bool() && !slot.inference;
  return Progress::kDone;
}

Progress manual_seed(Slot& slot, const Call& call, const Command&) {
  slot.generator = {static_cast<uint64_t>(call.attr(0).as_int()), 0};
  return Progress::kDone;
}

Progress upload(Slot& slot, const Call& call, const Command& command) {
  const IntList& sizes = call.attr(2).as_ints();
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return refuse(slot, command, numel.status());
  auto transfer = static_cast<uint64_t>(call.attr(0).as_int());
  auto upload = slot.session.uploads.get(slot.number, transfer);
  if (!upload.ok()) return refuse(slot, command, upload.status());
  DType dtype = call.attr(1).as_dtype();
  // A bool is one byte, 0 or 1; what comes may be any.
  DType sent = dtype == DType::kBool ? DType::kUInt8 : dtype;
  Tensor t = new_tensor({sent, Dims(sizes.begin(), sizes.end()), {}});
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kCopyIn;
  task->upload = *upload;
  task->outputs.push_back(operand_of(t));
  task->on_done = [session = &slot.session, number = slot.number, transfer](ErrorRef) {
    session->uploads.drop(number, transfer);
  };
  slot.push(std::move(task));
  Tensor made = cast(t, dtype);
  made->inference = call.attr(3).as_bool();
  return define(slot, command, std::move(made));
}

Progress constant(Slot& slot, const Call& call, const Command& command) {
  const IntList& sizes = call.attr(2).as_ints();
  DType dtype = call.attr(1).as_dtype();
  const std::string& data = call.attr(0).as_string();
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return refuse(slot, command, numel.status());
  if (data.size() != static_cast<size_t>(*numel) * dtype_size(dtype)) {
    return refuse(slot, command,
                  value_error("[session.constant] ", data.size(), " bytes for ",
                              std::string(dtype_name(dtype)), shape_text(sizes)));
  }
  Tensor t = new_tensor({dtype, Dims(sizes.begin(), sizes.end()), {}});
  t->inference = call.attr(3).as_bool();
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kCopyIn;
  task->host = data;
  if (dtype == DType::kBool) {
    for (char& c : task->host) c = c != 0;
  }
  task->outputs.push_back(operand_of(t));
  slot.push(std::move(task));
  return define(slot, command, t);
}

Progress synchronize(Slot& slot, const Call&, const Command& command) {
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kSync;
  task->on_done = [sink = &slot.sink, number = command.number](ErrorRef) {
    sink->reply(number, MetasReply{});
  };
  slot.push(std::move(task));
  return Progress::kDone;
}

Progress stats(Slot& slot, const Call&, const Command& command) {
  SessionState& s = slot.session;
  nlohmann::json j;
  j["device"] = s.worker.device();
  j["memory"] = {
      {"used", s.account->used()}, {"peak", s.account->peak()}, {"limit", s.account->limit()}};
  j["tensors"] = s.tensors.size();
  j["optimizers"] = s.optimizers.size();
  j["queued"] = s.queue->depth();
  j["tasks"] = s.queue->tasks_run.load();
  j["kernels"] = s.queue->kernels_run.load();
  j["fused"] = s.queue->fused.load();
  j["device_seconds"] = static_cast<double>(s.queue->device_ns.load()) * 1e-9;
  slot.sink.reply(command.number, TextReply{j.dump()});
  return Progress::kDone;
}

Progress zero_grad(Slot&, const Call& call, const Command&) {
  for (const Tensor& t : call.inputs) {
    if (t->poison || !t->autograd || !t->autograd->grad) continue;
    Tensor& g = t->autograd->grad;
    if (call.attr(0).as_bool() || g->poison) {
      g = nullptr;
    } else {
      GradMode off(false);
      g = zeros(t->sizes, t->dtype);
    }
  }
  return Progress::kDone;
}

Progress alias(Slot& slot, const Call& call, const Command& command) {
  return define(slot, command, call.in(0));
}

Progress wait(Slot& slot, const Call& call, const Command& command) {
  auto other = static_cast<uint32_t>(call.attr(0).as_int());
  auto number = static_cast<uint64_t>(call.attr(1).as_int());
  auto it = slot.session.applied.find(other);
  if (it == slot.session.applied.end() || other == slot.number) {
    return refuse(slot, command, value_error("[session.wait] no other slot ", other));
  }
  if (it->second >= number) return Progress::kDone;
  slot.continuation = [] { return Progress::kDone; };
  slot.session.waiters.push_back({slot.number, other, number, slot.wake});
  return Progress::kSuspended;
}

Optimizer* find_optimizer(Slot& slot, const Call& call) {
  auto it = slot.session.optimizers.find(call.object_ids[0]);
  return it == slot.session.optimizers.end() ? nullptr : it->second.get();
}

absl::Status no_optimizer(const Call& call) {
  return runtime_error("[", call.op->name, "] optimizer id ", call.object_ids[0],
                       " was released or never existed");
}

Progress optimizer_add_group(Slot& slot, const Call& call, const Command& command) {
  Optimizer* optimizer = find_optimizer(slot, call);
  if (!optimizer) return refuse(slot, command, no_optimizer(call));
  absl::Status status = optimizer->add_group(call.inputs, call.attr(0).as_floats());
  return status.ok() ? Progress::kDone : refuse(slot, command, status);
}

Progress optimizer_set_group(Slot& slot, const Call& call, const Command& command) {
  Optimizer* optimizer = find_optimizer(slot, call);
  if (!optimizer) return refuse(slot, command, no_optimizer(call));
  absl::Status status = optimizer->set_group(call.attr(0).as_int(), call.attr(1).as_floats());
  return status.ok() ? Progress::kDone : refuse(slot, command, status);
}

Progress optimizer_step(Slot& slot, const Call& call, const Command& command) {
  Optimizer* optimizer = find_optimizer(slot, call);
  if (!optimizer) return refuse(slot, command, no_optimizer(call));
  GradMode off(false);
  absl::Status status = optimizer->step();
  return status.ok() ? Progress::kDone : refuse(slot, command, status);
}

Progress optimizer_zero_grad(Slot& slot, const Call& call, const Command& command) {
  Optimizer* optimizer = find_optimizer(slot, call);
  if (!optimizer) return refuse(slot, command, no_optimizer(call));
  GradMode off(false);
  optimizer->zero_grad(call.attr(0).as_bool());
  return Progress::kDone;
}

Progress optimizer_state(Slot& slot, const Call& call, const Command& command) {
  Optimizer* optimizer = find_optimizer(slot, call);
  if (!optimizer) return answer_error(slot, command, slot.fail(no_optimizer(call)));
  auto state = optimizer->state(call.attr(0).as_int());
  if (!state.ok()) return answer_error(slot, command, slot.fail(state.status()));
  MetasReply reply;
  for (size_t i = 0; i < state->size(); ++i) {
    const Tensor& t = (*state)[i];
    reply.metas.push_back(t ? meta_of(t) : TensorMeta{});
    if (t && i < command.outputs.size()) slot.define(command.outputs[i], t).IgnoreError();
  }
  slot.sink.reply(command.number, std::move(reply));
  return Progress::kDone;
}

Progress optimizer_load_state(Slot& slot, const Call& call, const Command& command) {
  Optimizer* optimizer = find_optimizer(slot, call);
  if (!optimizer) return refuse(slot, command, no_optimizer(call));
  absl::Status status = optimizer->load_state(call.attr(0).as_int(), call.attr(1).as_int(),
                                              call.inputs, call.attr(2).as_floats());
  return status.ok() ? Progress::kDone : refuse(slot, command, status);
}

Progress release(Slot&, const Call&, const Command&) {
  return Progress::kDone;
}

}  // namespace

bool expects_reply(const OpDef& op) {
  static const absl::flat_hash_set<std::string> kReplying = {"session.read",
                                                             "session.meta",
                                                             "session.grad",
                                                             "session.autograd_grad",
                                                             "session.synchronize",
                                                             "session.stats",
                                                             "session.optimizer_state",
                                                             "session.backward_watched",
                                                             "session.callback_return",
                                                             "session.node_edges",
                                                             "session.node_variable"};
  return kReplying.contains(op.name);
}

void release_handle(Slot& slot, uint64_t id) {
  if (slot.session.tensors.erase(id) || slot.session.optimizers.erase(id)) return;
  if (!slot.session.nodes.erase(id)) slot.generator_marks.erase(id);
}

TensorMeta meta_of(const Tensor& t) {
  TensorMeta meta;
  if (t->poison) {
    meta.error = t->poison;
    t->poison->reported = true;
    return meta;
  }
  meta.defined = true;
  meta.dtype = t->dtype;
  meta.sizes = t->sizes;
  meta.strides = t->strides;
  meta.requires_grad = t->requires_grad();
  meta.is_leaf = t->is_leaf();
  if (Ref<Node> node = grad_fn_of(t)) meta.grad_fn = node->name();
  meta.version = t->storage ? t->storage->version : 0;
  meta.inference = t->inference;
  return meta;
}

void add_command_rows(Catalog& catalog) {
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, CommandFn fn) {
    catalog.add(number, OpKind::kCommand, signature, doc).command = fn;
  };
  row(1, "session.release(Tensor[] handles) -> ()",
      "Forgets handles; tensors live on while something else refers to them. Cannot fail.",
      release);
  row(2, "session.read(Tensor[] tensors) -> ()", "Answers with the tensors' values.", read);
  row(3, "session.meta(Tensor[] tensors) -> ()",
      "Answers with dtype, shape and strides, from dispatch, without waiting for a device.", meta);
  row(4, "session.grad(Tensor input) -> Tensor",
      "A handle for input's .grad; answers with its meta, `defined` false when it is None.", grad);
  row(5, "session.set_grad(Tensor input, Tensor? grad) -> ()",
      "Sets input's .grad; None clears it.", set_grad);
  row(8, "session.requires_grad_(Tensor[] tensors, bool requires_grad=True) -> ()",
      "Sets whether leaves require gradients.", requires_grad);
  row(9, "session.set_grad_mode(bool enabled, bool inference=False) -> ()",
      "Sets the slot's gradient mode.", set_grad_mode);
  row(10, "session.manual_seed(int seed) -> ()", "Restarts the slot's generator.", manual_seed);
  row(11, "session.upload(int transfer, dtype dtype, int[] shape, bool inference=False) -> Tensor",
      "A tensor whose contents come by Data.Upload under that transfer number.", upload);
  row(12, "session.constant(bytes data, dtype dtype, int[] shape, bool inference=False) -> Tensor",
      "A tensor from little endian bytes in row-major order.", constant);
  row(13, "session.synchronize() -> ()", "Answers when everything queued before it has run.",
      synchronize);
  row(14, "session.retain_grad(Tensor input) -> ()", "Keeps the gradient of a non-leaf.",
      retain_grad);
  row(15, "session.stats() -> ()", "Answers with JSON: memory, tensors, tasks, kernels.", stats);
  row(16, "session.zero_grad(Tensor[] tensors, bool set_to_none=True) -> ()",
      "Clears the tensors' .grad.", zero_grad);
  row(17, "session.alias(Tensor input) -> Tensor", "A second handle for the same tensor.", alias);
  row(18, "session.wait(int slot, int number) -> ()",
      "Later commands of this slot run after that slot has applied that command number.", wait);
  row(19, "session.optimizer_add_group(Object optimizer, Tensor[] params, float[] options) -> ()",
      "Adds a parameter group.", optimizer_add_group);
  row(20, "session.optimizer_set_group(Object optimizer, int group, float[] options) -> ()",
      "Sets a group's options, in the order of the optimizer row's keywords.", optimizer_set_group);
  row(21, "session.optimizer_step(Object optimizer) -> ()",
      "Updates every parameter that has a gradient, all or none.", optimizer_step);
  row(22, "session.optimizer_zero_grad(Object optimizer, bool set_to_none=True) -> ()",
      "Clears the gradients of the optimizer's parameters.", optimizer_zero_grad);
  row(23, "session.optimizer_state(Object optimizer, int index) -> Tensor[]",
      "State of parameter `index`: the step count, then the buffers in the order of the optimizer "
      "row's outputs; answers with their metas.",
      optimizer_state);
  row(24,
      "session.optimizer_load_state(Object optimizer, Tensor?[] state, int index, int step, "
      "float[] scalars=[]) -> ()",
      "Sets the state of parameter `index`: buffers, step count, and the numbers that the "
      "optimizer keeps besides.",
      optimizer_load_state);
}

}  // namespace gradwire
