// arange, linspace, eye, fill.
#include <algorithm>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrain = 32768;

absl::Status fill(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  const ScalarValue value = number(call, 0);
  const Space<1> space = space_of<1>({&out});
  const int64_t stride = space.inner_stride(0);
  dispatch_dtype(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T v = number_as<T>(value);
    context.pool.parallel_ranges(space.numel, kGrain, [&](int64_t begin, int64_t end) {
      for_runs(space, begin, end, [&](const auto& offsets, int64_t count, int64_t) {
        T* to = out.as<T>() + offsets[0];
        if (stride == 1) {
          std::fill(to, to + count, v);
        } else {
          for (int64_t i = 0; i < count; ++i) to[i * stride] = v;
        }
      });
    });
  });
  return absl::OkStatus();
}

// make(i) gives element i; Value is double or int64.
template <class Value, class Make>
void generate_sequence(const TensorView& out, Context& context, Make&& make) {
  constexpr int64_t kBlock = 512;
  const int64_t stride = out.rank == 0 ? 0 : out.strides[0];
  context.pool.parallel_ranges(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    Value values[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      for (int64_t j = 0; j < n; ++j) values[j] = make(i + j);
      void* to = address(out, i * stride);
      if constexpr (std::is_same_v<Value, double>) {
        store_doubles(out.dtype, to, stride, n, values);
      } else {
        store_ints(out.dtype, to, stride, n, values);
      }
    }
  });
}

// Exact in int64 when start and step are integers; an integral result of floats truncates both
// first, as torch does.
absl::Status arange(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  ScalarValue start, step;
  if (call.scalars.size() >= 2) {
    start = call.scalars[0];
    step = call.scalars[1];
  } else {
    start = number(call, 0);
    step = number(call, 1);
  }
  const bool ints =
      start.kind != ScalarValue::Kind::kFloat && step.kind != ScalarValue::Kind::kFloat;
  if (ints || !is_floating(out.dtype)) {
    const uint64_t first = static_cast<uint64_t>(number_as<int64_t>(start));
    const uint64_t by = static_cast<uint64_t>(number_as<int64_t>(step));
    generate_sequence<int64_t>(out, context, [=](int64_t i) {
      return static_cast<int64_t>(first + by * static_cast<uint64_t>(i));
    });
  } else {
    const double first = start.as_double(), by = step.as_double();
    generate_sequence<double>(out, context,
                              [=](int64_t i) { return first + by * static_cast<double>(i); });
  }
  return absl::OkStatus();
}

// From both ends towards the middle, so that both ends are exact.
absl::Status linspace(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  const bool scalars = call.scalars.size() >= 2;
  const double start = scalars ? call.scalars[0].as_double() : attribute(call, 0).as_double();
  const double end = scalars ? call.scalars[1].as_double() : attribute(call, 1).as_double();
  const int64_t steps = out.numel();
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  generate_sequence<double>(out, context, [=](int64_t i) {
    return i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                       : end - step * static_cast<double>(steps - 1 - i);
  });
  return absl::OkStatus();
}

absl::Status eye(const KernelCall& call, Context& context) {
  const TensorView& out = call.outputs[0];
  KernelCall zero;
  zero.outputs.push_back(out);
  zero.attributes.push_back(int64_t{0});
  GW_RETURN_IF_ERROR(fill(zero, context));
  dispatch_dtype(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t n = std::min(out.sizes[0], out.sizes[1]);
    const int64_t stride = out.strides[0] + out.strides[1];
    for (int64_t i = 0; i < n; ++i) out.as<T>()[i * stride] = convert<T>(int64_t{1});
  });
  return absl::OkStatus();
}

GW_CPU_KERNEL("arange", arange);
GW_CPU_KERNEL("linspace", linspace);
GW_CPU_KERNEL("eye", eye);
GW_CPU_KERNEL("fill", fill);

}  // namespace
}  // namespace gradwire::cpu
