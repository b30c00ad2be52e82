// rnn_steps: a recurrent layer in one direction over all its time steps.
#include <cstring>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/rnn_steps.h"

namespace gradwire::cpu {
namespace {

// One layer's walk. Pointers are to row-major memory: gates and saved by data row, hidden and
// cell by sequence.
template <class C>
struct Walk {
  CellKind kind;
  int64_t units, width;  // of the cell, of the hidden state
  const C *gates, *weight, *bias, *projection;
  C *output, *hidden, *cell, *saved, *states;
  C* inner;  // [batch, units] before the projection; [batch, 3 units] of a GRU's hidden gates
  ThreadPool& pool;

  int64_t gate_count() const { return gates_of(kind); }

  // target [batch, gate columns] (+)= hidden weight^T for units [begin, begin + n).
  void hidden_gates(int64_t batch, int64_t begin, int64_t n, C beta, C* target) const {
    int64_t all = gate_count() * units;
    Matrix<const C> h = rows_at<const C>(hidden, batch, width);
    Matrix<const C> w = rows_at<const C>(weight, all, width);
    Matrix<C> to = rows_at(target, batch, all);
    for (int64_t g = 0; g < gate_count(); ++g) {
      gemm(C(1), h, w.block(g * units + begin, n, 0, width).transposed(), beta,
           to.block(0, batch, g * units + begin, n));
    }
  }

  void plain(int64_t batch, int64_t row, int64_t begin, int64_t n) const {
    C* out = output + row * units;
    hidden_gates(batch, begin, n, C(1), out);
    for (int64_t b = 0; b < batch; ++b) {
      C* y = out + b * units + begin;
      for_lanes<C>(n, [&](int64_t i, int64_t lanes) {
        auto v = load_lanes<C>(y + i, lanes, C(0));
        v = kind == CellKind::kTanh ? Simd<C>::tanh(v) : Simd<C>::max_nan(v, Simd<C>::set(0));
        store_lanes<C>(y + i, lanes, v);
      });
    }
  }

  void lstm(int64_t batch, int64_t row, int64_t begin, int64_t n) const {
    hidden_gates(batch, begin, n, C(1), saved + row * 4 * units);
    C* result = projection ? inner : output + row * units;
    for (int64_t b = 0; b < batch; ++b) {
      C* gate = saved + (row + b) * 4 * units + begin;
      C* c = cell + b * units + begin;
      C* kept = states + (row + b) * units + begin;
      C* y = result + b * units + begin;
      for_lanes<C>(n, [&](int64_t j, int64_t lanes) {
        auto at = [&](int g) { return load_lanes<C>(gate + g * units + j, lanes, C(0)); };
        auto i = sigmoid<C>(at(0)), f = sigmoid<C>(at(1)), o = sigmoid<C>(at(3));
        auto g = Simd<C>::tanh(at(2));
        auto next = f * load_lanes<C>(c + j, lanes, C(0)) + i * g;
        store_lanes<C>(gate + j, lanes, i);
        store_lanes<C>(gate + units + j, lanes, f);
        store_lanes<C>(gate + 2 * units + j, lanes, g);
        store_lanes<C>(gate + 3 * units + j, lanes, o);
        store_lanes<C>(c + j, lanes, next);
        store_lanes<C>(kept + j, lanes, next);
        store_lanes<C>(y + j, lanes, o * Simd<C>::tanh(next));
      });
    }
  }

  void gru(int64_t batch, int64_t row, int64_t begin, int64_t n) const {
    hidden_gates(batch, begin, n, C(0), inner);
    for (int64_t b = 0; b < batch; ++b) {
      const C* x = gates + (row + b) * 3 * units + begin;
      const C* own = inner + b * 3 * units + begin;
      const C* h = hidden + b * units + begin;
      C* kept = saved + (row + b) * 4 * units + begin;
      C* y = output + (row + b) * units + begin;
      for_lanes<C>(n, [&](int64_t j, int64_t lanes) {
        auto from = [&](int g) { return load_lanes<C>(x + g * units + j, lanes, C(0)); };
        auto self = [&](int g) {
          auto v = load_lanes<C>(own + g * units + j, lanes, C(0));
          return bias ? v + load_lanes<C>(bias + g * units + begin + j, lanes, C(0)) : v;
        };
        auto r = sigmoid<C>(from(0) + self(0)), z = sigmoid<C>(from(1) + self(1));
        auto turned = self(2);
        auto fresh = Simd<C>::tanh(from(2) + r * turned);
        auto old = load_lanes<C>(h + j, lanes, C(0));
        store_lanes<C>(kept + j, lanes, r);
        store_lanes<C>(kept + units + j, lanes, z);
        store_lanes<C>(kept + 2 * units + j, lanes, fresh);
        store_lanes<C>(kept + 3 * units + j, lanes, turned);
        store_lanes<C>(y + j, lanes, fresh + z * (old - fresh));
      });
    }
  }

  void step(int64_t batch, int64_t row) const {
    int64_t block = column_block(batch, units, gate_count() * width);
    pool.parallel_ranges(units, block, [&](int64_t begin, int64_t end) {
      if (kind == CellKind::kLstm) return lstm(batch, row, begin, end - begin);
      if (kind == CellKind::kGru) return gru(batch, row, begin, end - begin);
      plain(batch, row, begin, end - begin);
    });
    C* out = output + row * width;
    if (projection) {
      product(rows_at<const C>(inner, batch, units),
              rows_at<const C>(projection, width, units).transposed(), C(0),
              rows_at(out, batch, width), pool);
    }
    std::copy(out, out + batch * width, hidden);
  }
};

template <class C>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  const IntList& sizes = call.attributes[0].as_ints();
  auto kind = static_cast<CellKind>(call.attributes[2].as_int());
  StepOrder order(sizes, call.attributes[1].as_bool());
  DenseInput<C> gates(call.inputs[0], pool), weight(call.inputs[1], pool),
      bias(call.inputs[2], pool), projection(call.inputs[3], pool);
  DenseOutput<C> output(call.outputs[0], pool), hidden(call.outputs[1], pool),
      cell(call.outputs[2], pool), saved(call.outputs[3], pool), states(call.outputs[4], pool);
  int64_t units = call.inputs[1].sizes[0] / gates_of(kind), width = call.inputs[1].sizes[1];
  int64_t most = 0;
  for (int64_t b : sizes) most = std::max(most, b);
  int64_t inner = kind == CellKind::kGru ? 3 * units : projection.data() ? units : 0;
  Scratch scratch(static_cast<size_t>(most * inner) * sizeof(C) + 64);
  bool ok = gates.ok() && weight.ok() && bias.ok() && projection.ok() && output.ok() &&
            hidden.ok() && cell.ok() && saved.ok() && states.ok() && scratch.data();
  if (!ok) return scratch_error();
  copy_in<C>(call.inputs[4], hidden.data(), pool);
  if (call.inputs[5].present()) copy_in<C>(call.inputs[5], cell.data(), pool);
  // Where the gates' sums are made: a GRU keeps the two parts apart.
  C* sums = kind == CellKind::kLstm ? saved.data() : output.data();
  int64_t elements = call.inputs[0].numel();
  if (kind != CellKind::kGru && elements) {
    std::memcpy(sums, gates.data(), static_cast<size_t>(elements) * sizeof(C));
  }
  Walk<C> walk{kind,
               units,
               width,
               gates.data(),
               weight.data(),
               bias.data(),
               projection.data(),
               output.data(),
               hidden.data(),
               cell.data(),
               saved.data(),
               states.data(),
               scratch.as<C>(),
               pool};
  for (int64_t i = 0; i < order.steps(); ++i) {
    int64_t t = order.time(i);
    if (order.batch(t)) walk.step(order.batch(t), order.offset(t));
  }
  for (auto* out : {&output, &hidden, &cell, &saved, &states}) out->store();
  return absl::OkStatus();
}

absl::Status rnn_steps(const KernelCall& call, Context& context) {
  DType dtype = call.outputs[0].dtype;
  if (dtype == DType::kFloat32) return forward<float>(call, context.pool);
  if (dtype == DType::kFloat64) return forward<double>(call, context.pool);
  return dtype_error("rnn_steps", dtype);
}
GW_CPU_KERNEL("rnn_steps", rnn_steps);

}  // namespace
}  // namespace gradwire::cpu
