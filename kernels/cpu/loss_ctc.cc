// Connectionist temporal classification (Graves et al. 2006, eq. 6 to 16), in log space. With l'
// the targets between blanks:
//   alpha[t][s] = log p(the first t + 1 frames say l'[0..s]), beta[t][s] the same from the end
//   loss = -log(exp(alpha[T-1][last]) + exp(alpha[T-1][last - 1]))
//   d loss / d lp[t][c] = exp(lp[t][c]) - exp(log sum_{l'[s] = c} (alpha + beta)[t][s] + loss - lp)
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  double high = std::max(a, b);
  return high == kNone ? kNone : high + std::log1p(std::exp(std::min(a, b) - high));
}

// The batch: log_probs [T, N, C], targets [N, S] or all after each other, lengths [N].
struct Batch {
  int64_t frames, samples, classes, blank;
  const int64_t *targets, *input_lengths, *target_lengths;
  std::vector<int64_t> starts;  // of each sample's targets

  absl::Status check(const TensorView& list) {
    int64_t total = 0, width = list.rank == 2 ? list.sizes[1] : 0;
    for (int64_t n = 0; n < samples; ++n) {
      if (input_lengths[n] < 0 || input_lengths[n] > frames) {
        return runtime_error("Expected input_lengths to have value at ",
                             input_lengths[n] < 0 ? "least 0" : absl::StrCat("most ", frames),
                             ", but got value ", input_lengths[n],
                             " (while checking arguments for ctc_loss)");
      }
      int64_t length = target_lengths[n];
      if (length < 0) {
        return runtime_error("Expected target_lengths to have value at least 0, but got value ",
                             length, " (while checking arguments for ctc_loss)");
      }
      int64_t left = list.rank == 2 ? width : list.numel() - total;
      if (length > left) {
        return runtime_error("Expected tensor to have size at least ",
                             list.rank == 2 ? length : total + length, " at dimension ",
                             list.rank - 1, ", but got size ", list.sizes[list.rank - 1],
                             " for argument #2 'targets' (while checking arguments for ctc_loss)");
      }
      starts.push_back(list.rank == 2 ? n * width : total);
      total += length;
      for (int64_t i = 0; i < length; ++i) {
        int64_t label = targets[starts.back() + i];
        if (label >= 0 && label < classes) continue;
        return runtime_error("ctc_loss: target ", label, " is out of range for ", classes,
                             " classes");
      }
    }
    if (list.rank == 1 && total != list.numel()) {
      return runtime_error("Expected tensor to have size ", total, " at dimension 0, but got size ",
                           list.numel(),
                           " for argument #2 'targets' (while checking arguments for ctc_loss)");
    }
    return absl::OkStatus();
  }
};

template <class T>
class Sample {
 public:
  Sample(const Batch& batch, const TensorView& log_probs, int64_t n)
      : frames(batch.input_lengths[n]),
        states(2 * batch.target_lengths[n] + 1),
        lp_(log_probs.as<const T>() + n * log_probs.strides[1]),
        frame_stride_(log_probs.strides[0]),
        class_stride_(log_probs.strides[2]),
        blank_(batch.blank),
        labels_(batch.targets + batch.starts[n]) {}

  int64_t label(int64_t s) const { return s % 2 ? labels_[s / 2] : blank_; }
  double lp(int64_t t, int64_t c) const {
    return static_cast<double>(
        static_cast<ComputeOf<T>>(lp_[t * frame_stride_ + c * class_stride_]));
  }

  // alpha[0], or alpha[t] from alpha[t - 1]. Backward, frames and states count from the end: beta.
  void step(int64_t t, const double* before, double* now, bool backward) const {
    int64_t frame = backward ? frames - 1 - t : t;
    for (int64_t s = 0; s < states; ++s) {
      int64_t here = label(backward ? states - 1 - s : s);
      double sum = kNone;
      if (t == 0) {
        sum = s < 2 ? 0 : kNone;
      } else {
        sum = before[s];
        if (s > 0) sum = log_add(sum, before[s - 1]);
        if (s > 1 && here != label(backward ? states + 1 - s : s - 2)) {
          sum = log_add(sum, before[s - 2]);
        }
      }
      now[s] = sum == kNone ? kNone : sum + lp(frame, here);
    }
  }

  double loss(const double* last) const {
    if (frames == 0) return states == 1 ? 0 : -kNone;
    return -(states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0]);
  }

  const int64_t frames, states;

 private:
  const T* lp_;
  int64_t frame_stride_, class_stride_, blank_;
  const int64_t* labels_;
};

struct Arguments {
  DenseInput<int64_t> targets, input_lengths, target_lengths;
  Batch batch;

  Arguments(const KernelCall& call, int first, ThreadPool& pool)
      : targets(call.inputs[first + 1], pool),
        input_lengths(call.inputs[first + 2], pool),
        target_lengths(call.inputs[first + 3], pool) {
    const TensorView& x = call.inputs[first];
    batch = {x.sizes[0],
             x.sizes[1],
             x.sizes[2],
             call.attributes[0].as_int(),
             targets.data(),
             input_lengths.data(),
             target_lengths.data(),
             {}};
  }
  bool ok() const { return targets.ok() && input_lengths.ok() && target_lengths.ok(); }
};

template <class T>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  Arguments arguments(call, 0, pool);
  if (!arguments.ok()) return scratch_error();
  Batch& batch = arguments.batch;
  GW_RETURN_IF_ERROR(batch.check(call.inputs[1]));
  const TensorView& out = call.outputs[0];
  std::atomic<bool> failed = false;
  pool.parallel_ranges(batch.samples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      Sample<T> sample(batch, call.inputs[0], n);
      Scratch scratch(static_cast<size_t>(2 * sample.states) * sizeof(double));
      double *now = scratch.as<double>(), *before = now + sample.states;
      if (!now) {
        failed = true;
        return;
      }
      for (int64_t t = 0; t < sample.frames; ++t) {
        std::swap(now, before);
        sample.step(t, before, now, false);
      }
      write_element(out, n * out.strides[0], sample.loss(now));
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

// inputs: the gradient of the losses [N], then those of forward; attributes blank, zero_infinity.
template <class T>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  Arguments arguments(call, 1, pool);
  if (!arguments.ok()) return scratch_error();
  Batch& batch = arguments.batch;
  GW_RETURN_IF_ERROR(batch.check(call.inputs[2]));
  const TensorView &grad = call.inputs[0], &dx = call.outputs[0];
  bool zero_infinity = call.attributes[1].as_bool();
  std::atomic<bool> failed = false;
  pool.parallel_ranges(batch.samples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      Sample<T> sample(batch, call.inputs[1], n);
      int64_t states = sample.states, frames = sample.frames;
      Scratch scratch(static_cast<size_t>((frames + 2) * states + batch.classes) * sizeof(double));
      double* alpha = scratch.as<double>();
      if (!alpha) {
        failed = true;
        return;
      }
      double *now = alpha + frames * states, *before = now + states;
      double* sums = before + states;
      for (int64_t t = 0; t < frames; ++t) {
        sample.step(t, alpha + (t - 1) * states, alpha + t * states, false);
      }
      double loss = sample.loss(alpha + std::max<int64_t>(frames - 1, 0) * states);
      double scale = read_element(grad, n * grad.strides[0]);
      bool none = zero_infinity && std::isinf(loss);
      auto put = [&](int64_t t, int64_t c, double value) {
        dx.as<T>()[t * dx.strides[0] + n * dx.strides[1] + c * dx.strides[2]] =
            static_cast<T>(static_cast<ComputeOf<T>>(value));
      };
      for (int64_t t = 0; t < batch.frames; ++t) {
        int64_t frame = frames - 1 - t;  // from the end
        bool past = t >= frames || none;
        if (!past) {
          std::swap(now, before);
          sample.step(t, before, now, true);
          std::fill(sums, sums + batch.classes, kNone);
          for (int64_t s = 0; s < states; ++s) {
            double& sum = sums[sample.label(s)];
            sum = log_add(sum, alpha[frame * states + s] + now[states - 1 - s]);
          }
        }
        for (int64_t c = 0; c < batch.classes; ++c) {
          if (past) {
            put(t < frames ? frame : t, c, 0);
          } else {
            double lp = sample.lp(frame, c);
            put(frame, c, scale * (std::exp(lp) - std::exp(sums[c] + loss - lp)));
          }
        }
      }
    }
  });
  return failed ? scratch_error() : absl::OkStatus();
}

absl::Status ctc_loss(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(
      call.inputs[0].dtype, [&](auto tag) { status = forward<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("ctc_loss", call.inputs[0].dtype);
}
GW_CPU_KERNEL("ctc_loss", ctc_loss);

absl::Status ctc_loss_backward(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[1].dtype, [&](auto tag) {
    status = backward<decltype(tag)>(call, context.pool);
  });
  return known ? status : dtype_error("ctc_loss_backward", call.inputs[1].dtype);
}
GW_CPU_KERNEL("ctc_loss_backward", ctc_loss_backward);

}  // namespace
}  // namespace gradwire::cpu
