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
  row(1003,
      "optim.Adadelta(Tensor[] params, *, float lr=1.0, float rho=0.9, float eps=1e-06, "
      "float weight_decay=0.0, bool maximize=False) -> Object",
      "Adadelta (Zeiler 2012): steps as large as the running mean of earlier ones.",
      "adadelta_step", {"step", "square_avg", "acc_delta"});
  row(1004,
      "optim.Adagrad(Tensor[] params, *, float lr=0.01, float lr_decay=0.0, "
      "float weight_decay=0.0, float initial_accumulator_value=0.0, float eps=1e-10, "
      "bool maximize=False) -> Object",
      "Adagrad (Duchi et al. 2011): p -= lr / (1 + (step - 1) lr_decay) grad / (sqrt(sum) + eps), "
      "with the sum of all squared gradients.",
      "adagrad_step", {"step", "sum"});
  row(1005,
      "optim.Adamax(Tensor[] params, *, float lr=0.002, float beta1=0.9, float beta2=0.999, "
      "float eps=1e-08, float weight_decay=0.0, bool maximize=False) -> Object",
      "Adamax (Kingma and Ba 2015): Adam with the infinity norm.", "adamax_step",
      {"step", "exp_avg", "exp_inf"});
  row(1006,
      "optim.NAdam(Tensor[] params, *, float lr=0.002, float beta1=0.9, float beta2=0.999, "
      "float eps=1e-08, float weight_decay=0.0, float momentum_decay=0.004, "
      "bool decoupled_weight_decay=False, bool maximize=False) -> Object",
      "NAdam (Dozat 2016): Adam with Nesterov momentum. mu_product is a number, not a buffer.",
      "nadam_step", {"step", "mu_product", "exp_avg", "exp_avg_sq"});
  row(1007,
      "optim.RAdam(Tensor[] params, *, float lr=0.001, float beta1=0.9, float beta2=0.999, "
      "float eps=1e-08, float weight_decay=0.0, bool decoupled_weight_decay=False, "
      "bool maximize=False) -> Object",
      "RAdam (Liu et al. 2020): Adam whose scale waits until its variance can be judged.",
      "radam_step", {"step", "exp_avg", "exp_avg_sq"});
  row(1008,
      "optim.RMSprop(Tensor[] params, *, float lr=0.01, float alpha=0.99, float eps=1e-08, "
      "float weight_decay=0.0, float momentum=0.0, bool centered=False, bool maximize=False) "
      "-> Object",
      "RMSprop (Hinton 2012): p -= lr grad / (sqrt(square_avg - grad_avg^2) + eps), grad_avg only "
      "when centered.",
      "rmsprop_step", {"step", "square_avg", "momentum_buffer", "grad_avg"});
  row(1009,
      "optim.Rprop(Tensor[] params, *, float lr=0.01, float etaminus=0.5, float etaplus=1.2, "
      "float step_min=1e-06, float step_max=50.0, bool maximize=False) -> Object",
      "Rprop (Riedmiller and Braun 1993): each weight has a step size, which grows while the "
      "gradient keeps its sign.",
      "rprop_step", {"step", "prev", "step_size"});
  row(1010,
      "optim.ASGD(Tensor[] params, *, float lr=0.01, float lambd=0.0001, float alpha=0.75, "
      "float t0=1000000.0, float weight_decay=0.0, bool maximize=False) -> Object",
      "Averaged gradient descent (Polyak and Juditsky 1992); ax is the average. eta and mu are "
      "numbers, not buffers.",
      "asgd_step", {"step", "eta", "mu", "ax"});
  row(1011,
      "optim.Adafactor(Tensor[] params, *, float lr=0.01, float beta2_decay=-0.8, "
      "float eps1=-1.0, float eps2=0.001, float d=1.0, float weight_decay=0.0, "
      "bool maximize=False) -> Object",
      "Adafactor (Shazeer and Stern 2018). A negative eps1 stands for the epsilon of the "
      "parameter's dtype; variance is for vectors, row_var and col_var for all others.",
      "adafactor_step", {"step", "row_var", "col_var", "variance"});
}

}  // namespace gradwire
