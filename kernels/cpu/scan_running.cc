// cummax, cummin, logcumsumexp and the linear recurrence, each line front to back.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

int64_t grain_of(int64_t length) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length));
}

// Of equals the last one is named; the first nan stays, as torch has it.
template <bool kMax>
absl::Status extreme(const KernelCall& call, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& values = call.outputs[0];
  const TensorView& indices = call.outputs[1];
  if (x.numel() == 0) return absl::OkStatus();
  const Lines<3> lines = lines_of<3>({&x, &values, &indices}, attribute(call, 0).as_int());
  const int64_t length = lines.lengths[0];
  dispatch_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_ranges(lines.outer.numel, grain_of(length),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t line = begin; line < end; ++line) {
                                     const auto offsets = lines.outer.offsets_of(line);
                                     const T* in = x.as<T>() + offsets[0];
                                     T* value = values.as<T>() + offsets[1];
                                     int64_t* index = indices.as<int64_t>() + offsets[2];
                                     T best = in[0];
                                     int64_t place = 0;
                                     for (int64_t i = 0; i < length; ++i) {
                                       const auto v = widen(in[i * lines.steps[0]]);
                                       const auto b = widen(best);
                                       if (b == b && (v != v || (kMax ? v >= b : v <= b))) {
                                         best = in[i * lines.steps[0]];
                                         place = i;
                                       } else if (b != b && v != v) {
                                         place = i;
                                       }
                                       value[i * lines.steps[1]] = best;
                                       index[i * lines.steps[2]] = place;
                                     }
                                   }
                                 });
  });
  return absl::OkStatus();
}

absl::Status cummax(const KernelCall& call, Context& context) {
  return extreme<true>(call, context);
}

absl::Status cummin(const KernelCall& call, Context& context) {
  return extreme<false>(call, context);
}

double log_add(double x, double sum) {
  const double low = std::min(x, sum), high = std::max(x, sum);
  if (x != x || sum != sum) return x + sum;
  if (low == high && std::isinf(low)) return low;
  return high + std::log1p(std::exp(low - high));
}

absl::Status logcumsumexp(const KernelCall& call, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  if (x.numel() == 0) return absl::OkStatus();
  const Lines<2> lines = lines_of<2>({&x, &out}, attribute(call, 0).as_int());
  const int64_t length = lines.lengths[0];
  dispatch_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_ranges(
        lines.outer.numel, grain_of(8 * length), [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const auto offsets = lines.outer.offsets_of(line);
            double sum = -std::numeric_limits<double>::infinity();
            for (int64_t i = 0; i < length; ++i) {
              const T element = x.as<T>()[offsets[0] + i * lines.steps[0]];
              sum = log_add(static_cast<double>(widen(element)), sum);
              out.as<T>()[offsets[1] + i * lines.steps[1]] = convert<T>(sum);
            }
          }
        });
  });
  return absl::OkStatus();
}

// s[i] = b[i] + a[i] s[i - 1].
absl::Status scan_linear(const KernelCall& call, Context& context) {
  const TensorView& a = call.inputs[0];
  const TensorView& b = call.inputs[1];
  const TensorView& out = call.outputs[0];
  if (a.numel() == 0) return absl::OkStatus();
  const Lines<3> lines = lines_of<3>({&a, &b, &out}, attribute(call, 0).as_int());
  const int64_t length = lines.lengths[0];
  dispatch_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_ranges(
        lines.outer.numel, grain_of(length), [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const auto offsets = lines.outer.offsets_of(line);
            double sum = 0;
            for (int64_t i = 0; i < length; ++i) {
              const double add =
                  static_cast<double>(widen(b.as<T>()[offsets[1] + i * lines.steps[1]]));
              const double factor =
                  static_cast<double>(widen(a.as<T>()[offsets[0] + i * lines.steps[0]]));
              sum = i ? add + factor * sum : add;
              out.as<T>()[offsets[2] + i * lines.steps[2]] = convert<T>(sum);
            }
          }
        });
  });
  return absl::OkStatus();
}

GW_CPU_KERNEL("cummax", cummax);
GW_CPU_KERNEL("cummin", cummin);
GW_CPU_KERNEL("logcumsumexp", logcumsumexp);
GW_CPU_KERNEL("scan_linear", scan_linear);

}  // namespace
}  // namespace gradwire::cpu
