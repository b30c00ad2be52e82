// What the classification losses share: class targets, their weights and the reduction.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/attribute.h"
#include "kernels/cpu/dense.h"

namespace gradwire::cpu {

enum class Reduction { kNone, kMean, kSum };

// "none", "mean" or "sum"; mean for anything else, which dispatch has refused.
Reduction reduction_of(const Attribute& attribute);

// Scores [N, C, d1, ...] (or [C]) with class targets [N, d1, ...] (or 0-dim), row by row.
struct ClassRows {
  IndexMap outer, inner;  // of the scores
  int64_t rows = 0;
  int64_t classes = 0;

  explicit ClassRows(const TensorView& scores);
};

class Targets {
 public:
  Targets(const TensorView& view, int64_t ignore_index)
      : data_(view.as<const int64_t>()),
        map_(map_dims(view, 0, view.rank)),
        ignore_index_(ignore_index) {}

  // An IndexError that names the first target outside [0, classes) that is not ignored.
  absl::Status check(const char* op, int64_t classes) const;
  // -1 for an ignored one.
  int64_t at(int64_t row) const {
    int64_t t = data_[map_.offset(row)];
    return t == ignore_index_ ? -1 : t;
  }

 private:
  const int64_t* data_;
  IndexMap map_;
  int64_t ignore_index_;
};

// The sum in order of n values, in double.
template <class C>
double ordered_sum(const C* values, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

// Writes the rows' losses, or their sum or weighted mean, and the total weight.
template <class C>
void write_loss(const C* losses, const C* weights, int64_t rows, Reduction reduction,
                const TensorView& loss, const TensorView& total_weight) {
  double total = ordered_sum(weights, rows);
  if (reduction == Reduction::kNone) {
    IndexMap map = map_dims(loss, 0, loss.rank);
    for (int64_t r = 0; r < rows; ++r) {
      write_element(loss, map.offset(r), static_cast<double>(losses[r]));
    }
  } else {
    double sum = ordered_sum(losses, rows);
    write_element(loss, 0, reduction == Reduction::kMean ? sum / total : sum);
  }
  if (total_weight.present()) write_element(total_weight, 0, total);
}

// The factor of a row's gradient.
class RowGradient {
 public:
  RowGradient(const TensorView& grad, const TensorView& total_weight, Reduction reduction)
      : grad_(grad), map_(map_dims(grad, 0, grad.rank)), none_(reduction == Reduction::kNone) {
    if (!none_) {
      scalar_ = read_element(grad, 0);
      if (reduction == Reduction::kMean) scalar_ /= read_element(total_weight, 0);
    }
  }
  double at(int64_t row) const { return none_ ? read_element(grad_, map_.offset(row)) : scalar_; }

 private:
  const TensorView& grad_;
  IndexMap map_;
  bool none_;
  double scalar_ = 0;
};

}  // namespace gradwire::cpu
