// Padding of any dimensions: every output line reads its input line through a table of places.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

enum class PadMode : int64_t { kConstant = 0, kReflect = 1, kReplicate = 2, kCircular = 3 };

// The input index of every output index of one dimension; -1: the fill value.
std::vector<int64_t> places_of(PadMode mode, int64_t before, int64_t in, int64_t out) {
  std::vector<int64_t> places(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    int64_t i = o - before;
    switch (mode) {
      case PadMode::kConstant:
        if (i < 0 || i >= in) i = -1;
        break;
      case PadMode::kReflect:
        if (i < 0) i = -i;
        if (i >= in) i = 2 * (in - 1) - i;
        break;
      case PadMode::kReplicate:
        i = std::clamp<int64_t>(i, 0, in - 1);
        break;
      case PadMode::kCircular:
        i = (i % in + in) % in;
        break;
    }
    places[static_cast<size_t>(o)] = i >= 0 && i < in ? i : -1;
  }
  return places;
}

struct PadPlan {
  std::vector<std::vector<int64_t>> places;  // by dimension
  int rank = 0;
  int64_t lines = 1, width = 1;  // of the padded side

  // Where line `i` of the padded side lies in `padded` and in `plain`; false: all fill.
  bool line(int64_t i, const TensorView& padded, const TensorView& plain, int64_t* to,
            int64_t* from) const {
    bool inside = true;
    *to = *from = 0;
    for (int d = rank - 2; d >= 0; --d) {
      int64_t at = i % padded.sizes[d];
      i /= padded.sizes[d];
      *to += at * padded.strides[d];
      int64_t place = places[d][static_cast<size_t>(at)];
      if (place < 0) {
        inside = false;
      } else {
        *from += place * plain.strides[d];
      }
    }
    return inside;
  }
};

// Attributes: mode, amounts before each dimension.
PadPlan plan_of(const KernelCall& call, const TensorView& plain, const TensorView& padded) {
  PadPlan plan;
  auto mode = static_cast<PadMode>(call.attributes[0].as_int());
  const IntList& before = call.attributes[1].as_ints();
  plan.rank = plain.rank;
  for (int d = 0; d < plan.rank; ++d) {
    bool same = before[d] == 0 && plain.sizes[d] == padded.sizes[d];
    plan.places.push_back(
        places_of(same ? PadMode::kConstant : mode, before[d], plain.sizes[d], padded.sizes[d]));
    (d + 1 == plan.rank ? plan.width : plan.lines) *= padded.sizes[d];
  }
  return plan;
}

template <class T>
void forward(const PadPlan& plan, const TensorView& x, const TensorView& out, T fill,
             ThreadPool& pool) {
  const std::vector<int64_t>& inner = plan.places.back();
  int64_t step = x.strides[plan.rank - 1], out_step = out.strides[plan.rank - 1];
  int64_t grain = std::max<int64_t>(1, (1 << 14) / (plan.width + 1));
  pool.parallel_ranges(plan.lines, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t to, from;
      bool inside = plan.line(i, out, x, &to, &from);
      T* o = out.as<T>() + to;
      for (int64_t k = 0; k < plan.width; ++k) {
        int64_t place = inner[static_cast<size_t>(k)];
        o[k * out_step] = inside && place >= 0 ? x.as<const T>()[from + place * step] : fill;
      }
    }
  });
}

template <class T>
T fill_of(const Attribute& value, DType dtype) {
  T fill{};
  TensorView one;
  one.data = &fill;
  one.dtype = dtype;
  if (dtype == DType::kInt64) {
    int64_t whole = value.as_int();
    std::memcpy(&fill, &whole, sizeof(T));
  } else {
    write_element(one, 0, value.as_double());
  }
  return fill;
}

// Attributes: mode, amounts before each dimension, fill value.
absl::Status pad_nd(const KernelCall& call, Context& context) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  if (out.numel() == 0) return absl::OkStatus();
  PadPlan plan = plan_of(call, x, out);
  auto run = [&](auto tag) {
    using T = decltype(tag);
    forward<T>(plan, x, out, fill_of<T>(call.attributes[2], x.dtype), context.pool);
  };
  switch (dtype_size(x.dtype)) {
    case 1:
      run(uint8_t{});
      break;
    case 2:
      run(uint16_t{});
      break;
    case 4:
      run(uint32_t{});
      break;
    default:
      run(uint64_t{});
  }
  return absl::OkStatus();
}
GW_CPU_KERNEL("pad_nd", pad_nd);

// Adds every gradient to the element it was read from. Lines of the first dimension that is not
// padded could run apart; the sums of one line of the result stay in one order.
template <class T>
absl::Status backward(const PadPlan& plan, const TensorView& grad, const TensorView& dx,
                      ThreadPool& pool) {
  using C = ComputeOf<T>;
  DenseOutput<C> sums(dx, pool);
  if (!sums.ok()) return scratch_error();
  std::fill(sums.data(), sums.data() + dx.numel(), C(0));
  TensorView flat = dx;
  int64_t stride = 1;
  for (int d = dx.rank - 1; d >= 0; --d) {
    flat.strides[d] = stride;
    stride *= dx.sizes[d];
  }
  const std::vector<int64_t>& inner = plan.places.back();
  int64_t step = grad.strides[plan.rank - 1];
  // Outer dimensions that map one to one split the work.
  int64_t parts = 1;
  int64_t part_lines = plan.lines;
  for (int d = 0; d + 1 < plan.rank && grad.sizes[d] == dx.sizes[d]; ++d) {
    bool same = true;
    for (int64_t o = 0; o < grad.sizes[d]; ++o) {
      same = same && plan.places[d][static_cast<size_t>(o)] == o;
    }
    if (!same) break;
    parts *= grad.sizes[d];
    part_lines /= grad.sizes[d];
  }
  int64_t grain = std::max<int64_t>(1, (1 << 14) / (plan.width * part_lines + 1));
  pool.parallel_ranges(parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * part_lines; i < end * part_lines; ++i) {
      int64_t from, to;
      if (!plan.line(i, grad, flat, &from, &to)) continue;
      const T* g = grad.as<const T>() + from;
      for (int64_t k = 0; k < plan.width; ++k) {
        int64_t place = inner[static_cast<size_t>(k)];
        if (place >= 0) sums.data()[to + place] += static_cast<C>(g[k * step]);
      }
    }
  });
  sums.store();
  return absl::OkStatus();
}

absl::Status pad_nd_backward(const KernelCall& call, Context& context) {
  const TensorView &grad = call.inputs[0], &dx = call.outputs[0];
  if (dx.numel() == 0) return absl::OkStatus();
  if (grad.numel() == 0) {
    std::memset(dx.data, 0, static_cast<size_t>(dx.numel()) * dtype_size(dx.dtype));
    return absl::OkStatus();
  }
  PadPlan plan = plan_of(call, dx, grad);
  absl::Status status;
  bool known = visit_floating(
      dx.dtype, [&](auto tag) { status = backward<decltype(tag)>(plan, grad, dx, context.pool); });
  return known ? status : dtype_error("pad_nd_backward", dx.dtype);
}
GW_CPU_KERNEL("pad_nd_backward", pad_nd_backward);

}  // namespace
}  // namespace gradwire::cpu
