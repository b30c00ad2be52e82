// Rows 1320 to 1335: one step of a recurrent net, and the state of recurrent modules.
#include <cmath>

#include "engine/ops/rnn.h"

namespace gradwire {
namespace {

// Attributes: none. Inputs: input, hx (of an LSTM two), w_ih, w_hh, b_ih, b_hh.
absl::Status check_cell(const Call& call, RnnKind kind, int states) {
  const Tensor &x = call.in(0), &ih = call.in(1 + states), &hh = call.in(2 + states);
  if (!is_floating(x->dtype)) {
    return not_implemented_error("\"", call.op->name, "\" not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  for (const Tensor& t : call.inputs) {
    if (!t || t->dtype == x->dtype) continue;
    return runtime_error("[", call.op->name, "] expected one dtype, but got ", x->text(), " and ",
                         t->text());
  }
  const Tensor& h = call.in(1);
  if (x->rank() != 2 || ih->rank() != 2 || hh->rank() != 2 || h->rank() != 2) {
    return runtime_error("[", call.op->name, "] input, hx and weights must be matrices, got ",
                         x->text(), ", ", h->text(), ", ", ih->text(), " and ", hh->text());
  }
  if (x->sizes[1] != ih->sizes[1]) {
    return runtime_error("input has inconsistent input_size: got ", x->sizes[1], " expected ",
                         ih->sizes[1]);
  }
  int64_t units = hh->sizes[1], gates = rnn_gates(kind);
  for (int i = 0; i < states; ++i) {
    const Tensor& t = call.in(1 + i);
    if (t->rank() != 2) {
      return runtime_error("hidden", i, " must be a matrix, got ", t->text());
    }
    if (t->sizes[0] != x->sizes[0]) {
      return runtime_error("Input batch size ", x->sizes[0], " doesn't match hidden", i,
                           " batch size ", t->sizes[0]);
    }
    if (t->sizes[1] != units) {
      return runtime_error("hidden", i, " has inconsistent hidden_size: got ", t->sizes[1],
                           ", expected ", units);
    }
  }
  if (hh->sizes[0] / gates != units || hh->sizes[0] % gates || ih->sizes[0] != hh->sizes[0]) {
    return runtime_error("[", call.op->name, "] weights must have ", gates, " * ", units,
                         " rows, got ", ih->text(), " and ", hh->text());
  }
  for (int i = 3; i < 5; ++i) {
    const Tensor& t = call.in(i + states);
    if (!t || (t->rank() == 1 && t->sizes[0] == hh->sizes[0])) continue;
    return runtime_error("[", call.op->name, "] biases must have ", hh->sizes[0], " elements, got ",
                         t->text());
  }
  return absl::OkStatus();
}

Tensors run_cell(const Call& call, RnnKind kind) {
  static const OpRef linear("nn.functional.linear");
  bool lstm = kind == RnnKind::kLstm, gru = kind == RnnKind::kGru;
  int states = lstm ? 2 : 1;
  if (lstm && call.list_sizes[0] != 2) {
    return Tensors(2, poisoned(runtime_error("lstm_cell expects two hidden states")));
  }
  absl::Status status = check_cell(call, kind, states);
  if (!status.ok()) return Tensors(states, poisoned(status));
  DType dtype = call.in(0)->dtype;
  bool narrow = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  Tensors in;
  for (const Tensor& t : call.inputs) {
    in.push_back(t && narrow ? cast(t, DType::kFloat32) : t);
  }
  Tensor ih = in[3 + states], hh = in[4 + states];
  Tensor bias = ih && hh && !gru ? add(ih, hh) : ih;
  if (!ih && !gru) bias = hh;
  RnnWalk walk;
  walk.gates = gradwire::call(linear, {in[0], in[1 + states], bias});
  walk.weight = in[2 + states];
  if (gru) walk.bias = hh;
  walk.hidden = in[1];
  if (lstm) walk.cell = in[2];
  walk.batch_sizes = {in[0]->sizes[0]};
  walk.kind = kind;
  Tensors results = rnn_walk(walk);
  Tensors out{results[1]};
  if (lstm) out.push_back(results[2]);
  for (Tensor& t : out) {
    if (narrow) t = cast(t, dtype);
  }
  return out;
}

template <RnnKind kind>
Tensors compose_cell(const Call& call) {
  return run_cell(call, kind);
}

// --- state of modules ----------------------------------------------------------------------------

Tensor uniform(Dims sizes, double bound, DType dtype) {
  static const OpRef op("uniform_");
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return poisoned(numel.status());
  return call_in_place(op, {new_tensor({dtype, std::move(sizes), {}})}, {-bound, bound});
}

absl::Status check_state(const Call& call) {
  int64_t in = call.attr(0).as_int(), hidden = call.attr(1).as_int();
  if (in < 0) return value_error("input_size must not be negative, got ", in);
  if (hidden <= 0) return value_error("hidden_size must be greater than zero");
  if (hidden > int64_t{1} << 40) return value_error("hidden_size is too large: ", hidden);
  return absl::OkStatus();
}

// Attributes input_size, hidden_size, bias, of an LSTM proj_size, dtype.
template <RnnKind kind, bool layer>
Tensors make_state(const Call& call) {
  constexpr bool kProjects = layer && kind == RnnKind::kLstm;
  int64_t in = call.attr(0).as_int(), units = call.attr(1).as_int();
  bool bias = call.attr(2).as_bool();
  int64_t projected = kProjects ? call.attr(3).as_int() : 0;
  DType dtype = call.attr(kProjects ? 4 : 3).as_dtype();
  if (projected < 0) {
    return {poisoned(
        value_error("proj_size should be a positive integer or zero to disable projections"))};
  }
  if (projected >= units) {
    return {poisoned(value_error("proj_size has to be smaller than hidden_size"))};
  }
  double bound = 1 / std::sqrt(static_cast<double>(units));
  int64_t gates = rnn_gates(kind) * units;
  Tensors state{uniform({gates, in}, bound, dtype),
                uniform({gates, projected ? projected : units}, bound, dtype),
                bias ? uniform({gates}, bound, dtype) : nullptr,
                bias ? uniform({gates}, bound, dtype) : nullptr};
  if (kProjects) {
    state.push_back(projected ? uniform({projected, units}, bound, dtype) : nullptr);
  }
  return state;
}

}  // namespace

void add_rnn_cell_rows(Catalog& c) {
  auto cell = [&](uint16_t number, const std::string& name, bool lstm, std::string_view doc,
                  ComposeFn compose) {
    auto& r = c.add(number, OpKind::kComposite,
                    name + "(Tensor input, " + (lstm ? "Tensor[]" : "Tensor") +
                        " hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) "
                        "-> " +
                        (lstm ? "(Tensor hidden, Tensor cell)" : "Tensor"),
                    doc);
    r.compose = compose;
    r.shape_rule = "rnn_cell";
    r.type_rule = "same";
  };
  cell(1320, "rnn_tanh_cell", false,
       "tanh(W_ih x + b_ih + W_hh h + b_hh) for input [N, I] and hx [N, H].",
       compose_cell<RnnKind::kTanh>);
  cell(1321, "rnn_relu_cell", false,
       "relu(W_ih x + b_ih + W_hh h + b_hh) for input [N, I] and hx [N, H].",
       compose_cell<RnnKind::kRelu>);
  cell(1322, "lstm_cell", true,
       "One step of an LSTM for input [N, I] and hx (h, c), both [N, H]; gates i, f, g, o.",
       compose_cell<RnnKind::kLstm>);
  cell(1323, "gru_cell", false,
       "One step of a GRU for input [N, I] and hx [N, H]; gates r, z, n, reset after the product.",
       compose_cell<RnnKind::kGru>);
  auto module = [&](uint16_t number, const std::string& name, bool layer, bool lstm,
                    ComposeFn compose, std::string forward) {
    bool projects = layer && lstm;
    auto& r =
        c.add(number, OpKind::kComposite,
              "nn." + name + "(int input_size, int hidden_size, bool bias=True, " +
                  (projects ? "int proj_size=0, " : "") + "*, dtype dtype) -> Tensor[]",
              std::string("The state of ") + (layer ? "one layer in one direction" : "the cell") +
                  ", uniform in +-1/sqrt(hidden_size).");
    r.compose = compose;
    r.check = check_state;
    r.module = std::make_unique<ModuleDef>();
    r.module->name = name;
    r.module->parameters = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    if (projects) r.module->parameters.push_back("weight_hr");
    r.module->forward = std::move(forward);
  };
  module(1330, "RNNCell", false, false, make_state<RnnKind::kTanh, false>, "rnn_tanh_cell");
  module(1331, "LSTMCell", false, true, make_state<RnnKind::kLstm, false>, "lstm_cell");
  module(1332, "GRUCell", false, false, make_state<RnnKind::kGru, false>, "gru_cell");
  module(1333, "RNN", true, false, make_state<RnnKind::kTanh, true>, "rnn_tanh");
  module(1334, "LSTM", true, true, make_state<RnnKind::kLstm, true>, "lstm");
  module(1335, "GRU", true, false, make_state<RnnKind::kGru, true>, "gru");
}

}  // namespace gradwire
