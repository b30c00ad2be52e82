// Rows 1000 to 1099: optimizers as server objects. A row makes one with its first group; the
// keywords, in order, are a group's options.
#include "engine/ops/call.h"
#include "engine/ops/dispatch.h"
#include "engine/optim/optimizer.h"

namespace gradwire {
namespace {

Progress create(Slot& slot, const Call& call, const Command& command) {
  auto optimizer = std::make_unique<Optimizer>(*call.op);
  FloatList options;
  for (const Attribute& a : call.attributes) options.push_back(a.as_double());
  absl::Status status = optimizer->add_group(call.inputs, std::move(options));
  uint64_t id = command.outputs.empty() ? 0 : command.outputs[0];
  if (status.ok() && ((id >> 48) != slot.number || slot.session.tensors.contains(id) ||
                      slot.session.optimizers.contains(id))) {
    status = runtime_error("[", call.op->name, "] output id ", id, " is in use or another slot's");
  }
  if (!status.ok()) {
    slot.sink.reply(0, RefusedEvent{slot.fail(status)});
    return Progress::kDone;
  }
  slot.session.optimizers[id] = std::move(optimizer);
  return Progress::kDone;
}

}  // namespace

void add_optimizer_rows(Catalog& c) {
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc,
                 std::string_view kernel, std::vector<std::string> state) {
    OpDef& r = c.add(number, OpKind::kCommand, signature, doc);
    r.command = create;
    r.kernel = std::string(kernel);
    r.signature.outputs = std::move(state);
  };
  row(1000,
      "optim.SGD(Tensor[] params, *, float lr=0.001, float momentum=0.0, "
      "float dampening=0.0, float weight_decay=0.0, bool nesterov=False, "
      "bool maximize=False) -> Object",
      "Stochastic gradient descent: buf = momentum * buf + (1 - dampening) * grad, "
      "p -= lr * buf; the first step's buf is the gradient.",
      "sgd_step", {"step", "momentum_buffer"});
  row(1001,
      "optim.Adam(Tensor[] params, *, float lr=0.001, float beta1=0.9, float beta2=0.999, "
      "float eps=1e-08, float weight_decay=0.0, bool amsgrad=False, bool maximize=False) "
      "-> Object",
      "Adam (Kingma and Ba 2015); weight_decay is added to the gradient.", "adam_step",
      {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
  row(1002,
      "optim.AdamW(Tensor[] params, *, float lr=0.001, float beta1=0.9, float beta2=0.999, "
      "float eps=1e-08, float weight_decay=0.01, bool amsgrad=False, bool maximize=False) "
      "-> Object",
      "Adam with decoupled weight decay (Loshchilov and Hutter 2019).", "adam_step",
      {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
}

}  // namespace gradwire
