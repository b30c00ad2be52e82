// sum, mean, prod, count_nonzero. Floats accumulate in double, integers and bool modulo 2^64.
#include <algorithm>
#include <string>

#include "kernels/cpu/index_convert.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduce_fold.h"
#include "kernels/cpu/scratch.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

template <class T>
using SumAcc = std::conditional_t<std::is_floating_point_v<Wide<T>>, double, uint64_t>;

template <class T>
struct Sum {
  using In = T;
  using Acc = SumAcc<T>;
  static constexpr Acc identity() { return 0; }
  static void step(Acc& a, Wide<T> x) { a += static_cast<Acc>(x); }
  static void step(V8<Acc>& a, V8<Wide<T>> x) { a += __builtin_convertvector(x, V8<Acc>); }
  static void merge(Acc& a, Acc b) { a += b; }
};

template <class T>
struct Prod {
  using In = T;
  using Acc = SumAcc<T>;
  static constexpr Acc identity() { return 1; }
  static void step(Acc& a, Wide<T> x) { a *= static_cast<Acc>(x); }
  static void step(V8<Acc>& a, V8<Wide<T>> x) { a *= __builtin_convertvector(x, V8<Acc>); }
  static void merge(Acc& a, Acc b) { a *= b; }
};

template <class T>
struct CountNonzero {
  using In = T;
  using Acc = uint64_t;
  static constexpr Acc identity() { return 0; }
  static void step(Acc& a, Wide<T> x) { a += x != 0; }
  static void step(V8<Acc>& a, V8<Wide<T>> x) {
    a -= __builtin_convertvector(x != 0, V8<Acc>);  // true lanes are -1
  }
  static void merge(Acc& a, Acc b) { a += b; }
};

template <template <class> class Op>
Reducer table(DType dtype) {
  return dispatch_dtype(
      dtype, [](auto type) { return LaneReducer<Op<typename decltype(type)::type>>::table(); });
}

// Converting the accumulator gives what converting every element first would.
bool converts_late(DType in, DType out) {
  if (in == out) return true;
  if (is_floating(in))
    return out == DType::kFloat64 || (out == DType::kFloat32 && in != DType::kFloat64);
  return is_integral(out) || out == DType::kFloat32 || out == DType::kFloat64;
}

template <template <class> class Op>
absl::Status fold_converted(const TensorView& in, const TensorView& out, uint32_t dims,
                            double divisor, Context& context) {
  const bool floats = is_floating(in.dtype);
  return reduce(
      in, out, nullptr, dims, false, table<Op>(in.dtype),
      [&](const void* acc, int64_t n, const auto& offsets, const auto& strides) {
        void* to = address(out, offsets[0]);
        if (!floats && divisor == 1) {
          store_ints(out.dtype, to, strides[0], n, static_cast<const int64_t*>(acc));
          return;
        }
        for (int64_t i = 0; i < n; ++i) {
          double value = floats ? static_cast<const double*>(acc)[i]
                                : static_cast<double>(static_cast<const int64_t*>(acc)[i]);
          value /= divisor;
          store_doubles(out.dtype, static_cast<char*>(to) + i * strides[0] * dtype_size(out.dtype),
                        1, 1, &value);
        }
      },
      context);
}

template <template <class> class Op>
absl::Status fold(const KernelCall& call, double divisor, Context& context) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const uint32_t dims = reduced_dims(attribute(call, 0), in.rank);
  if (converts_late(in.dtype, out.dtype)) {
    return fold_converted<Op>(in, out, dims, divisor, context);
  }
  if (context.source) return absl::UnimplementedError("[sum] no source for a conversion");
  const int64_t n = in.numel();
  const size_t size = dtype_size(out.dtype);
  Scratch scratch(std::max<size_t>(1, size * n));
  if (scratch.data() == nullptr) return make_error(ErrorKind::kOutOfMemory, "[sum] no memory");
  context.pool.parallel_ranges(n, 65536, [&](int64_t begin, int64_t end) {
    convert_range(in, begin, end, out.dtype, scratch.as<char>() + begin * size);
  });
  TensorView dense = in;
  dense.data = scratch.data();
  dense.dtype = out.dtype;
  int64_t stride = 1;
  for (int d = in.rank - 1; d >= 0; --d) {
    dense.strides[d] = stride;
    stride *= in.sizes[d];
  }
  return fold_converted<Op>(dense, out, dims, divisor, context);
}

absl::Status sum(const KernelCall& call, Context& context) {
  return fold<Sum>(call, 1, context);
}

absl::Status prod(const KernelCall& call, Context& context) {
  return fold<Prod>(call, 1, context);
}

absl::Status mean(const KernelCall& call, Context& context) {
  const TensorView& in = call.inputs[0];
  const int64_t n = reduced_numel(in, reduced_dims(attribute(call, 0), in.rank));
  if (!is_floating(call.outputs[0].dtype)) {
    return runtime_error(
        "[mean] could not infer output dtype. Input dtype must be either a ",
        "floating point or complex dtype. Got: ", std::string(dtype_name(in.dtype)));
  }
  const uint32_t dims = reduced_dims(attribute(call, 0), in.rank);
  return fold_converted<Sum>(in, call.outputs[0], dims, static_cast<double>(n), context);
}

absl::Status count_nonzero(const KernelCall& call, Context& context) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const uint32_t dims = reduced_dims(attribute(call, 0), in.rank);
  return reduce(
      in, out, nullptr, dims, false, table<CountNonzero>(in.dtype),
      [&](const void* acc, int64_t n, const auto& offsets, const auto& strides) {
        store_ints(out.dtype, address(out, offsets[0]), strides[0], n,
                   static_cast<const int64_t*>(acc));
      },
      context);
}

GW_CPU_KERNEL("sum", sum);
GW_CPU_KERNEL("prod", prod);
GW_CPU_KERNEL("mean", mean);
GW_CPU_KERNEL("count_nonzero", count_nonzero);

}  // namespace
}  // namespace gradwire::cpu
