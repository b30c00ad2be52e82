// flip, roll, tril, triu: elements moved or cleared, never computed with.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrain = 32768;

// out and x are addressed through a space of (out, x) from these first elements.
void copy_space(const Space<2>& space, DType dtype, void* out, const void* x, Context& context) {
  const auto [out_stride, x_stride] = space.last_strides;
  dispatch_size(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    context.pool.parallel_ranges(space.numel, kGrain, [&](int64_t begin, int64_t end) {
      for_runs(space, begin, end, [&](const auto& at, int64_t count, int64_t) {
        T* to = static_cast<T*>(out) + at[0];
        const T* from = static_cast<const T*>(x) + at[1];
        if (out_stride == 1 && x_stride == 1) {
          std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
        } else {
          for (int64_t i = 0; i < count; ++i) to[i * out_stride] = from[i * x_stride];
        }
      });
    });
  });
}

absl::Status flip(const KernelCall& call, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  if (x.numel() == 0) return absl::OkStatus();
  const IntList& dims = attribute(call, 0).as_ints();
  Space<2> space;
  int64_t first = 0;
  for (int d = 0; d < x.rank; ++d) {
    const bool flipped = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (flipped) first += (x.sizes[d] - 1) * x.strides[d];
    space.push(x.sizes[d], {out.strides[d], flipped ? -x.strides[d] : x.strides[d]});
  }
  copy_space(space, x.dtype, out.data, address(x, first), context);
  return absl::OkStatus();
}

// Each rolled dim splits the result in two; the pieces of all dims are copied one by one.
void roll_pieces(TensorView x, TensorView out, const IntList& shifts, const IntList& dims,
                 size_t next, Context& context) {
  if (next == dims.size()) {
    copy_space(space_of<2>({&out, &x}), x.dtype, out.data, x.data, context);
    return;
  }
  const int64_t d = dims[next];
  const int64_t size = x.sizes[d];
  const int64_t shift = ((shifts[next] % size) + size) % size;
  const auto piece = [&](int64_t from, int64_t to, int64_t length) {
    if (length == 0) return;
    TensorView a = x, b = out;
    a.data = address(x, from * x.strides[d]);
    b.data = address(out, to * out.strides[d]);
    a.sizes[d] = b.sizes[d] = length;
    roll_pieces(a, b, shifts, dims, next + 1, context);
  };
  piece(0, shift, size - shift);
  piece(size - shift, 0, shift);
}

// Copies count elements in row-major order from element `from` of x to element `to` of out.
template <class T>
void copy_linear(const TensorView& x, const TensorView& out, int64_t from, int64_t to,
                 int64_t count) {
  const Space<1> source = space_of<1>({&x}), target = space_of<1>({&out});
  for_runs(source, from, from + count, [&](const auto& at, int64_t n, int64_t linear) {
    const T* p = x.as<T>() + at[0];
    const int64_t begin = linear - from + to;
    for_runs(target, begin, begin + n, [&](const auto& place, int64_t m, int64_t where) {
      T* q = out.as<T>() + place[0];
      const T* s = p + (where - begin) * source.inner_stride(0);
      for (int64_t i = 0; i < m; ++i) {
        q[i * target.inner_stride(0)] = s[i * source.inner_stride(0)];
      }
    });
  });
}

absl::Status roll(const KernelCall& call, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  IntList shifts = attribute(call, 0).as_ints();
  IntList dims = attribute(call, 1).as_ints();
  if (attribute(call, 0).is_int()) shifts = {attribute(call, 0).as_int()};
  if (attribute(call, 1).is_int()) dims = {attribute(call, 1).as_int()};
  const int64_t n = x.numel();
  if (n == 0) return absl::OkStatus();
  if (dims.empty() || x.rank == 0) {
    const int64_t by = shifts.empty() || x.rank == 0 ? 0 : ((shifts[0] % n) + n) % n;
    dispatch_size(x.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      copy_linear<T>(x, out, 0, by, n - by);
      copy_linear<T>(x, out, n - by, 0, by);
    });
    return absl::OkStatus();
  }
  // Shifts of a dim named twice add up.
  IntList merged_shifts, merged_dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto found = std::find(merged_dims.begin(), merged_dims.end(), dims[i]);
    const int64_t shift = shifts[i] % x.sizes[dims[i]];
    if (found != merged_dims.end()) {
      merged_shifts[found - merged_dims.begin()] += shift;
    } else {
      merged_dims.push_back(dims[i]);
      merged_shifts.push_back(shift);
    }
  }
  roll_pieces(x, out, merged_shifts, merged_dims, 0, context);
  return absl::OkStatus();
}

absl::Status triangle(const KernelCall& call, bool lower, Context& context) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const int64_t diagonal = attribute(call, 0).as_int();
  if (x.numel() == 0) return absl::OkStatus();
  const int last = x.rank - 1;
  const int64_t rows = x.sizes[last - 1], columns = x.sizes[last];
  // Clamped first: a diagonal may be any int64.
  const int64_t shift = std::clamp<int64_t>(diagonal, -rows - 1, columns + 1) + (lower ? 1 : 0);
  Space<2> space;  // everything but the columns
  for (int d = 0; d < last; ++d) space.push(x.sizes[d], {out.strides[d], x.strides[d]});
  const auto [out_row, x_row] = space.last_strides;
  const int64_t out_stride = out.strides[last], x_stride = x.strides[last];
  dispatch_size(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t grain = std::max<int64_t>(1, kGrain / columns);
    context.pool.parallel_ranges(space.numel, grain, [&](int64_t begin, int64_t end) {
      for_runs(space, begin, end, [&](const auto& at, int64_t count, int64_t linear) {
        for (int64_t r = 0; r < count; ++r) {
          T* to = out.as<T>() + at[0] + r * out_row;
          const T* from = x.as<T>() + at[1] + r * x_row;
          // tril keeps the columns before `split`, triu the others.
          const int64_t row = (linear + r) % rows;
          const int64_t split = std::clamp<int64_t>(row + shift, 0, columns);
          for (int64_t c = 0; c < columns; ++c) {
            to[c * out_stride] = (c < split) == lower ? from[c * x_stride] : T{0};
          }
        }
      });
    });
  });
  return absl::OkStatus();
}

absl::Status tril(const KernelCall& call, Context& context) {
  return triangle(call, true, context);
}

absl::Status triu(const KernelCall& call, Context& context) {
  return triangle(call, false, context);
}

GW_CPU_KERNEL("flip", flip);
GW_CPU_KERNEL("roll", roll);
GW_CPU_KERNEL("tril", tril);
GW_CPU_KERNEL("triu", triu);

}  // namespace
}  // namespace gradwire::cpu
