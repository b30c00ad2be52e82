// rnn_steps_backward: the gradients of a recurrent layer in one direction, walked back in time.
#include <cstring>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/rnn_steps.h"

namespace gradwire::cpu {
namespace {

template <class C>
struct WalkBack {
  CellKind kind;
  int64_t units, width;
  const StepOrder& order;
  const C *doutput, *saved, *states, *output, *weight, *projection, *hidden, *cell;
  C *dgates, *dhidden, *dcell;
  C* own;    // [rows, 3 units]: a GRU's gradients on the hidden side
  C* inner;  // [rows, units]: what was projected
  C* outer;  // [rows, width]: the gradients after the projection
  C* part;   // [batch, units]: the gradient before the projection
  ThreadPool& pool;

  const C* state_before(const C* all, const C* first, int64_t cols, int64_t t, int64_t n) const {
    int64_t row = order.previous(t, n);
    return row < 0 ? first + n * cols : all + row * cols;
  }

  void plain_row(int64_t row, const C* dh) const {
    const C* y = output + row * units;
    C* to = dgates + row * units;
    auto zero = Simd<C>::set(0), one = Simd<C>::set(1);
    for_lanes<C>(units, [&](int64_t j, int64_t lanes) {
      auto v = load_lanes<C>(y + j, lanes, C(0)), g = load_lanes<C>(dh + j, lanes, C(0));
      if (kind == CellKind::kTanh) {
        store_lanes<C>(to + j, lanes, g * (one - v * v));
      } else {
        store_lanes<C>(to + j, lanes, v > zero ? g : zero);
      }
    });
  }

  void lstm_row(int64_t t, int64_t n, int64_t row, const C* dh) const {
    const C* gate = saved + row * 4 * units;
    const C* c = states + row * units;
    const C* before = state_before(states, cell, units, t, n);
    C* dc = dcell + n * units;
    C* to = dgates + row * 4 * units;
    auto one = Simd<C>::set(1);
    for_lanes<C>(units, [&](int64_t j, int64_t lanes) {
      auto at = [&](int g) { return load_lanes<C>(gate + g * units + j, lanes, C(0)); };
      auto i = at(0), f = at(1), g = at(2), o = at(3);
      auto bent = Simd<C>::tanh(load_lanes<C>(c + j, lanes, C(0)));
      auto d = load_lanes<C>(dh + j, lanes, C(0));
      auto down = load_lanes<C>(dc + j, lanes, C(0)) + d * o * (one - bent * bent);
      auto put = [&](int k, auto v) { store_lanes<C>(to + k * units + j, lanes, v); };
      put(0, down * g * i * (one - i));
      put(1, down * load_lanes<C>(before + j, lanes, C(0)) * f * (one - f));
      put(2, down * i * (one - g * g));
      put(3, d * bent * o * (one - o));
      store_lanes<C>(dc + j, lanes, down * f);
      if (projection) store_lanes<C>(inner + row * units + j, lanes, o * bent);
    });
  }

  void gru_row(int64_t t, int64_t n, int64_t row, C* dh) const {
    const C* kept = saved + row * 4 * units;
    const C* before = state_before(output, hidden, units, t, n);
    C* to = dgates + row * 3 * units;
    C* self = own + row * 3 * units;
    auto one = Simd<C>::set(1);
    for_lanes<C>(units, [&](int64_t j, int64_t lanes) {
      auto at = [&](int g) { return load_lanes<C>(kept + g * units + j, lanes, C(0)); };
      auto r = at(0), z = at(1), fresh = at(2), turned = at(3);
      auto d = load_lanes<C>(dh + j, lanes, C(0));
      auto dfresh = d * (one - z) * (one - fresh * fresh);
      auto dz = d * (load_lanes<C>(before + j, lanes, C(0)) - fresh) * z * (one - z);
      auto dr = dfresh * turned * r * (one - r);
      auto put = [&](C* p, int k, auto v) { store_lanes<C>(p + k * units + j, lanes, v); };
      put(to, 0, dr);
      put(to, 1, dz);
      put(to, 2, dfresh);
      put(self, 0, dr);
      put(self, 1, dz);
      put(self, 2, dfresh * r);
      store_lanes<C>(dh + j, lanes, d * z);
    });
  }

  void step(int64_t t) const {
    int64_t batch = order.batch(t), start = order.offset(t), all = gates_of(kind) * units;
    if (doutput) {
      const C* from = doutput + start * width;
      for (int64_t i = 0; i < batch * width; ++i) dhidden[i] += from[i];
    }
    if (projection) {
      std::copy(dhidden, dhidden + batch * width, outer + start * width);
      product(rows_at<const C>(dhidden, batch, width), rows_at<const C>(projection, width, units),
              C(0), rows_at(part, batch, units), pool);
    }
    pool.parallel_ranges(batch, row_grain(units), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        C* dh = (projection ? part : dhidden) + n * units;
        if (kind == CellKind::kLstm) {
          lstm_row(t, n, start + n, dh);
        } else if (kind == CellKind::kGru) {
          gru_row(t, n, start + n, dh);
        } else {
          plain_row(start + n, dh);
        }
      }
    });
    const C* d = (kind == CellKind::kGru ? own : dgates) + start * all;
    product(rows_at<const C>(d, batch, all), rows_at<const C>(weight, all, width),
            C(kind == CellKind::kGru ? 1 : 0), rows_at(dhidden, batch, width), pool);
  }

  // `previous` [rows, width]: the hidden state that each row started from.
  void gather_hidden(C* previous) const {
    for (int64_t t = 0; t < order.steps(); ++t) {
      for (int64_t n = 0; n < order.batch(t); ++n) {
        const C* h = state_before(output, hidden, width, t, n);
        std::copy(h, h + width, previous + (order.offset(t) + n) * width);
      }
    }
  }
};

template <class C>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  auto kind = static_cast<CellKind>(call.attributes[2].as_int());
  bool gru = kind == CellKind::kGru;
  StepOrder order(call.attributes[0].as_ints(), call.attributes[1].as_bool());
  auto input = [&](int i) { return DenseInput<C>(call.inputs[i], pool); };
  DenseInput<C> doutput = input(0), saved = input(3), states = input(4), output = input(5),
                weight = input(6), projection = input(7), hidden = input(8), cell = input(9);
  DenseOutput<C> dgates(call.outputs[0], pool), dweight(call.outputs[1], pool),
      dbias(call.outputs[2], pool), dprojection(call.outputs[3], pool),
      dhidden(call.outputs[4], pool), dcell(call.outputs[5], pool);
  int64_t all = call.inputs[6].sizes[0], width = call.inputs[6].sizes[1], rows = order.rows();
  int64_t units = all / gates_of(kind);
  auto room = [&](int64_t cols) {
    return Scratch(static_cast<size_t>(rows * cols) * sizeof(C) + 64);
  };
  bool projects = projection.data() != nullptr;
  Scratch own = room(gru ? all : 0), inner = room(projects ? units : 0),
          outer = room(projects ? width : 0), part = room(projects ? units : 0),
          previous = room(width);
  for (const auto* s : {&own, &inner, &outer, &part, &previous}) {
    if (!s->data()) return scratch_error();
  }
  for (const auto* in :
       {&doutput, &saved, &states, &output, &weight, &projection, &hidden, &cell}) {
    if (!in->ok()) return scratch_error();
  }
  for (const auto* out : {&dgates, &dweight, &dbias, &dprojection, &dhidden, &dcell}) {
    if (!out->ok()) return scratch_error();
  }
  auto start = [&](const TensorView& from, const TensorView& like, C* to) {
    if (from.present()) {
      copy_in<C>(from, to, pool);
    } else {
      std::fill(to, to + like.numel(), C(0));
    }
  };
  start(call.inputs[1], call.outputs[4], dhidden.data());
  start(call.inputs[2], call.outputs[5], dcell.data());
  WalkBack<C> walk{kind,          units,         width,         order,          doutput.data(),
                   saved.data(),  states.data(), output.data(), weight.data(),  projection.data(),
                   hidden.data(), cell.data(),   dgates.data(), dhidden.data(), dcell.data(),
                   own.as<C>(),   inner.as<C>(), outer.as<C>(), part.as<C>(),   pool};
  for (int64_t i = order.steps() - 1; i >= 0; --i) {
    if (order.batch(order.time(i))) walk.step(order.time(i));
  }
  walk.gather_hidden(previous.as<C>());
  const C* d = gru ? own.as<C>() : dgates.data();
  product(rows_at<const C>(d, rows, all).transposed(),
          rows_at<const C>(previous.as<C>(), rows, width), C(0),
          rows_at(dweight.data(), all, width), pool);
  if (gru) {
    std::fill(dbias.data(), dbias.data() + all, C(0));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < all; ++j) dbias.data()[j] += d[r * all + j];
    }
  }
  if (projects) {
    product(rows_at<const C>(outer.as<C>(), rows, width).transposed(),
            rows_at<const C>(inner.as<C>(), rows, units), C(0),
            rows_at(dprojection.data(), width, units), pool);
  }
  for (auto* out : {&dgates, &dweight, &dbias, &dprojection, &dhidden, &dcell}) out->store();
  return absl::OkStatus();
}

absl::Status rnn_steps_backward(const KernelCall& call, Context& context) {
  DType dtype = call.outputs[0].dtype;
  if (dtype == DType::kFloat32) return backward<float>(call, context.pool);
  if (dtype == DType::kFloat64) return backward<double>(call, context.pool);
  return dtype_error("rnn_steps_backward", dtype);
}
GW_CPU_KERNEL("rnn_steps_backward", rnn_steps_backward);

}  // namespace
}  // namespace gradwire::cpu
