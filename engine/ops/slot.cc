#include "engine/ops/slot.h"

#include "engine/autograd/checkpoint.h"
#include "engine/ops/paused_run.h"

namespace gradwire {
namespace {
thread_local Slot* current_slot = nullptr;
constexpr size_t kMaxUnread = 64;
}  // namespace

Slot::Slot(SessionState& session, uint32_t number, ReplySink& sink, std::function<void()> wake)
    : session(session), number(number), sink(sink), wake(std::move(wake)) {}
Slot::~Slot() = default;

Slot& Slot::current() {
  return *current_slot;
}

Slot::Use::Use(Slot& slot) : before_(current_slot) {
  current_slot = &slot;
}
Slot::Use::~Use() {
  current_slot = before_;
}

GradMode::GradMode(bool enabled) : before_(Slot::current().grad_enabled) {
  Slot::current().grad_enabled = enabled;
}
GradMode::~GradMode() {
  Slot::current().grad_enabled = before_;
}

ErrorRef Slot::fail(const absl::Status& status) {
  auto record = new ErrorRecord();
  record->kind = error_kind(status);
  record->message = std::string(status.message());
  if (op) record->op = op->name;
  record->number = command;
  record->slot = number;
  if (site) record->site = site->text;
  ErrorRef ref(record);
  if (errors.size() == kMaxUnread) errors.pop_front();
  errors.push_back(ref);
  return ref;
}

void Slot::set_site(const std::string* text) {
  if (!text) {
    site = nullptr;
  } else if (!site || site->text != *text) {
    site = Ref<const Site>(new Site(*text));
  }
}

void Slot::push(std::unique_ptr<Task> task) {
  task->number = command;
  task->slot = number;
  task->site = site;
  task->sink = &sink;
  if (!task->op) task->op = op;
  if (session.queue->push(std::move(task))) flush();
}

void Slot::flush() {
  if (session.queue->publish()) session.worker.executor().notify();
}

absl::Status Slot::define(uint64_t id, Tensor tensor) {
  if (id == 0) return absl::OkStatus();
  if ((id >> 48) != number) {
    return runtime_error("output id ", id, " does not belong to slot ", number);
  }
  if (id & kServerBit) return runtime_error("output id ", id, " is one of the server's own");
  if (!session.tensors.try_emplace(id, std::move(tensor)).second) {
    return runtime_error("output id ", id, " is in use already");
  }
  return absl::OkStatus();
}

const Tensor* Slot::find(uint64_t id) const {
  auto it = session.tensors.find(id);
  return it == session.tensors.end() ? nullptr : &it->second;
}

}  // namespace gradwire
