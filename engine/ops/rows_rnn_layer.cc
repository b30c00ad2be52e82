// Rows 1310 to 1319: recurrent nets of several layers, one or both directions, as one command.
#include "engine/ops/rnn.h"

namespace gradwire {
namespace {

Tensor cat(Tensors parts, int64_t dim) {
  static const OpRef op("cat");
  return parts.size() == 1 ? parts[0] : call_list(op, std::move(parts), {dim})[0];
}

Tensor stack(Tensors parts) {
  static const OpRef op("stack");
  return call_list(op, std::move(parts), {0})[0];
}

Tensor select(const Tensor& t, int64_t index) {
  static const OpRef op("select");
  return call(op, {t}, {0, index});
}

// A call's arguments, named.
struct Net {
  RnnKind kind;
  Tensor input;
  Tensors first;   // hidden and, of an LSTM, cell: [layers * directions, batch, width]; or none
  Tensors params;  // by layer and direction: weight_ih, weight_hh, bias_ih, bias_hh, weight_hr
  bool biases, train, both, batch_first;
  int64_t layers;
  double dropout;
  bool packed;
  IntList batch_sizes;

  int64_t directions() const { return both ? 2 : 1; }
  int64_t per_layer() const {
    return static_cast<int64_t>(params.size()) / (layers * directions());
  }
  bool projects() const { return per_layer() == (biases ? 5 : 3); }
  const Tensor& param(int64_t layer, int64_t direction, int64_t i) const {
    return params[(layer * directions() + direction) * per_layer() + i];
  }
  Tensor bias(int64_t layer, int64_t direction, int64_t i) const {
    return biases ? param(layer, direction, 2 + i) : nullptr;
  }
  // 0: hidden state, 1: cell.
  int64_t width(int i) const {
    return i == 1 ? params[1]->sizes[0] / rnn_gates(kind) : params[1]->sizes[1];
  }
};

Net net_of(const Call& c, RnnKind kind) {
  Net net;
  net.kind = kind;
  net.input = c.in(0);
  bool lstm = kind == RnnKind::kLstm;
  int states = lstm ? c.list_sizes[0] : 1, params = c.list_sizes[lstm ? 1 : 0];
  for (int i = 0; i < states; ++i) {
    if (c.in(1 + i)) net.first.push_back(c.in(1 + i));
  }
  for (int i = 0; i < params; ++i) net.params.push_back(c.in(1 + states + i));
  net.biases = c.attr(0).as_bool();
  net.layers = c.attr(1).as_int();
  net.dropout = c.attr(2).as_double();
  net.train = c.attr(3).as_bool();
  net.both = c.attr(4).as_bool();
  net.batch_first = c.attr(5).as_bool();
  net.packed = !c.attr(6).none();
  net.batch_sizes = c.attr(6).as_ints();
  return net;
}

absl::Status check_params(const Net& net) {
  bool lstm = net.kind == RnnKind::kLstm;
  int64_t count = static_cast<int64_t>(net.params.size()), each = net.biases ? 4 : 2;
  if (net.layers <= 0 || net.layers > count) {
    return runtime_error("num_layers must be positive and have its weights, got ", net.layers,
                         " layers and ", count, " weights");
  }
  int64_t walks = net.layers * net.directions();
  if (count != walks * each && !(lstm && count == walks * (each + 1))) {
    return runtime_error("expected ", walks * each, " weights and biases for ", net.layers,
                         " layers in ", net.directions(), " directions, got ", count);
  }
  for (const Tensor& t : net.params) {
    if (t->dtype == net.input->dtype) continue;
    return value_error("RNN input dtype (", std::string(dtype_name(net.input->dtype)),
                       ") does not match weight dtype (", std::string(dtype_name(t->dtype)),
                       "). Convert input: input.to(", std::string(dtype_name(t->dtype)),
                       "), or convert model: model.to(", std::string(dtype_name(net.input->dtype)),
                       ")");
  }
  if (net.params[1]->rank() != 2 || net.params[0]->rank() != 2) {
    return runtime_error("expected weights of 2 dimensions, got ", net.params[0]->text(), " and ",
                         net.params[1]->text());
  }
  int64_t hidden = net.width(0), units = net.width(1), gates = rnn_gates(net.kind) * units;
  int64_t features = net.params[0]->sizes[1];
  for (int64_t l = 0; l < net.layers; ++l) {
    for (int64_t d = 0; d < net.directions(); ++d) {
      auto wants = [&](int64_t i, Dims sizes) -> absl::Status {
        const Tensor& t = net.param(l, d, i);
        if (t->sizes == sizes) return absl::OkStatus();
        return runtime_error("weight ", i, " of layer ", l, ", direction ", d, " must have sizes ",
                             shape_text(sizes), ", got ", t->text());
      };
      GW_RETURN_IF_ERROR(wants(0, {gates, features}));
      GW_RETURN_IF_ERROR(wants(1, {gates, hidden}));
      for (int64_t i = 2; net.biases && i < 4; ++i) GW_RETURN_IF_ERROR(wants(i, {gates}));
      if (net.projects()) GW_RETURN_IF_ERROR(wants(each, {hidden, units}));
    }
    features = hidden * net.directions();
  }
  if (units <= 0 || (!net.projects() && hidden != units)) {
    return runtime_error("hidden_size must be greater than zero and fit weight_hh, got ",
                         net.params[1]->text());
  }
  return absl::OkStatus();
}

absl::Status check_net(const Net& net) {
  const Tensor& x = net.input;
  if (!is_floating(x->dtype)) {
    return not_implemented_error("recurrent nets are not implemented for '",
                                 std::string(dtype_name(x->dtype)), "'");
  }
  if (x->rank() != (net.packed ? 2 : 3)) {
    return runtime_error("input must have ", net.packed ? 2 : 3, " dimensions, got ", x->rank());
  }
  GW_RETURN_IF_ERROR(check_params(net));
  if (!(net.dropout >= 0 && net.dropout <= 1)) {
    return value_error("dropout should be a number in range [0, 1], got ", net.dropout);
  }
  if (x->sizes.back() != net.params[0]->sizes[1]) {
    return runtime_error("input.size(-1) must be equal to input_size. Expected ",
                         net.params[0]->sizes[1], ", got ", x->sizes.back());
  }
  int64_t steps =
      net.packed ? static_cast<int64_t>(net.batch_sizes.size()) : x->sizes[net.batch_first ? 1 : 0];
  if (steps <= 0) return runtime_error("Expected sequence length to be larger than 0 in RNN");
  if (steps > kRnnStepsMost) {
    return runtime_error("Expected sequences of at most ", kRnnStepsMost, " steps, but got ",
                         steps);
  }
  int64_t batch = net.packed ? net.batch_sizes[0] : x->sizes[net.batch_first ? 0 : 1];
  int64_t left = net.packed ? x->sizes[0] : 0, last = batch;
  for (int64_t b : net.batch_sizes) {
    if (b <= 0 || b > last || b > left) {
      return runtime_error(
          "batch_sizes must be positive, must not increase and must add up to the rows of input");
    }
    left -= b;
    last = b;
  }
  if (left) return runtime_error("batch_sizes must add up to the rows of input");
  size_t states = net.kind == RnnKind::kLstm ? 2 : 1;
  if (!net.first.empty() && net.first.size() != states) {
    return runtime_error("lstm expects two hidden states");
  }
  for (size_t i = 0; i < net.first.size(); ++i) {
    const Tensor& t = net.first[i];
    Dims sizes{net.layers * net.directions(), batch, net.width(static_cast<int>(i))};
    if (t->sizes != sizes) {
      std::string name = states == 1 ? "hidden" : absl::StrCat("hidden[", i, "]");
      return runtime_error("Expected ", name, " size (", sizes[0], ", ", sizes[1], ", ", sizes[2],
                           "), got ", shape_text(t->sizes));
    }
    if (t->dtype != x->dtype) {
      return runtime_error("Input and hidden tensors are not the same dtype, found input tensor ",
                           "with ", std::string(dtype_name(x->dtype)), " and hidden tensor with ",
                           std::string(dtype_name(t->dtype)));
    }
  }
  return absl::OkStatus();
}

// 16-bit floats compute in float32.
void widen(Net& net) {
  for (Tensor& t : net.first) t = cast(t, DType::kFloat32);
  for (Tensor& t : net.params) t = cast(t, DType::kFloat32);
  net.input = cast(net.input, DType::kFloat32);
}

// Output, last hidden and, of an LSTM, last cell.
Tensors run(Net net) {
  static const OpRef linear("nn.functional.linear"), dropout("nn.functional.dropout");
  bool lstm = net.kind == RnnKind::kLstm, gru = net.kind == RnnKind::kGru;
  absl::Status status = check_net(net);
  if (!status.ok()) return Tensors(lstm ? 3 : 2, poisoned(status));
  DType dtype = net.input->dtype;
  bool narrow = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (narrow) widen(net);
  Tensor x = net.input;
  if (!net.packed) {
    if (net.batch_first) x = transpose(x, 0, 1);
    net.batch_sizes = IntList(x->sizes[0], x->sizes[1]);
    x = reshape(x, Dims{x->sizes[0] * x->sizes[1], x->sizes[2]});
  }
  int64_t steps = static_cast<int64_t>(net.batch_sizes.size()), batch = net.batch_sizes[0];
  auto empty = [&](int i) { return zeros(Dims{batch, net.width(i)}, x->dtype); };
  Tensor no_hidden = net.first.empty() ? empty(0) : nullptr;
  Tensor no_cell = net.first.empty() && lstm ? empty(1) : nullptr;
  Tensors hidden, cells;
  for (int64_t l = 0; l < net.layers; ++l) {
    Tensors outputs;
    for (int64_t d = 0; d < net.directions(); ++d) {
      int64_t at = l * net.directions() + d;
      // The two biases of a gate are one, but for the GRU's: its reset comes between.
      Tensor bias = net.bias(l, d, 0);
      if (bias && !gru) bias = add(bias, net.bias(l, d, 1));
      RnnWalk walk;
      walk.gates = call(linear, {x, net.param(l, d, 0), bias});
      walk.weight = net.param(l, d, 1);
      if (gru) walk.bias = net.bias(l, d, 1);
      if (net.projects()) walk.projection = net.param(l, d, net.biases ? 4 : 2);
      walk.hidden = no_hidden ? no_hidden : select(net.first[0], at);
      if (lstm) walk.cell = no_cell ? no_cell : select(net.first[1], at);
      walk.batch_sizes = net.batch_sizes;
      walk.reverse = d == 1;
      walk.kind = net.kind;
      Tensors results = rnn_walk(walk);
      outputs.push_back(results[0]);
      hidden.push_back(results[1]);
      cells.push_back(results[2]);
    }
    x = cat(std::move(outputs), 1);
    if (net.train && net.dropout > 0 && l + 1 < net.layers) {
      x = call(dropout, {x}, {net.dropout, true});
    }
    if (x->poison) return Tensors(lstm ? 3 : 2, x);
  }
  if (!net.packed) {
    x = reshape(x, Dims{steps, batch, x->sizes[1]});
    if (net.batch_first) x = transpose(x, 0, 1);
  }
  Tensors all{x, stack(std::move(hidden))};
  if (lstm) all.push_back(stack(std::move(cells)));
  for (Tensor& t : all) {
    if (narrow) t = cast(t, dtype);
  }
  return all;
}

template <RnnKind kind>
Tensors compose_net(const Call& call) {
  return run(net_of(call, kind));
}

}  // namespace

void add_rnn_layer_rows(Catalog& c) {
  auto row = [&](uint16_t number, const std::string& name, const std::string& states,
                 const std::string& results, const std::string& doc, ComposeFn compose) {
    auto& r = c.add(number, OpKind::kComposite,
                    name + "(Tensor input, " + states +
                        " hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
                        "bool train, bool bidirectional, bool batch_first, "
                        "int[]? batch_sizes=None) -> (Tensor output, Tensor hidden" +
                        results + ")",
                    doc +
                        " Input [T, N, I] ([N, T, I] with batch_first; packed rows [R, I] with "
                        "batch_sizes); params by layer and direction: weight_ih, weight_hh, "
                        "bias_ih, bias_hh. Zeros where hx is absent.");
    r.compose = compose;
    r.shape_rule = "rnn";
    r.type_rule = "same";
  };
  row(1310, "rnn_tanh", "Tensor?", "", "h' = tanh(W_ih x + b_ih + W_hh h + b_hh).",
      compose_net<RnnKind::kTanh>);
  row(1311, "rnn_relu", "Tensor?", "", "h' = relu(W_ih x + b_ih + W_hh h + b_hh).",
      compose_net<RnnKind::kRelu>);
  row(1312, "lstm", "Tensor[]", ", Tensor cell",
      "Gates i, f, g, o: c' = f c + i g, h' = o tanh(c'), projected by weight_hr where params has "
      "it.",
      compose_net<RnnKind::kLstm>);
  row(1313, "gru", "Tensor?", "",
      "Gates r, z, n = tanh(W_in x + b_in + r (W_hn h + b_hn)): h' = (1 - z) n + z h.",
      compose_net<RnnKind::kGru>);
}

}  // namespace gradwire
