// Rows 1300 to 1309: a recurrent layer over all its time steps, and packed sequences.
#include <algorithm>

#include "engine/ops/rnn.h"

namespace gradwire {
namespace {

RnnKind kind_of(const Attribute& a) {
  return static_cast<RnnKind>(a.as_int());
}

absl::Status infer_steps(const Call& call, TensorSpecs* out) {
  const Tensor &gates = call.in(0), &weight = call.in(1), &hidden = call.in(4), &cell = call.in(5);
  RnnKind kind = kind_of(call.attr(2));
  DType dtype = gates->dtype;
  int64_t rows = gates->sizes[0], units = weight->sizes[0] / rnn_gates(kind);
  bool plain = kind == RnnKind::kTanh || kind == RnnKind::kRelu, lstm = kind == RnnKind::kLstm;
  out->push_back({dtype, {rows, weight->sizes[1]}, {}});
  out->push_back({dtype, hidden->sizes, {}});
  out->push_back({dtype, cell ? cell->sizes : Dims{0}, {}});
  out->push_back({dtype, plain ? Dims{0} : Dims{rows, 4 * units}, {}});
  out->push_back({dtype, lstm ? Dims{rows, units} : Dims{0}, {}});
  return absl::OkStatus();
}

Tensors compose_steps(const Call& call) {
  RnnWalk walk{call.in(0),
               call.in(1),
               call.in(2),
               call.in(3),
               call.in(4),
               call.in(5),
               call.attr(0).as_ints(),
               call.attr(1).as_bool(),
               kind_of(call.attr(2))};
  Tensors outputs = rnn_compose(walk);
  outputs.resize(5, outputs[0]);  // the last two are for the kernel's gradient alone
  return outputs;
}

absl::Status infer_steps_backward(const Call& call, TensorSpecs* out) {
  const Tensor &weight = call.in(6), &projection = call.in(7), &hidden = call.in(8),
               &cell = call.in(9);
  DType dtype = weight->dtype;
  int64_t all = weight->sizes[0];
  bool gru = kind_of(call.attr(2)) == RnnKind::kGru;
  out->push_back({dtype, {call.in(5)->sizes[0], all}, {}});
  out->push_back({dtype, weight->sizes, {}});
  out->push_back({dtype, {gru ? all : 0}, {}});
  out->push_back({dtype, projection ? projection->sizes : Dims{0}, {}});
  out->push_back({dtype, hidden->sizes, {}});
  out->push_back({dtype, cell ? cell->sizes : Dims{0}, {}});
  return absl::OkStatus();
}

void backward_steps(Backward& b) {
  static const OpRef op("rnn_steps_backward");
  RnnKind kind = kind_of(b.attr(2));
  bool lstm = kind == RnnKind::kLstm;
  auto came = [&](int i) { return b.has_grad(i) ? b.grad(i) : nullptr; };
  Tensor doutput = came(0), dhidden = came(1), dcell = lstm ? came(2) : nullptr;
  auto given = [&](int i) { return b.input_spec(i).dtype == DType::kNone ? nullptr : b.input(i); };
  Tensors grads;
  if (Slot::current().grad_enabled) {
    RnnWalk walk{b.input(0),          b.input(1),          given(2), given(3), b.input(4), given(5),
                 b.attr(0).as_ints(), b.attr(1).as_bool(), kind};
    grads = rnn_gradients(walk, doutput, dhidden, dcell);
  } else {
    grads = call_many(op,
                      {doutput, dhidden, dcell, b.output(3), b.output(4), b.output(0), b.input(1),
                       given(3), b.input(4), given(5)},
                      {b.attr(0), b.attr(1), b.attr(2)});
  }
  for (int i = 0; i < 6 && i < static_cast<int>(grads.size()); ++i) {
    if (b.needs(i)) b.set(i, grads[i]);
  }
}

// --- packed sequences ----------------------------------------------------------------------------

int64_t total(const IntList& sizes) {
  int64_t rows = 0;
  for (int64_t b : sizes) rows += b;
  return rows;
}

absl::Status infer_packed(const Call& call, TensorSpecs* out) {
  Dims sizes(call.in(0)->sizes.begin() + 1, call.in(0)->sizes.end());
  sizes[0] = total(call.attr(0).as_ints());
  out->push_back({call.in(0)->dtype, sizes, {}});
  return absl::OkStatus();
}

absl::Status infer_padded(const Call& call, TensorSpecs* out) {
  const IntList& batch = call.attr(0).as_ints();
  Dims sizes{call.attr(1).as_int(), batch[0]};
  sizes.insert(sizes.end(), call.in(0)->sizes.begin() + 1, call.in(0)->sizes.end());
  out->push_back({call.in(0)->dtype, sizes, {}});
  return absl::OkStatus();
}

void backward_packed(Backward& b) {
  static const OpRef op("padded_rows");
  if (b.needs(0)) {
    b.set(0, call(op, {b.grad()}, {b.attr(0), b.input_spec(0).sizes[0], 0.0}));
  }
}

void backward_padded(Backward& b) {
  static const OpRef op("packed_rows");
  if (b.needs(0)) b.set(0, call(op, {b.grad()}, {b.attr(0)}));
}

Tensors compose_pack(const Call& call) {
  static const OpRef op("packed_rows");
  Tensor x = call.in(0);
  const IntList& lengths = call.attr(0).as_ints();
  if (x->rank() < 2) {
    return {poisoned(runtime_error("Expected a padded batch of sequences, got ", x->text()))};
  }
  if (call.attr(1).as_bool()) x = transpose(x, 0, 1);
  if (static_cast<int64_t>(lengths.size()) != x->sizes[1]) {
    return {poisoned(runtime_error("Expected `len(lengths)` to be equal to batch_size, but got ",
                                   lengths.size(), " (batch_size=", x->sizes[1], ")"))};
  }
  if (lengths.empty()) {
    return {poisoned(runtime_error("Cannot pack empty tensors."))};
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] <= 0) {
      return {poisoned(runtime_error(
          "Length of all samples has to be greater than 0, but found an element in 'lengths' that "
          "is <= 0"))};
    }
    if (i && lengths[i] > lengths[i - 1]) {
      return {poisoned(runtime_error(
          "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
          "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
          "sidestep this requirement if you do not need ONNX exportability."))};
    }
  }
  if (lengths[0] > kRnnStepsMost) {
    return {poisoned(runtime_error("Expected sequences of at most ", kRnnStepsMost,
                                   " steps, but got ", lengths[0]))};
  }
  if (lengths[0] > x->sizes[0]) {
    return {poisoned(runtime_error("Expected lengths of at most ", x->sizes[0],
                                   ", the padded length, but got ", lengths[0]))};
  }
  IntList batch(lengths[0]);
  int64_t running = x->sizes[1];
  for (int64_t t = 0; t < lengths[0]; ++t) {
    while (running > 0 && lengths[running - 1] <= t) --running;
    batch[t] = running;
  }
  return {gradwire::call(op, {x}, {batch})};
}

Tensors compose_pad(const Call& call) {
  static const OpRef op("padded_rows");
  const Tensor& x = call.in(0);
  const IntList& batch = call.attr(0).as_ints();
  int64_t length = static_cast<int64_t>(batch.size()), rows = 0;
  bool falls = !batch.empty() && x->rank() > 0;
  for (size_t t = 0; falls && t < batch.size(); ++t) {
    falls = batch[t] > 0 && batch[t] <= x->sizes[0] - rows && (t == 0 || batch[t] <= batch[t - 1]);
    rows += batch[t];
  }
  if (!falls || rows != x->sizes[0]) {
    return {poisoned(runtime_error(
        "Expected batch_sizes that do not increase and add up to the rows of ", x->text()))};
  }
  int64_t asked = call.attr(3).as_int();
  if (asked > 0 && asked < length) {
    return {
        poisoned(value_error("Expected total_length to be at least the length of the longest "
                             "sequence in input, but got total_length=",
                             asked, " and max sequence length being ", length))};
  }
  Tensor out = gradwire::call(op, {x}, {batch, asked > 0 ? asked : length, call.attr(2)});
  return {call.attr(1).as_bool() && !out->poison ? transpose(out, 0, 1) : out};
}

Tensors compose_pad_sequence(const Call& call) {
  static const OpRef cat("cat"), stack("stack");
  const std::string& side = call.attr(2).as_string();
  if (side != "left" && side != "right") {
    return {poisoned(
        runtime_error("Expected padding_side to be one of left or right, but got ", side, "."))};
  }
  int64_t longest = 0;
  for (const Tensor& t : call.inputs) {
    if (t->rank() == 0) return {poisoned(runtime_error("[pad_sequence] a sequence has no length"))};
    longest = std::max(longest, t->sizes[0]);
  }
  if (call.inputs.empty()) {
    return {poisoned(runtime_error("received an empty list of sequences"))};
  }
  Tensors rows;
  for (const Tensor& t : call.inputs) {
    Dims sizes = t->sizes;
    sizes[0] = longest - t->sizes[0];
    if (sizes[0] == 0) {
      rows.push_back(t);
      continue;
    }
    auto numel = checked_numel(sizes);
    if (!numel.ok()) return {poisoned(numel.status())};
    Tensor gap = full(sizes, call.attr(1).as_double(), t->dtype);
    Tensors parts = side == "right" ? Tensors{t, gap} : Tensors{gap, t};
    rows.push_back(call_list(cat, std::move(parts), {0})[0]);
  }
  return {call_list(stack, std::move(rows), {call.attr(0).as_bool() ? 0 : 1})[0]};
}

}  // namespace

void add_rnn_rows(Catalog& c) {
  auto& steps = c.add(
      1300, OpKind::kKernel,
      "rnn_steps(Tensor gates, Tensor weight, Tensor? bias, Tensor? projection, Tensor hidden, "
      "Tensor? cell, int[] batch_sizes, bool reverse, int kind) -> (Tensor output, "
      "Tensor last_hidden, Tensor last_cell, Tensor saved, Tensor states)",
      "A recurrent layer in one direction over packed rows [R, G]: kind 0 tanh, 1 relu, 2 LSTM, 3 "
      "GRU.");
  steps.infer = infer_steps;
  steps.compose = compose_steps;
  steps.backward = backward_steps;
  steps.saves_inputs = save(0) | save(1) | save(2) | save(3) | save(4) | save(5);
  steps.saves_outputs = save(0) | save(3) | save(4);
  auto& back =
      c.add(1301, OpKind::kKernel,
            "rnn_steps_backward(Tensor? doutput, Tensor? dhidden, Tensor? dcell, Tensor saved, "
            "Tensor states, Tensor output, Tensor weight, Tensor? projection, Tensor hidden, "
            "Tensor? cell, int[] batch_sizes, bool reverse, int kind) -> (Tensor dgates, "
            "Tensor dweight, Tensor dbias, Tensor dprojection, Tensor dhidden_first, "
            "Tensor dcell_first)",
            "The gradients of rnn_steps.");
  back.infer = infer_steps_backward;
  auto& packed =
      c.add(1302, OpKind::kKernel, "packed_rows(Tensor input, int[] batch_sizes) -> Tensor",
            "The first batch_sizes[t] rows of each input[t], one after the other.");
  packed.infer = infer_packed;
  packed.backward = backward_packed;
  auto& padded =
      c.add(1303, OpKind::kKernel,
            "padded_rows(Tensor input, int[] batch_sizes, int length, float value) -> Tensor",
            "The reverse of packed_rows: [length, batch_sizes[0], ...] with `value` in the gaps.");
  padded.infer = infer_padded;
  padded.backward = backward_padded;
  auto& pack = c.add(
      1304, OpKind::kComposite,
      "_pack_padded_sequence(Tensor input, int[] lengths, bool batch_first=False) -> Tensor",
      "The steps of padded sequences [T, B, ...] (batch_first: [B, T, ...]) without the padding, "
      "time by time: [sum(lengths), ...]. Lengths do not increase.");
  pack.compose = compose_pack;
  pack.shape_rule = "pack_padded_sequence";
  pack.type_rule = "same";
  auto& pad = c.add(
      1305, OpKind::kComposite,
      "_pad_packed_sequence(Tensor input, int[] batch_sizes, bool batch_first=False, "
      "float padding_value=0.0, int total_length=0) -> Tensor",
      "Packed steps as padded sequences [T, B, ...] (batch_first: [B, T, ...]); T is the longest "
      "or, where given, total_length.");
  pad.compose = compose_pad;
  pad.shape_rule = "pad_packed_sequence";
  pad.type_rule = "same";
  auto& sequence = c.add(
      1306, OpKind::kComposite,
      "_pad_sequence(Tensor[] sequences, bool batch_first=False, "
      "float padding_value=0.0, str padding_side='right') -> Tensor",
      "Sequences [L_i, ...] side by side, each padded to the longest: [T, B, ...] (batch_first: "
      "[B, T, ...]).");
  sequence.compose = compose_pad_sequence;
  sequence.shape_rule = "pad_sequence";
  sequence.type_rule = "same";
  c.keep_internal({"rnn_steps", "rnn_steps_backward", "packed_rows", "padded_rows"});
}

}  // namespace gradwire
