#include "engine/ops/dispatch.h"

#include <cstring>

#include "engine/ops/bind.h"
#include "engine/ops/call.h"
#include "engine/ops/commands.h"

namespace gradwire {
namespace {

// Ends a command that failed before its op ran: its outputs exist, poisoned.
void fail_command(Slot& slot, const Command& command, const absl::Status& status) {
  ErrorRef error = slot.fail(status);
  if (command.form != Form::kOut) {
    for (uint64_t id : command.outputs) {
      if (id) slot.define(id, poisoned(error)).IgnoreError();
    }
  }
  bool replies = slot.op && slot.op->kind == OpKind::kCommand && expects_reply(*slot.op);
  if (replies) {
    slot.sink.reply(command.number, ErrorReply{error});
  } else if (command.form != Form::kPlain ||
             (slot.op && slot.op->kind == OpKind::kCommand && command.outputs.empty())) {
    slot.sink.reply(0, RefusedEvent{error});
  }
}

void finish_op(Slot& slot, const Command& command, Tensors results) {
  if (command.form != Form::kPlain) {
    for (Tensor& t : results) {
      if (!t->poison) continue;
      // The written tensor is as it was; tell what happened.
      slot.sink.reply(0, RefusedEvent{t->poison});
      break;
    }
    return;
  }
  bool failed = !results.empty() && results[0] && results[0]->poison;
  for (size_t i = 0; i < command.outputs.size(); ++i) {
    uint64_t id = command.outputs[i];
    if (!id) continue;
    Tensor t;
    if (i < results.size()) {
      t = results[i];
      if (!t) continue;  // an output this call does not have
    } else if (failed) {
      t = results[0];
    } else {
      t = poisoned(runtime_error("[", slot.op->name, "] gives ", results.size(),
                                 " outputs, the command names ", command.outputs.size()));
    }
    if (absl::Status status = slot.define(id, std::move(t)); !status.ok()) {
      slot.sink.reply(0, RefusedEvent{slot.fail(status)});
    }
  }
}

// Tells the client which of its code the graph has let go of.
void tell_forgotten(Slot& slot) {
  if (slot.forgotten->empty()) return;
  for (uint64_t id : *slot.forgotten) {
    if (auto it = slot.code.find(id); it != slot.code.end() && it->second.expired()) {
      slot.code.erase(it);
    }
  }
  slot.sink.reply(0, ForgottenEvent{std::exchange(*slot.forgotten, {})});
}

// Suspends the slot while its session has too much queued.
Progress make_room(Slot& slot) {
  if (!slot.session.queue->full()) return Progress::kDone;
  slot.continuation = [] { return Progress::kDone; };
  slot.session.queue->on_space(slot.wake);
  return Progress::kSuspended;
}

// Runs an op that must first read values.
Progress apply_measured(Slot& slot, Call call, const Command& command) {
  Tensors asked;
  for (const Tensor& t : call.inputs) {
    if (t && t->poison) asked = {t};
  }
  bool known_bad = !asked.empty();
  if (!known_bad) asked = slot.op->measure(call);
  if (known_bad || asked.empty() || asked[0]->poison) {
    if (!known_bad && !asked.empty()) call.inputs[0] = asked[0];
    finish_op(slot, command, invoke(std::move(call)));
    return make_room(slot);
  }
  // The command's spans end with apply(): keep what is needed. Its tensors stay on the strand: the
  // executor, which may be the last to let go of a task, gets a place for the values alone.
  struct Pending {
    Call call;
    std::vector<uint64_t> outputs;
    Command command;
  };
  auto pending = std::make_shared<Pending>();
  pending->call = std::move(call);
  pending->outputs.assign(command.outputs.begin(), command.outputs.end());
  pending->command = command;
  pending->command.inputs = {};
  pending->command.tape = {};
  pending->command.site = nullptr;
  pending->command.outputs = pending->outputs;
  auto task = std::make_unique<Task>();
  task->kind = TaskKind::kRead;
  for (const Tensor& t : asked) task->inputs.push_back(operand_of(t));
  auto blocks = std::make_shared<std::vector<Task::ReadBlock>>();
  task->on_values = [blocks, wake = slot.wake](std::vector<Task::ReadBlock> read) {
    *blocks = std::move(read);
    wake();
  };
  slot.continuation = [&slot, pending, blocks] {
    Tensors results;
    for (const Task::ReadBlock& block : *blocks) {
      if (block.error) {
        results = {poisoned(block.error)};
        break;
      }
      int64_t value = 0;
      std::memcpy(&value, block.data->data(), sizeof value);
      pending->call.values.push_back(value);
    }
    if (results.empty()) results = invoke(std::move(pending->call));
    finish_op(slot, pending->command, std::move(results));
    return make_room(slot);
  };
  slot.push(std::move(task));
  return Progress::kSuspended;
}

}  // namespace

Dispatcher::Dispatcher(SessionState& session, uint32_t slot, ReplySink& sink,
                       std::function<void()> wake)
    : slot_(std::make_unique<Slot>(session, slot, sink, std::move(wake))) {}

Dispatcher::~Dispatcher() = default;

Progress Dispatcher::apply(const Command& command) {
  Slot& slot = *slot_;
  Slot::Use use(slot);
  slot.command = command.number;
  slot.set_site(command.site);
  slot.op = Catalog::get().find(command.op);
  if (!slot.op || slot.op->internal) {
    slot.op = nullptr;
    fail_command(slot, command, runtime_error("unknown op number ", command.op));
    return Progress::kDone;
  }
  Call call;
  if (slot.op->kind == OpKind::kCommand && slot.op->name == "session.release") {
    for (uint64_t id : command.inputs) release_handle(slot, id);
    tell_forgotten(slot);
    return Progress::kDone;
  }
  absl::Status status = bind(slot, *slot.op, command, &call);
  if (!status.ok()) {
    fail_command(slot, command, status);
    return Progress::kDone;
  }
  if (slot.op->kind == OpKind::kCommand) {
    Progress progress = slot.op->command(slot, call, command);
    tell_forgotten(slot);
    return progress;
  }
  if (slot.op->measure) return apply_measured(slot, std::move(call), command);
  finish_op(slot, command, invoke(std::move(call)));
  return make_room(slot);
}

Progress Dispatcher::resume() {
  Slot::Use use(*slot_);
  auto next = std::move(slot_->continuation);
  slot_->continuation = nullptr;
  Progress progress = next ? next() : Progress::kDone;
  slot_->flush();
  return progress;
}

void Dispatcher::flush() {
  slot_->flush();
}

uint64_t Dispatcher::cancel() {
  Slot& slot = *slot_;
  slot.flush();
  uint64_t before = slot.session.queue->depth();
  slot.session.queue->cancel(slot.number, slot.command);
  slot.session.worker.executor().notify();
  // A suspended command ends by itself once its tasks are dropped, but not one that waits for
  // another slot.
  std::vector<SessionState::Waiter> dropped;
  std::erase_if(slot.session.waiters, [&](SessionState::Waiter& waiter) {
    if (waiter.owner != slot.number) return false;
    dropped.push_back(std::move(waiter));
    return true;
  });
  for (SessionState::Waiter& waiter : dropped) waiter.wake();
  return before;
}

std::vector<ErrorRef> Dispatcher::take_unread() {
  std::vector<ErrorRef> unread;
  for (ErrorRef& error : slot_->errors) {
    if (!error->reported.load()) unread.push_back(std::move(error));
  }
  slot_->errors.clear();
  for (ErrorRef& error : slot_->session.queue->take_failures(slot_->number)) {
    if (!error->reported.load()) unread.push_back(std::move(error));
  }
  return unread;
}

}  // namespace gradwire
