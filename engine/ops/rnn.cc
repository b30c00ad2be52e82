#include "engine/ops/rnn.h"

#include <numeric>

namespace gradwire {
namespace {

Tensor narrow(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  static const OpRef op("narrow");
  return call(op, {t}, {dim, start, length});
}

Tensor cat(Tensors parts, int64_t dim) {
  static const OpRef op("cat");
  return parts.size() == 1 ? parts[0] : call_list(op, std::move(parts), {dim})[0];
}

Tensor sigmoid(const Tensor& t) {
  static const OpRef op("sigmoid");
  return call(op, {t});
}

Tensor tanh(const Tensor& t) {
  static const OpRef op("tanh");
  return call(op, {t});
}

Tensor relu(const Tensor& t) {
  static const OpRef op("relu");
  return call(op, {t});
}

// 1 where positive, else 0.
Tensor positive(const Tensor& t) {
  static const OpRef op("sign");
  return call(op, {t});
}

// v (1 - v) and 1 - v v: the derivatives of sigmoid and tanh by their results.
Tensor sigmoid_slope(const Tensor& v) {
  return sub(v, mul(v, v));
}
Tensor tanh_slope(const Tensor& v) {
  return add(neg(mul(v, v)), full({}, 1, v->dtype));
}

// The first rows of `all` replaced.
Tensor with_first(const Tensor& all, const Tensor& first, int64_t rows, int64_t batch) {
  return rows == batch ? first : cat({first, narrow(all, 0, rows, batch - rows)}, 0);
}

struct Step {
  int64_t offset = 0;
  int64_t rows = 0;
  Tensor hidden, cell;  // before
  Tensors gates;        // activated; of a GRU r, z, n and the hidden part of n
  Tensor bent;          // LSTM: tanh of the new cell
  Tensor inner;         // before the projection
  Tensor output;
};

struct Trace {
  std::vector<Step> steps;         // in the order of computation
  std::vector<const Step*> times;  // by time
  Tensor hidden, cell;             // after the last
};

Trace run(const RnnWalk& w, int64_t batch, int64_t units) {
  Trace trace;
  auto count = static_cast<int64_t>(w.batch_sizes.size());
  IntList offsets(count, 0);
  for (int64_t t = 1; t < count; ++t) offsets[t] = offsets[t - 1] + w.batch_sizes[t - 1];
  Tensor turned = transpose(w.weight, 0, 1), h = w.hidden, c = w.cell;
  trace.steps.resize(count);
  trace.times.resize(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t t = w.reverse ? count - 1 - i : i, rows = w.batch_sizes[t];
    Step& s = trace.steps[i];
    trace.times[t] = &s;
    s.offset = offsets[t];
    s.rows = rows;
    s.hidden = rows == batch ? h : narrow(h, 0, 0, rows);
    Tensor x = narrow(w.gates, 0, s.offset, rows), own = matmul(s.hidden, turned);
    if (w.bias) own = add(own, w.bias);
    auto part = [&](const Tensor& of, int64_t k) { return narrow(of, 1, k * units, units); };
    Tensor fresh_cell;
    switch (w.kind) {
      case RnnKind::kTanh:
        s.output = tanh(add(x, own));
        break;
      case RnnKind::kRelu:
        s.output = relu(add(x, own));
        break;
      case RnnKind::kLstm: {
        Tensor sum = add(x, own);
        s.cell = rows == batch ? c : narrow(c, 0, 0, rows);
        s.gates = {sigmoid(part(sum, 0)), sigmoid(part(sum, 1)), tanh(part(sum, 2)),
                   sigmoid(part(sum, 3))};
        fresh_cell = add(mul(s.gates[1], s.cell), mul(s.gates[0], s.gates[2]));
        s.bent = tanh(fresh_cell);
        s.inner = mul(s.gates[3], s.bent);
        s.output = w.projection ? matmul(s.inner, transpose(w.projection, 0, 1)) : s.inner;
        c = with_first(c, fresh_cell, rows, batch);
        break;
      }
      case RnnKind::kGru: {
        Tensor r = sigmoid(add(part(x, 0), part(own, 0)));
        Tensor z = sigmoid(add(part(x, 1), part(own, 1)));
        Tensor n = tanh(add(part(x, 2), mul(r, part(own, 2))));
        s.gates = {r, z, n, part(own, 2)};
        s.output = add(n, mul(z, sub(s.hidden, n)));
        break;
      }
    }
    h = with_first(h, s.output, rows, batch);
  }
  trace.hidden = h;
  trace.cell = c;
  return trace;
}

int64_t units_of(const RnnWalk& w) {
  return w.weight->sizes[0] / rnn_gates(w.kind);
}

// Steps without a sequence say nothing.
RnnWalk without_empty(const RnnWalk& walk) {
  RnnWalk w = walk;
  std::erase(w.batch_sizes, 0);
  return w;
}

}  // namespace

Tensors rnn_walk(const RnnWalk& w) {
  static const OpRef op("rnn_steps");
  Tensors all = call_many(op, {w.gates, w.weight, w.bias, w.projection, w.hidden, w.cell},
                          {w.batch_sizes, w.reverse, static_cast<int64_t>(w.kind)});
  all.resize(3);
  return all;
}

Tensors rnn_compose(const RnnWalk& walk) {
  RnnWalk w = without_empty(walk);
  for (const Tensor& t : {w.gates, w.weight, w.hidden, w.cell}) {
    if (t && t->poison) return Tensors(3, t);
  }
  DType dtype = w.weight->dtype;
  Tensor none = zeros(Dims{0}, dtype);
  int64_t width = w.weight->sizes[1];
  if (w.batch_sizes.empty()) {
    return {zeros(Dims{0, width}, dtype), w.hidden, w.cell ? w.cell : none};
  }
  Trace trace = run(w, w.hidden->sizes[0], units_of(w));
  Tensors outputs;
  for (const Step* s : trace.times) outputs.push_back(s->output);
  return {cat(std::move(outputs), 0), trace.hidden, w.cell ? trace.cell : none};
}

Tensors rnn_gradients(const RnnWalk& walk, const Tensor& doutput, const Tensor& dhidden,
                      const Tensor& dcell) {
  RnnWalk w = without_empty(walk);
  for (const Tensor& t : {w.gates, w.weight, w.bias, w.projection, w.hidden, w.cell}) {
    if (t && t->poison) return Tensors(6, t);
  }
  auto like = [](const Tensor& t) { return t ? zeros(t->sizes, t->dtype) : nullptr; };
  Tensor dh = dhidden ? dhidden : like(w.hidden), dc = dcell ? dcell : like(w.cell);
  if (w.batch_sizes.empty()) {
    return {like(w.gates), like(w.weight), like(w.bias), like(w.projection), dh, dc};
  }
  int64_t units = units_of(w), batch = w.hidden->sizes[0];
  Trace trace = run(w, batch, units);
  auto count = static_cast<int64_t>(trace.steps.size());
  Tensors dgates(count), own(count), before(count), outer(count), inner(count);
  for (int64_t i = count - 1; i >= 0; --i) {
    const Step& s = trace.steps[i];
    int64_t t = w.reverse ? count - 1 - i : i;
    Tensor d = s.rows == batch ? dh : narrow(dh, 0, 0, s.rows);
    if (doutput) d = add(d, narrow(doutput, 0, s.offset, s.rows));
    before[t] = s.hidden;
    Tensor kept;  // the part of d that goes straight on
    switch (w.kind) {
      case RnnKind::kTanh:
        dgates[t] = mul(d, tanh_slope(s.output));
        break;
      case RnnKind::kRelu:
        dgates[t] = mul(d, positive(s.output));
        break;
      case RnnKind::kLstm: {
        outer[t] = d;
        inner[t] = s.inner;
        if (w.projection) d = matmul(d, w.projection);
        const Tensor &in = s.gates[0], &f = s.gates[1], &g = s.gates[2], &o = s.gates[3];
        Tensor down = s.rows == batch ? dc : narrow(dc, 0, 0, s.rows);
        down = add(down, mul(mul(d, o), tanh_slope(s.bent)));
        dgates[t] =
            cat({mul(mul(down, g), sigmoid_slope(in)), mul(mul(down, s.cell), sigmoid_slope(f)),
                 mul(mul(down, in), tanh_slope(g)), mul(mul(d, s.bent), sigmoid_slope(o))},
                1);
        dc = with_first(dc, mul(down, f), s.rows, batch);
        break;
      }
      case RnnKind::kGru: {
        const Tensor &r = s.gates[0], &z = s.gates[1], &n = s.gates[2], &turned = s.gates[3];
        Tensor dn = mul(sub(d, mul(d, z)), tanh_slope(n));
        Tensor dz = mul(mul(d, sub(s.hidden, n)), sigmoid_slope(z));
        Tensor dr = mul(mul(dn, turned), sigmoid_slope(r));
        dgates[t] = cat({dr, dz, dn}, 1);
        own[t] = cat({dr, dz, mul(dn, r)}, 1);
        kept = mul(d, z);
        break;
      }
    }
    d = matmul(own[t] ? own[t] : dgates[t], w.weight);
    if (kept) d = add(d, kept);
    dh = with_first(dh, d, s.rows, batch);
  }
  bool gru = w.kind == RnnKind::kGru;
  Tensor all = cat(std::move(dgates), 0), self = gru ? cat(std::move(own), 0) : all;
  auto product = [](const Tensor& a, const Tensor& b) { return matmul(transpose(a, 0, 1), b); };
  return {all,
          product(self, cat(std::move(before), 0)),
          w.bias ? sum(self, {0}, false) : nullptr,
          w.projection ? product(cat(std::move(outer), 0), cat(std::move(inner), 0)) : nullptr,
          dh,
          w.cell ? dc : nullptr};
}

}  // namespace gradwire
