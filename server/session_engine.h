// What a session needs of the engine. The one real implementation is engine_session.h; tests of
// the session core bring their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/exec/account.h"
#include "engine/io/upload.h"
#include "engine/ops/command.h"
#include "engine/ops/reply.h"

namespace gradwire::server {

// The commands of one slot; the calls and their rules are Dispatcher's (engine/ops/dispatch.h).
// apply and resume return false when the command is suspended until `wake`.
class SlotEngine {
 public:
  virtual ~SlotEngine() = default;
  virtual bool apply(const Command& command) = 0;
  virtual void flush() = 0;
  virtual bool resume() = 0;
  // Drops what is queued. A suspended command stays so until `wake`, which comes soon.
  virtual uint64_t cancel() = 0;
  virtual std::vector<ErrorRef> take_unread() = 0;
  // Commands up to this one are applied: what other slots may wait for.
  virtual void applied(uint64_t number) = 0;
};

class SessionEngine {
 public:
  virtual ~SessionEngine() = default;
  // `sink` outlives the session's tasks. `wake` as in Dispatcher.
  virtual std::unique_ptr<SlotEngine> make_slot(uint32_t slot, ReplySink& sink,
                                                std::function<void()> wake) = 0;
  // Drops what is queued and waits for what runs. Afterwards no reply and no wake comes, and the
  // slots' engines may be destroyed.
  virtual void stop() = 0;
  virtual Uploads& uploads() = 0;
  virtual std::shared_ptr<Account> account() = 0;
  virtual const std::string& device() const = 0;
};

using SessionEngineFactory = std::function<std::unique_ptr<SessionEngine>()>;

}  // namespace gradwire::server
