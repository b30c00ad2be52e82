#include "server/engine_session.h"

#include "engine/autograd/node.h"
#include "engine/ops/catalog.h"
#include "engine/ops/commands.h"
#include "engine/ops/dispatch.h"
#include "engine/ops/session_state.h"

namespace gradwire::server {
namespace {

class EngineSlot final : public SlotEngine {
 public:
  EngineSlot(SessionState& state, uint32_t slot, ReplySink& sink, std::function<void()> wake)
      : state_(state), slot_(slot), dispatcher_(state, slot, sink, std::move(wake)) {}
  bool apply(const Command& command) override {
    return dispatcher_.apply(command) == Progress::kDone;
  }
  void flush() override { dispatcher_.flush(); }
  bool resume() override { return dispatcher_.resume() == Progress::kDone; }
  uint64_t cancel() override { return dispatcher_.cancel(); }
  std::vector<ErrorRef> take_unread() override { return dispatcher_.take_unread(); }
  void applied(uint64_t number) override { state_.set_applied(slot_, number); }

 private:
  SessionState& state_;
  const uint32_t slot_;
  Dispatcher dispatcher_;
};

class EngineSession final : public SessionEngine {
 public:
  EngineSession(Worker& worker, uint64_t memory_limit) : state_(worker, memory_limit) {}
  std::unique_ptr<SlotEngine> make_slot(uint32_t slot, ReplySink& sink,
                                        std::function<void()> wake) override {
    return std::make_unique<EngineSlot>(state_, slot, sink, std::move(wake));
  }
  void stop() override { state_.worker.executor().remove(state_.queue); }
  Uploads& uploads() override { return state_.uploads; }
  std::shared_ptr<Account> account() override { return state_.account; }
  const std::string& device() const override { return state_.worker.device(); }

 private:
  SessionState state_;
};

}  // namespace

bool op_replies(uint32_t number) {
  const OpDef* op =
      number <= UINT16_MAX ? Catalog::get().find(static_cast<uint16_t>(number)) : nullptr;
  return op != nullptr && expects_reply(*op);
}

SessionEngineFactory engine_sessions(Worker& worker, uint64_t memory_limit) {
  const uint64_t limit = memory_limit == 0 ? UINT64_MAX / 2 : memory_limit;
  return [&worker, limit] { return std::make_unique<EngineSession>(worker, limit); };
}

}  // namespace gradwire::server
