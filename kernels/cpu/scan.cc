// cumsum, cumprod: each line in double or modulo 2^64, rounded where it is stored.
#include <algorithm>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

// Converts through the output's dtype first, as torch does.
template <class Acc>
void load_run(const TensorView& in, DType out, int64_t offset, int64_t stride, int64_t n, Acc* to) {
  const void* from = address(in, offset);
  if constexpr (std::is_same_v<Acc, double>) {
    load_doubles(in.dtype, from, stride, n, to);
    if (in.dtype == out) return;
    dispatch_dtype(out, [&](auto type) {
      using T = typename decltype(type)::type;
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(widen(convert<T>(to[i])));
    });
  } else {
    load_ints(in.dtype, from, stride, n, reinterpret_cast<int64_t*>(to));
    if (out != DType::kBool) return;
    for (int64_t i = 0; i < n; ++i) to[i] = to[i] != 0;
  }
}

template <class Acc>
void store_run(const TensorView& out, int64_t offset, int64_t stride, int64_t n, const Acc* from) {
  if constexpr (std::is_same_v<Acc, double>) {
    store_doubles(out.dtype, address(out, offset), stride, n, from);
  } else {
    store_ints(out.dtype, address(out, offset), stride, n, reinterpret_cast<const int64_t*>(from));
  }
}

// One unit is a run of up to 64 lines; it walks all of them together along the dimension when
// neighbours lie across lines, else one after the other.
template <class Acc, bool kProduct>
void scan_lines(const TensorView& in, const TensorView& out, const Lines<2>& lines, int64_t begin,
                int64_t end) {
  constexpr int64_t kBlock = 64;
  const int64_t length = lines.lengths[0];
  const int64_t identity = kProduct ? 1 : 0;
  for_runs(lines.outer, begin, end, [&](const auto& offsets, int64_t count, int64_t) {
    const int64_t in_stride = lines.outer.inner_stride(0);
    const int64_t out_stride = lines.outer.inner_stride(1);
    if (in_stride < lines.steps[0]) {
      for (int64_t k = 0; k < count; k += kBlock) {
        const int64_t n = std::min(kBlock, count - k);
        Acc acc[kBlock], row[kBlock];
        std::fill(acc, acc + n, static_cast<Acc>(identity));
        for (int64_t i = 0; i < length; ++i) {
          load_run(in, out.dtype, offsets[0] + k * in_stride + i * lines.steps[0], in_stride, n,
                   row);
          for (int64_t j = 0; j < n; ++j) acc[j] = kProduct ? acc[j] * row[j] : acc[j] + row[j];
          store_run(out, offsets[1] + k * out_stride + i * lines.steps[1], out_stride, n, acc);
        }
      }
      return;
    }
    for (int64_t k = 0; k < count; ++k) {
      Acc acc = static_cast<Acc>(identity), row[kBlock * 4];
      for (int64_t i = 0; i < length; i += kBlock * 4) {
        const int64_t n = std::min(kBlock * 4, length - i);
        load_run(in, out.dtype, offsets[0] + k * in_stride + i * lines.steps[0], lines.steps[0], n,
                 row);
        for (int64_t j = 0; j < n; ++j) {
          acc = kProduct ? acc * row[j] : acc + row[j];
          row[j] = acc;
        }
        store_run(out, offsets[1] + k * out_stride + i * lines.steps[1], lines.steps[1], n, row);
      }
    }
  });
}

template <bool kProduct>
absl::Status scan(const KernelCall& call, Context& context) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const Lines<2> lines = lines_of<2>({&in, &out}, attribute(call, 0).as_int());
  if (in.numel() == 0) return absl::OkStatus();
  const bool floats = is_floating(in.dtype) || is_floating(out.dtype);
  // An integral result of floats adds the truncated elements modulo 2^64.
  const bool doubles = floats && is_floating(out.dtype);
  const int64_t grain = std::max<int64_t>(1, 32768 / lines.lengths[0]);
  context.pool.parallel_ranges(lines.outer.numel, grain, [&](int64_t begin, int64_t end) {
    if (doubles) {
      scan_lines<double, kProduct>(in, out, lines, begin, end);
    } else {
      scan_lines<uint64_t, kProduct>(in, out, lines, begin, end);
    }
  });
  return absl::OkStatus();
}

absl::Status cumsum(const KernelCall& call, Context& context) {
  return scan<false>(call, context);
}

absl::Status cumprod(const KernelCall& call, Context& context) {
  return scan<true>(call, context);
}

GW_CPU_KERNEL("cumsum", cumsum);
GW_CPU_KERNEL("cumprod", cumprod);

}  // namespace
}  // namespace gradwire::cpu
