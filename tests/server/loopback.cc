#include "tests/server/loopback.h"

#include <future>

namespace gradwire::server {

void Loopback::notify() {
  std::lock_guard pump(pump_);
  for (;;) {
    std::string bytes;
    if (stalled || !slot_ || !slot_->outbox().next(this, &bytes)) return;
    v1::Replies message;
    message.ParseFromString(bytes);
    std::lock_guard lock(mutex_);
    applied = message.applied();
    if (message.replies_size() > 0 && first_reply == 0) first_reply = message.first();
    for (v1::Reply& reply : *message.mutable_replies()) replies.push_back(std::move(reply));
    changed_.notify_all();
  }
}

void Loopback::resume_reading() {
  std::lock_guard lock(mutex_);
  ++resumed;
  changed_.notify_all();
}

void Loopback::finish(const absl::Status& status, std::string) {
  notify();
  std::lock_guard lock(mutex_);
  if (!finished) finished = status;
  changed_.notify_all();
}

absl::Status Loopback::connect(const SlotRef& ref, uint64_t epoch) {
  slot_ = ref.slot;
  return slot_->connect(shared_from_this(), epoch);
}

bool Loopback::send(const v1::Frame& frame) {
  return send_bytes(frame.SerializeAsString());
}

bool Loopback::send_bytes(std::string frame) {
  auto owner = std::make_shared<std::string>(std::move(frame));
  return slot_->receive(this, {*owner, owner});
}

void Loopback::close_half() {
  slot_->receive_end(this);
}
void Loopback::drop() {
  slot_->disconnect(this);
}

bool Loopback::wait_applied(uint64_t number) {
  return wait([&] { return applied >= number; });
}
bool Loopback::wait_replies(size_t count) {
  return wait([&] { return replies.size() >= count; });
}
std::optional<absl::Status> Loopback::wait_finished() {
  wait([&] { return finished.has_value(); });
  std::lock_guard lock(mutex_);
  return finished;
}

size_t FakeLog::count() {
  std::lock_guard lock(mutex);
  return commands.size();
}

bool FakeLog::wake_one() {
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex);
    if (wakes.empty()) return false;
    wake = std::move(wakes.front());
    wakes.erase(wakes.begin());
  }
  wake();
  return true;
}

namespace {

class FakeSlot final : public SlotEngine {
 public:
  FakeSlot(FakeLog& log, ReplySink& sink, std::function<void()> wake)
      : log_(log), sink_(sink), wake_(std::move(wake)) {}

  bool apply(const Command& command) override {
    {
      std::lock_guard lock(log_.mutex);
      log_.commands.push_back(command);
    }
    if (command.op == kMeta) {
      TensorMeta meta;
      meta.defined = true;
      meta.dtype = DType::kFloat32;
      meta.sizes = {2, 3};
      sink_.reply(command.number, MetasReply{{meta}});
    } else if (command.op == kBig) {
      HostTensor big;
      big.dtype = DType::kUInt8;
      big.sizes = {static_cast<int64_t>(kBigBytes)};
      big.data = std::make_shared<std::string>(kBigBytes, 'x');
      sink_.reply(command.number, ValuesReply{{big}});
    } else if (command.op == kSuspend) {
      std::lock_guard lock(log_.mutex);
      log_.wakes.push_back(wake_);
      return false;
    } else if (command.op == kFail) {
      auto error = make_ref<ErrorRecord>();
      error->kind = ErrorKind::kRuntime;
      error->message = "[fail] on purpose";
      unread_.push_back(ErrorRef(error.get()));
    }
    return true;
  }
  void flush() override {}
  bool resume() override { return true; }
  uint64_t cancel() override {
    std::lock_guard lock(log_.mutex);
    return ++log_.cancels;
  }
  std::vector<ErrorRef> take_unread() override { return std::move(unread_); }
  void applied(uint64_t) override {}

 private:
  FakeLog& log_;
  ReplySink& sink_;
  const std::function<void()> wake_;
  std::vector<ErrorRef> unread_;
};

class FakeSession final : public SessionEngine {
 public:
  FakeSession(FakeLog& log, uint64_t memory_limit)
      : log_(log), account_(std::make_shared<Account>(memory_limit)) {}
  std::unique_ptr<SlotEngine> make_slot(uint32_t, ReplySink& sink,
                                        std::function<void()> wake) override {
    return std::make_unique<FakeSlot>(log_, sink, std::move(wake));
  }
  void stop() override {}
  Uploads& uploads() override { return uploads_; }
  std::shared_ptr<Account> account() override { return account_; }
  const std::string& device() const override { return device_; }

 private:
  FakeLog& log_;
  Uploads uploads_;
  std::shared_ptr<Account> account_;
  const std::string device_ = "cpu";
};

}  // namespace

SessionEngineFactory fake_sessions(FakeLog& log, uint64_t memory_limit) {
  return [&log, memory_limit] { return std::make_unique<FakeSession>(log, memory_limit); };
}

OpList fake_ops() {
  const char* json =
      R"([{"number": 1, "name": "nothing"}, {"number": 2, "name": "meta"},
          {"number": 3, "name": "suspend"}, {"number": 4, "name": "fail"},
          {"number": 5, "name": "big"}])";
  return *OpList::parse(json, "hash", [](uint32_t n) { return n == kMeta || n == kBig; });
}

void add_command(v1::Frame* frame, uint16_t op, std::vector<uint64_t> inputs,
                 std::vector<uint64_t> outputs, std::string tape, uint16_t site) {
  frame->add_heads(op | uint64_t{tape.empty() ? 0u : 1u} << 20 | uint64_t{inputs.size()} << 24 |
                   uint64_t{outputs.size()} << 36 | uint64_t{site} << 48);
  for (uint64_t id : inputs) frame->add_ids(id);
  for (uint64_t id : outputs) frame->add_ids(id);
  frame->mutable_tape()->append(tape);
}

v1::OpenResponse open_session(Sessions& sessions) {
  std::promise<v1::OpenResponse> opened;
  sessions.open({}, [&](absl::StatusOr<v1::OpenResponse> response) {
    opened.set_value(response.ok() ? *response : v1::OpenResponse());
  });
  return opened.get_future().get();
}

}  // namespace gradwire::server
