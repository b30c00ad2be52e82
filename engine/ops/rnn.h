// What the rows of recurrent nets share.
#pragma once

#include <vector>

#include "engine/ops/call.h"

namespace gradwire {

// The attribute `kind` of rnn_steps.
enum class RnnKind : int64_t { kTanh = 0, kRelu = 1, kLstm = 2, kGru = 3 };

inline int64_t rnn_gates(RnnKind kind) {
  return kind == RnnKind::kLstm ? 4 : kind == RnnKind::kGru ? 3 : 1;
}

// Steps of a sequence at most: each is an entry of a list.
inline constexpr int64_t kRnnStepsMost = int64_t{1} << 24;

// The walk of one layer in one direction, as rnn_steps defines it.
struct RnnWalk {
  Tensor gates;       // [rows, gates * units]: what the input gives, biases included
  Tensor weight;      // [gates * units, width]
  Tensor bias;        // GRU: the hidden side's, or null
  Tensor projection;  // LSTM: [width, units], or null
  Tensor hidden;      // [batch, width]
  Tensor cell;        // LSTM: [batch, units]
  IntList batch_sizes;
  bool reverse = false;
  RnnKind kind = RnnKind::kTanh;
};

// Output [rows, width], last hidden [batch, width], last cell ([batch, units], or empty) by one
// command to the device.
Tensors rnn_walk(const RnnWalk& walk);

// The same composed of rows that have gradients.
Tensors rnn_compose(const RnnWalk& walk);

// The gradients of gates, weight, bias, projection, hidden and cell, composed of rows that have
// gradients; null for what is absent. The incoming ones may be null.
Tensors rnn_gradients(const RnnWalk& walk, const Tensor& doutput, const Tensor& dhidden,
                      const Tensor& dcell);

}  // namespace gradwire
