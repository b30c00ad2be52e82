#include <algorithm>
#include <cmath>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/resample.h"

namespace gradwire::cpu {
namespace {

struct ByteAxis {
  std::vector<int32_t> weight;
  int precision = 0;
};

// As many fraction bits as 16-bit weights hold.
ByteAxis byte_axis(const ResampleAxis<double>& axis) {
  // Places clipped to one edge count as one tap.
  double largest = 0;
  std::vector<double> merged = axis.weight;
  for (int64_t o = 0; o < axis.out; ++o) {
    auto row = static_cast<size_t>(o * axis.taps);
    for (size_t t = row + 1; t < row + static_cast<size_t>(axis.taps); ++t) {
      if (axis.place[t] == axis.place[t - 1]) {
        merged[t] += merged[t - 1];
        merged[t - 1] = 0;
      }
    }
  }
  for (double w : merged) largest = std::max(largest, w);
  ByteAxis result;
  for (; result.precision < 22; ++result.precision) {
    if (static_cast<int>(0.5 + largest * (1 << (result.precision + 1))) >= (1 << 15)) break;
  }
  for (double w : merged) {
    double scaled = w * (1 << result.precision);
    result.weight.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
  }
  return result;
}

// One axis of lines [outer, in, inner] to [outer, out, inner].
void resample_line(const ResampleAxis<double>& axis, const uint8_t* from, int64_t inner,
                   int64_t outer, uint8_t* to, ThreadPool& pool) {
  ByteAxis bytes = byte_axis(axis);
  pool.parallel_ranges(outer, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t o = 0; o < axis.out; ++o) {
        for (int64_t k = 0; k < inner; ++k) {
          int32_t sum = bytes.precision > 0 ? 1 << (bytes.precision - 1) : 0;
          for (int64_t t = o * axis.taps; t < (o + 1) * axis.taps; ++t) {
            auto at = static_cast<size_t>(t);
            sum += bytes.weight[at] * from[(i * axis.in + axis.place[at]) * inner + k];
          }
          to[(i * axis.out + o) * inner + k] =
              static_cast<uint8_t>(std::clamp(sum >> bytes.precision, 0, 255));
        }
      }
    }
  });
}

}  // namespace

absl::Status resample_bytes(const KernelCall& call, const TensorView& x, const TensorView& out,
                            ThreadPool& pool) {
  ResampleAxes<double> axes = resample_axes<double>(call, x, out);
  DenseInput<uint8_t> input(x, pool);
  if (!input.ok()) return scratch_error();
  int64_t planes = x.sizes[0] * x.sizes[1];
  std::array<int64_t, 3> sizes{axes[0].in, axes[1].in, axes[2].in};
  std::vector<uint8_t> now(input.data(), input.data() + x.numel()), next;
  for (int d = 2; d >= 0; --d) {
    const ResampleAxis<double>& axis = axes[static_cast<size_t>(d)];
    if (axis.in == axis.out && axis.taps == 1) continue;
    int64_t outer = planes, inner = 1;
    for (int e = 0; e < d; ++e) outer *= sizes[static_cast<size_t>(e)];
    for (int e = d + 1; e < 3; ++e) inner *= sizes[static_cast<size_t>(e)];
    next.assign(static_cast<size_t>(outer * axis.out * inner), 0);
    resample_line(axis, now.data(), inner, outer, next.data(), pool);
    sizes[static_cast<size_t>(d)] = axis.out;
    now.swap(next);
  }
  copy_out<uint8_t>(now.data(), out, pool);
  return absl::OkStatus();
}

}  // namespace gradwire::cpu
