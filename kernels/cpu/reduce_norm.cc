// Vector norms of any order, accumulated in double.
#include <cmath>
#include <limits>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kBlock = 4096;

enum class Order : uint8_t { kZero, kOne, kTwo, kLargest, kSmallest, kAny };

Order order_of(double p) {
  if (p == 0) return Order::kZero;
  if (p == 1) return Order::kOne;
  if (p == 2) return Order::kTwo;
  if (p == kInfinity) return Order::kLargest;
  if (p == -kInfinity) return Order::kSmallest;
  return Order::kAny;
}

double start_of(Order order) {
  return order == Order::kSmallest ? kInfinity : 0;
}

double merge(Order order, double a, double b) {
  if (order == Order::kLargest) return std::isnan(a) || a > b ? a : b;
  if (order == Order::kSmallest) return std::isnan(a) || a < b ? a : b;
  return a + b;
}

double finish(Order order, double p, double sum) {
  if (order == Order::kTwo) return std::sqrt(sum);
  return order == Order::kAny ? std::pow(sum, 1 / p) : sum;
}

// Of a gap-free run: eight sums side by side, added in a fixed order.
template <class C, class Term>
double sum_of(const C* x, int64_t n, Term term) {
  double lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int l = 0; l < 8; ++l) lanes[l] += term(static_cast<double>(x[i + l]));
  }
  for (; i < n; ++i) lanes[i % 8] += term(static_cast<double>(x[i]));
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <class C>
double fold(Order order, double p, const C* x, int64_t n) {
  switch (order) {
    case Order::kZero:
      return sum_of(x, n, [](double v) { return v != 0 ? 1.0 : 0.0; });
    case Order::kOne:
      return sum_of(x, n, [](double v) { return std::abs(v); });
    case Order::kTwo:
      return sum_of(x, n, [](double v) { return v * v; });
    case Order::kAny:
      return sum_of(x, n, [p](double v) { return std::pow(std::abs(v), p); });
    default: {
      double result = start_of(order);
      for (int64_t i = 0; i < n; ++i) {
        result = merge(order, result, std::abs(static_cast<double>(x[i])));
      }
      return result;
    }
  }
}

// Input; attributes ord, reduced dims. The output has keepdim form.
template <class T>
absl::Status norm(const KernelCall& call, Context& context) {
  using C = ComputeOf<T>;
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  double p = call.attributes[0].as_double();
  Order order = order_of(p);
  IndexMap kept_in, kept_out, reduced;
  uint32_t bits = 0;
  for (int64_t d : call.attributes[1].as_ints()) bits |= 1u << d;
  for (int d = 0; d < in.rank; ++d) {
    if (bits >> d & 1) {
      reduced.add(in.sizes[d], in.strides[d]);
    } else {
      kept_in.add(in.sizes[d], in.strides[d]);
      kept_out.add(out.sizes[d], out.strides[d]);
    }
  }
  const int64_t n = reduced.count, outputs = kept_out.count;
  const T* from = in.as<const T>();
  T* to = out.as<T>();
  auto part = [&](int64_t k, int64_t begin, int64_t count) {
    C buffer[kBlock];
    const T* line = from + kept_in.offset(k);
    const C* x = buffer;
    bool direct = false;
    if constexpr (std::is_same_v<T, C>) {
      direct = reduced.linear() && reduced.step() == 1;
      if (direct) x = line + begin;
    }
    if (!direct) gather(line, reduced, begin, count, buffer);
    return fold(order, p, x, count);
  };
  int64_t parts = std::max<int64_t>(1, (n + kBlock - 1) / kBlock);
  auto whole = [&](const double* sums) {
    double sum = start_of(order);
    for (int64_t b = 0; b < parts; ++b) sum = merge(order, sum, sums[b]);
    return sum;
  };
  auto count_of = [&](int64_t b) { return std::min(kBlock, n - b * kBlock); };
  if (outputs >= 16 || parts == 1) {
    int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1));
    context.pool.parallel_ranges(outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        double sum = start_of(order);
        for (int64_t b = 0; b < parts; ++b) {
          sum = merge(order, sum, part(k, b * kBlock, count_of(b)));
        }
        to[kept_out.offset(k)] = static_cast<T>(static_cast<C>(finish(order, p, sum)));
      }
    });
    return absl::OkStatus();
  }
  Scratch scratch(static_cast<size_t>(outputs * parts) * sizeof(double));
  if (!scratch.data()) return scratch_error();
  auto* sums = scratch.as<double>();
  context.pool.parallel_for(outputs * parts, [&](int64_t i) {
    int64_t b = i % parts;
    sums[i] = part(i / parts, b * kBlock, count_of(b));
  });
  for (int64_t k = 0; k < outputs; ++k) {
    double value = finish(order, p, whole(sums + k * parts));
    to[kept_out.offset(k)] = static_cast<T>(static_cast<C>(value));
  }
  return absl::OkStatus();
}

absl::Status vector_norm(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[0].dtype,
                              [&](auto tag) { status = norm<decltype(tag)>(call, context); });
  return known ? status : dtype_error("linalg_vector_norm", call.inputs[0].dtype);
}
GW_CPU_KERNEL("vector_norm_along", vector_norm);

}  // namespace
}  // namespace gradwire::cpu
