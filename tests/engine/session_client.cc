#include "tests/engine/session_client.h"

#include <cstring>

#include "engine/ops/catalog.h"

namespace gradwire::testing {
namespace {
constexpr uint32_t kSlot = 1;
}

SessionClient::SessionClient(Worker& worker, uint64_t memory_limit)
    : state_(std::make_unique<SessionState>(worker, memory_limit)) {
  dispatcher_ = std::make_unique<Dispatcher>(*state_, kSlot, *this, [this] {
    std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  });
}

SessionClient::~SessionClient() {
  // The queue calls back into this object until it is gone.
  state_->worker.executor().remove(state_->queue);
  dispatcher_.reset();
  state_.reset();
}

std::vector<Id> SessionClient::send(std::string_view op, std::vector<Id> inputs,
                                    AttributeList attributes, int outputs, Form form) {
  std::vector<Id> ids;
  for (int i = 0; i < outputs; ++i) ids.push_back(Id{kSlot} << 48 | next_id_++);
  command(op, inputs, attributes, ids, form);
  return ids;
}

void SessionClient::out(std::string_view op, std::vector<Id> inputs, AttributeList attributes,
                        std::vector<Id> outs) {
  command(op, inputs, attributes, outs, Form::kOut);
}

void SessionClient::command(std::string_view op, const std::vector<Id>& inputs,
                            const AttributeList& attributes, const std::vector<Id>& outputs,
                            Form form) {
  std::string tape;
  if (!attributes.empty()) {
    tape.push_back(static_cast<char>(attributes.size()));
    for (const Attribute& a : attributes) write_tape(a, &tape);
  }
  const OpDef* row = Catalog::get().find(op);
  Command command;
  command.number = ++number_;
  command.op = row ? row->number : 0xffff;
  command.form = form;
  command.inputs = inputs;
  command.outputs = outputs;
  command.tape = {reinterpret_cast<const uint8_t*>(tape.data()), tape.size()};
  command.site = &site_;
  run(command);
}

void SessionClient::run(const Command& command) {
  Progress progress = dispatcher_->apply(command);
  dispatcher_->flush();
  while (progress == Progress::kSuspended) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return woken_; });
      woken_ = false;
    }
    progress = dispatcher_->resume();
  }
}

Id SessionClient::constant(DType dtype, const IntList& shape, const void* data, size_t bytes) {
  std::string raw(static_cast<const char*>(data), bytes);
  return call("session.constant", {}, {std::move(raw), dtype, shape});
}

Id SessionClient::floats(const IntList& shape, const std::vector<float>& values) {
  return constant(DType::kFloat32, shape, values.data(), values.size() * sizeof(float));
}

Reply SessionClient::answer() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return replies_.contains(number_); });
  Reply reply = std::move(replies_[number_]);
  replies_.erase(number_);
  return reply;
}

HostTensor SessionClient::read(Id id) {
  send("session.read", {id}, {}, 0);
  Reply reply = answer();
  if (auto* values = std::get_if<ValuesReply>(&reply)) return values->values.at(0);
  HostTensor failed;
  if (auto* error = std::get_if<ErrorReply>(&reply)) failed.error = error->error;
  return failed;
}

std::vector<float> SessionClient::read_floats(Id id) {
  HostTensor value = read(id);
  std::vector<float> floats;
  if (!value.data || value.dtype != DType::kFloat32) return floats;
  floats.resize(value.data->size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), value.data->data(), value.data->size());
  return floats;
}

bool SessionClient::answered(uint64_t number) {
  std::lock_guard lock(mutex_);
  return replies_.contains(number);
}

std::vector<ErrorRef> SessionClient::refused() {
  std::lock_guard lock(mutex_);
  return std::exchange(refused_, {});
}

void SessionClient::reply(uint64_t number, Reply reply) {
  std::lock_guard lock(mutex_);
  if (auto* event = std::get_if<RefusedEvent>(&reply)) {
    refused_.push_back(event->error);
  } else {
    replies_[number] = std::move(reply);
  }
  changed_.notify_all();
}

}  // namespace gradwire::testing
