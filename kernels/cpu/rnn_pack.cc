// packed_rows and padded_rows: sequences of different lengths side by side, and without the gaps.
#include "kernels/cpu/dense.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

template <class F>
bool visit_size(DType dtype, F&& f) {
  switch (dtype_size(dtype)) {
    case 1:
      f(uint8_t{});
      return true;
    case 2:
      f(uint16_t{});
      return true;
    case 4:
      f(uint32_t{});
      return true;
    case 8:
      f(uint64_t{});
      return true;
    default:
      return false;
  }
}

// Copies rows between `wide` [time, sequence, ...] and `packed` [row, ...].
template <class T>
absl::Status copy_rows(const TensorView& wide, const TensorView& packed, const IntList& sizes,
                       bool to_packed) {
  IndexMap wide_map = map_dims(wide, 2, wide.rank), map = map_dims(packed, 1, packed.rank);
  int64_t row = 0;
  Scratch scratch(static_cast<size_t>(map.count) * sizeof(T) + 64);
  T* buffer = scratch.as<T>();
  if (!buffer) return scratch_error();
  for (size_t t = 0; t < sizes.size(); ++t) {
    for (int64_t n = 0; n < sizes[t]; ++n, ++row) {
      T* at = wide.as<T>() + static_cast<int64_t>(t) * wide.strides[0] + n * wide.strides[1];
      T* to = packed.as<T>() + row * packed.strides[0];
      if (to_packed) {
        const T* from = read_row(at, wide_map, map.count, buffer);
        scatter(from, map.count, to, map, 0);
      } else {
        scatter(read_row(to, map, map.count, buffer), map.count, at, wide_map, 0);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status packed_rows(const KernelCall& call, Context&) {
  const TensorView& out = call.outputs[0];
  if (out.numel() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = visit_size(out.dtype, [&](auto tag) {
    status = copy_rows<decltype(tag)>(call.inputs[0], out, call.attributes[0].as_ints(), true);
  });
  return known ? status : dtype_error("packed_rows", out.dtype);
}
GW_CPU_KERNEL("packed_rows", packed_rows);

absl::Status padded_rows(const KernelCall& call, Context&) {
  const TensorView& out = call.outputs[0];
  if (out.numel() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = visit_size(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    T value{};
    TensorView one;
    one.data = &value;
    one.dtype = out.dtype;
    write_element(one, 0, call.attributes[2].as_double());
    IndexMap map = map_dims(out, 0, out.rank);
    for (int64_t i = 0; i < map.count; ++i) out.as<T>()[map.offset(i)] = value;
    status = copy_rows<T>(out, call.inputs[0], call.attributes[0].as_ints(), false);
  });
  return known ? status : dtype_error("padded_rows", out.dtype);
}
GW_CPU_KERNEL("padded_rows", padded_rows);

}  // namespace
}  // namespace gradwire::cpu
