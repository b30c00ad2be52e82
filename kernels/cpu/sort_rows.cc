// order_rows: the order of a matrix's rows, first by column 0, then by column 1, and so on.
#include <algorithm>
#include <numeric>

#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sort_keys.h"

namespace gradwire::cpu {
namespace {

absl::Status order_rows(const KernelCall& call, Context&) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  if (out.numel() == 0) return absl::OkStatus();
  int64_t* order = out.as<int64_t>();
  const int64_t rows = x.sizes[0], columns = x.sizes[1];
  const int64_t row_step = x.strides[0], column_step = x.strides[1];
  std::iota(order, order + rows, int64_t{0});
  dispatch_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    std::stable_sort(order, order + rows, [&](int64_t a, int64_t b) {
      const T* left = x.as<T>() + a * row_step;
      const T* right = x.as<T>() + b * row_step;
      for (int64_t i = 0; i < columns; ++i) {
        const Key<T> l = key_of(left[i * column_step]), r = key_of(right[i * column_step]);
        if (l != r) return l < r;
      }
      return false;
    });
  });
  return absl::OkStatus();
}

GW_CPU_KERNEL("order_rows", order_rows);

}  // namespace
}  // namespace gradwire::cpu
