// Rows 775 to 777: connectionist temporal classification.
#include <cmath>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

// log_probs [T, N, C], targets [N, S] or [sum of target lengths], lengths [N].
absl::Status check_ctc(const Call& call) {
  const Tensor &x = call.in(0), &targets = call.in(1);
  if (!is_floating(x->dtype)) {
    return not_implemented_error("\"ctc_loss\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  if (x->rank() != 3) {
    return runtime_error("ctc_loss: expected log_probs of 3 dims, or 2 without a batch, got ",
                         x->text());
  }
  int64_t blank = call.attr(0).as_int();
  if (blank < 0 || blank >= x->sizes[2]) return runtime_error("blank must be in label range");
  for (int i : {1, 2, 3}) {
    if (call.in(i)->dtype == DType::kInt64) continue;
    return runtime_error("ctc_loss: expected ", call.op->signature.params[i].name,
                         " to be integers, got ", call.in(i)->text());
  }
  for (int i : {2, 3}) {
    const Tensor& lengths = call.in(i);
    if (lengths->rank() == 1 && lengths->sizes[0] == x->sizes[1]) continue;
    return runtime_error(i == 2 ? "input_lengths" : "target_lengths",
                         " must be of size batch_size");
  }
  if (targets->rank() != 1 && (targets->rank() != 2 || targets->sizes[0] != x->sizes[1])) {
    return runtime_error("ctc_loss: expected targets [", x->sizes[1],
                         ", S] or one after the other, ", "got ", targets->text());
  }
  return absl::OkStatus();
}

absl::Status infer_ctc(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_ctc(call));
  out->push_back({call.in(0)->dtype, {call.in(0)->sizes[1]}, {}});
  return absl::OkStatus();
}

void backward_ctc(Backward& b) {
  static const OpRef op("ctc_loss_backward");
  b.set(0, call(op, {b.grad(), b.input(0), b.input(1), b.input(2), b.input(3)},
                {b.attr(0), b.attr(1)}));
}

Tensors compose_ctc(const Call& call) {
  static const OpRef rows("ctc_loss_rows"), eq("eq");
  const std::string& how = call.attr(1).as_string();
  bool zero_infinity = call.attr(2).as_bool();
  absl::Status status = check_reduction(how);
  if (!status.ok()) return {poisoned(status)};
  for (int i : {1, 2, 3}) {
    if (is_floating(call.in(i)->dtype) || call.in(i)->dtype == DType::kBool) {
      return {poisoned(runtime_error(call.op->signature.params[i].name, " must be integral"))};
    }
  }
  Tensor x = call.in(0);
  bool single = x->rank() == 2;
  if (single) x = unsqueeze(x, 1);
  auto integers = [&](int i) { return cast(call.in(i), DType::kInt64); };
  auto lengths = [&](int i) {
    Tensor t = integers(i);
    return t->rank() == 0 ? reshape(t, Dims{1}) : t;
  };
  Tensor targets = integers(1);
  if (targets->rank() == 0) targets = reshape(targets, Dims{1});
  Tensor target_lengths = lengths(3);
  Tensor loss =
      gradwire::call(rows, {x, targets, lengths(2), target_lengths}, {call.attr(0), zero_infinity});
  if (zero_infinity) {
    loss = masked_fill(loss, with_number(eq, loss, HUGE_VAL), 0);
  }
  if (how == "mean") loss = div(loss, cast(clamp_min(target_lengths, 1), x->dtype));
  if (loss->poison) return {loss};
  return {single && how == "none" ? squeeze(loss, 0) : reduce_loss(loss, how)};
}

}  // namespace

void add_ctc_rows(Catalog& c) {
  auto& rows = c.add(775, OpKind::kKernel,
                     "ctc_loss_rows(Tensor log_probs, Tensor targets, Tensor input_lengths, "
                     "Tensor target_lengths, int blank, bool zero_infinity) -> Tensor",
                     "Minus the log-probability of each sample's targets, [N].");
  rows.kernel = "ctc_loss";
  rows.infer = infer_ctc;
  rows.checks = true;
  rows.backward = backward_ctc;
  rows.saves_inputs = save(0) | save(1) | save(2) | save(3);
  rows.no_grad_inputs = {1, 2, 3};
  auto& back = c.add(776, OpKind::kKernel,
                     "ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, "
                     "Tensor input_lengths, Tensor target_lengths, int blank, bool zero_infinity) "
                     "-> Tensor",
                     "The gradient of ctc_loss_rows.");
  back.infer = [](const Call& call, TensorSpecs* out) {
    out->push_back({call.in(1)->dtype, call.in(1)->sizes, {}});
    return absl::OkStatus();
  };
  back.checks = true;
  back.backward = [](Backward& b) {
    b.set(0, poisoned(not_implemented_error("the derivative for 'ctc_loss_backward' is not ",
                                            "implemented")));
    b.set(1, poisoned(not_implemented_error("the derivative for 'ctc_loss_backward' is not ",
                                            "implemented")));
  };
  auto& loss = c.add(
      777, OpKind::kComposite,
      "nn.functional.ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, "
      "Tensor target_lengths, int blank=0, str reduction='mean', bool zero_infinity=False) "
      "-> Tensor",
      "Minus the log-probability that log_probs [T, N, C] (or [T, C]) spell targets [N, S] or [sum "
      "of target_lengths] with blanks between; 'mean' first divides by target_lengths.");
  loss.compose = compose_ctc;
  loss.shape_rule = "loss";
  loss.type_rule = "same";
  c.keep_internal({"ctc_loss_rows", "ctc_loss_backward"});
}

}  // namespace gradwire
