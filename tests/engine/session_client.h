// Drives the engine as a slot's stream would, without a server: ops by name, values read back.
#pragma once

#include <condition_variable>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/dispatch.h"
#include "engine/ops/worker.h"

namespace gradwire::testing {

using Id = uint64_t;

// One session with one slot. The caller's thread is the strand.
class SessionClient : public ReplySink {
 public:
  explicit SessionClient(Worker& worker, uint64_t memory_limit = UINT64_MAX);
  ~SessionClient() override;

  // Sends a command; returns its output ids. `outputs` new ids are made. A Scalar operand is id 0
  // with its value among the attributes.
  std::vector<Id> send(std::string_view op, std::vector<Id> inputs, AttributeList attributes = {},
                       int outputs = 1, Form form = Form::kPlain);
  Id call(std::string_view op, std::vector<Id> inputs, AttributeList attributes = {}) {
    return send(op, std::move(inputs), std::move(attributes), 1)[0];
  }
  void in_place(std::string_view op, std::vector<Id> inputs, AttributeList attributes = {}) {
    send(op, std::move(inputs), std::move(attributes), 0, Form::kInPlace);
  }
  // Writes `outs` instead of making outputs.
  void out(std::string_view op, std::vector<Id> inputs, AttributeList attributes,
           std::vector<Id> outs);
  void release(std::vector<Id> ids) { send("session.release", std::move(ids), {}, 0); }

  Id constant(DType dtype, const IntList& shape, const void* data, size_t bytes);
  Id floats(const IntList& shape, const std::vector<float>& values);

  // Waits for the value. `error` of the result is set when the tensor is poisoned.
  HostTensor read(Id id);
  std::vector<float> read_floats(Id id);
  // Waits for the answer of the last command sent.
  Reply answer();
  // True when that command's answer is here and was not taken yet.
  bool answered(uint64_t number);
  // Errors of commands that were refused, in order.
  std::vector<ErrorRef> refused();

  void reply(uint64_t number, Reply reply) override;

  SessionState& state() { return *state_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  uint64_t number() const { return number_; }

 private:
  void command(std::string_view op, const std::vector<Id>& inputs, const AttributeList& attributes,
               const std::vector<Id>& outputs, Form form);
  void run(const Command& command);

  std::unique_ptr<SessionState> state_;
  std::unique_ptr<Dispatcher> dispatcher_;
  uint64_t number_ = 0;
  Id next_id_ = 1;
  std::string site_ = "test.py:1 in main";

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Reply> replies_;
  std::vector<ErrorRef> refused_;
  bool woken_ = false;
};

}  // namespace gradwire::testing
