// scatter_reduce: in place; sum, prod, mean, amax, amin.
#include <cmath>
#include <limits>
#include <string>

#include "kernels/cpu/index_bounds.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/scatter_lines.h"
#include "kernels/cpu/scatter_typed.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

enum class Mode { kSum, kProd, kMean, kAmax, kAmin };

template <class T>
T extreme(T a, T b, bool max) {
  const auto x = widen(a), y = widen(b);
  if (x != x) return a;
  if (y != y) return b;
  return (max ? y > x : y < x) ? b : a;
}

// Whole-number means round down.
template <class T>
T quotient(T a, int64_t n) {
  if constexpr (std::is_same_v<T, Bool8>) {
    return a;
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t v = static_cast<int64_t>(a);
    return static_cast<T>(v / n - (v % n != 0 && v < 0));
  } else {
    return a / static_cast<T>(n);
  }
}

// Identity of the reduction, for elements that do not count their own value.
template <class T>
T identity(Mode mode) {
  using Limits = std::numeric_limits<Wide<T>>;
  if (mode == Mode::kSum || mode == Mode::kMean) return convert<T>(int64_t{0});
  if (mode == Mode::kProd) return convert<T>(int64_t{1});
  if constexpr (std::is_same_v<T, Bool8>) return Bool8{mode == Mode::kAmin};
  if constexpr (Limits::has_infinity) {
    return convert<T>(mode == Mode::kAmax ? -Limits::infinity() : Limits::infinity());
  } else {
    return convert<T>(mode == Mode::kAmax ? Limits::lowest() : Limits::max());
  }
}

template <class T, class S>
absl::Status run(Mode mode, bool include_self, const TensorView& self, const TensorView& index,
                 const TensorView& src, int64_t dim, Context& context) {
  if (!include_self) {
    scatter_lines<T, T>(self, index, nullptr, identity<T>(mode), dim, context,
                        [](T& to, T from) { to = from; });
  }
  if (mode == Mode::kAmax || mode == Mode::kAmin) {
    const bool max = mode == Mode::kAmax;
    scatter_lines<T, S>(self, index, &src, S{}, dim, context,
                        [max](T& to, S from) { to = extreme(to, convert<T>(from), max); });
    return absl::OkStatus();
  }
  if (mode == Mode::kProd) {
    scatter_lines<T, S>(self, index, &src, S{}, dim, context,
                        [](T& to, S from) { to = multiply(to, convert<T>(from)); });
    return absl::OkStatus();
  }
  scatter_lines<T, S>(self, index, &src, S{}, dim, context,
                      [](T& to, S from) { to = add(to, convert<T>(from)); });
  if (mode == Mode::kSum) return absl::OkStatus();

  const int64_t n = self.numel();
  Scratch scratch(8 * static_cast<size_t>(n) + 1);
  if (scratch.data() == nullptr) {
    return make_error(ErrorKind::kOutOfMemory, "[scatter_reduce] out of memory");
  }
  std::fill(scratch.as<int64_t>(), scratch.as<int64_t>() + n, include_self ? 1 : 0);
  const TensorView counts = dense_like(self, DType::kInt64, scratch.data());
  scatter_lines<int64_t, int64_t>(counts, index, nullptr, 1, dim, context,
                                  [](int64_t& to, int64_t one) { to += one; });
  const Space<2> space = space_of<2>({&self, &counts});
  const auto [stride, count_stride] = space.last_strides;
  context.pool.parallel_ranges(n, 32768, [&](int64_t begin, int64_t end) {
    for_runs(space, begin, end, [&](const auto& at, int64_t count, int64_t) {
      for (int64_t i = 0; i < count; ++i) {
        T& to = self.as<T>()[at[0] + i * stride];
        const int64_t divisor = counts.as<int64_t>()[at[1] + i * count_stride];
        if (divisor > 1) to = quotient(to, divisor);
      }
    });
  });
  return absl::OkStatus();
}

absl::Status scatter_reduce(const KernelCall& call, Context& context) {
  const TensorView& self = call.outputs[0];
  const TensorView& src = call.inputs[2];
  const int64_t dim = attribute(call, 0).as_int();
  const std::string& reduce = attribute(call, 1).as_string();
  const Attribute& include = attribute(call, 2);
  const bool include_self = include.none() || include.as_bool();
  Mode mode;
  if (reduce == "sum") {
    mode = Mode::kSum;
  } else if (reduce == "prod") {
    mode = Mode::kProd;
  } else if (reduce == "mean") {
    mode = Mode::kMean;
  } else if (reduce == "amax") {
    mode = Mode::kAmax;
  } else if (reduce == "amin") {
    mode = Mode::kAmin;
  } else {
    return runtime_error("[scatter_reduce] reduce argument must be either sum, prod, mean, amax ",
                         "or amin, got ", reduce);
  }
  GW_RETURN_IF_ERROR(check_same_dtype("scatter_reduce", self, src));
  const int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
  if (auto bad = first_outside(call.inputs[1], 0, size, context)) {
    return runtime_error("[scatter_reduce] index ", *bad, " is out of bounds for dimension ", dim,
                         " with size ", size);
  }
  Int64Index entries(call.inputs[1], context);
  if (!entries.ok()) {
    return make_error(ErrorKind::kOutOfMemory, "[scatter_reduce] out of memory");
  }
  return with_target(self, context, [&](const TensorView& target) {
    return dispatch_dtype(src.dtype, [&](auto type) {
      using S = typename decltype(type)::type;
      return run<Target<S>, S>(mode, include_self, target, entries.view(), src, dim, context);
    });
  });
}

GW_CPU_KERNEL("scatter_reduce", scatter_reduce);

}  // namespace
}  // namespace gradwire::cpu
