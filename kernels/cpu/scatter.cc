// scatter, scatter_value, scatter_add, index_add, index_copy, index_fill: in place.
#include <string>

#include "kernels/cpu/index_bounds.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/scatter_lines.h"
#include "kernels/cpu/scatter_typed.h"
#include "kernels/error.h"

namespace gradwire::cpu {
namespace {

// Errors are RuntimeError for the scatter family and index_add, IndexError for the others.
absl::Status check_bounds(const char* op, const TensorView& self, const TensorView& index,
                          int64_t dim, ErrorKind kind, bool wraps, Context& context) {
  const int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
  const auto bad = first_outside(index, wraps ? -size : 0, size, context);
  if (!bad) return absl::OkStatus();
  return make_error(kind,
                    absl::StrCat("[", op, "] index ", *bad, " is out of bounds for dimension ", dim,
                                 " with size ", size));
}

absl::Status no_memory(const char* op) {
  return make_error(ErrorKind::kOutOfMemory, absl::StrCat("[", op, "] out of memory"));
}

// `spread`: the index is 1-D along dim.
absl::Status assign(const char* op, const KernelCall& call, ErrorKind kind, bool spread,
                    Context& context) {
  const TensorView& self = call.outputs[0];
  const TensorView& src = call.inputs[2];
  const int64_t dim = attribute(call, 0).as_int();
  GW_RETURN_IF_ERROR(check_same_dtype(op, self, src));
  GW_RETURN_IF_ERROR(check_bounds(op, self, call.inputs[1], dim, kind, false, context));
  Int64Index entries(call.inputs[1], context);
  if (!entries.ok()) return no_memory(op);
  const TensorView index = spread ? spread_index(entries.view(), src, dim) : entries.view();
  dispatch_size(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    scatter_lines<T, T>(self, index, &src, T{}, dim, context, [](T& to, T from) { to = from; });
  });
  return absl::OkStatus();
}

absl::Status scatter(const KernelCall& call, Context& context) {
  return assign("scatter", call, ErrorKind::kRuntime, false, context);
}

absl::Status index_copy(const KernelCall& call, Context& context) {
  return assign("index_copy_", call, ErrorKind::kIndex, true, context);
}

absl::Status scatter_value(const KernelCall& call, Context& context) {
  const TensorView& self = call.outputs[0];
  const int64_t dim = attribute(call, 0).as_int();
  const ScalarValue value = number(call, 1);
  GW_RETURN_IF_ERROR(
      check_bounds("scatter", self, call.inputs[1], dim, ErrorKind::kRuntime, false, context));
  Int64Index entries(call.inputs[1], context);
  if (!entries.ok()) return no_memory("scatter");
  dispatch_dtype(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    scatter_lines<T, T>(self, entries.view(), nullptr, number_as<T>(value), dim, context,
                        [](T& to, T from) { to = from; });
  });
  return absl::OkStatus();
}

absl::Status index_fill(const KernelCall& call, Context& context) {
  const TensorView& self = call.outputs[0];
  const int64_t dim = attribute(call, 0).as_int();
  const int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
  const ScalarValue value = number(call, 1);
  GW_RETURN_IF_ERROR(
      check_bounds("index_fill_", self, call.inputs[1], dim, ErrorKind::kIndex, true, context));
  Int64Index entries(call.inputs[1], context);
  const int64_t count = call.inputs[1].numel();
  Scratch wrapped(8 * static_cast<size_t>(count) + 1);
  if (!entries.ok() || wrapped.data() == nullptr) return no_memory("index_fill_");
  TensorView index = dense_like(entries.view(), DType::kInt64, wrapped.data());
  convert_range(entries.view(), 0, count, DType::kInt64, wrapped.data());
  for (int64_t i = 0; i < count; ++i) {
    int64_t& e = wrapped.as<int64_t>()[i];
    if (e < 0) e += size;
  }
  index = spread_index(index, self, dim);
  dispatch_dtype(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    scatter_lines<T, T>(self, index, nullptr, number_as<T>(value), dim, context,
                        [](T& to, T from) { to = from; });
  });
  return absl::OkStatus();
}

absl::Status accumulate(const char* op, const KernelCall& call, bool spread,
                        const ScalarValue* alpha, Context& context) {
  const TensorView& self = call.outputs[0];
  const TensorView& src = call.inputs[2];
  const int64_t dim = attribute(call, 0).as_int();
  GW_RETURN_IF_ERROR(check_same_dtype(op, self, src));
  GW_RETURN_IF_ERROR(
      check_bounds(op, self, call.inputs[1], dim, ErrorKind::kRuntime, false, context));
  Int64Index entries(call.inputs[1], context);
  if (!entries.ok()) return no_memory(op);
  const TensorView index = spread ? spread_index(entries.view(), src, dim) : entries.view();
  return with_target(self, context, [&](const TensorView& target) {
    dispatch_dtype(src.dtype, [&](auto type) {
      using S = typename decltype(type)::type;
      using T = Target<S>;
      if (alpha == nullptr) {
        scatter_lines<T, S>(target, index, &src, S{}, dim, context,
                            [](T& to, S from) { to = add(to, convert<T>(from)); });
        return;
      }
      const T factor = number_as<T>(*alpha);
      scatter_lines<T, S>(target, index, &src, S{}, dim, context, [factor](T& to, S from) {
        to = add(to, multiply(factor, convert<T>(from)));
      });
    });
    return absl::OkStatus();
  });
}

absl::Status scatter_add(const KernelCall& call, Context& context) {
  return accumulate("scatter_add", call, false, nullptr, context);
}

absl::Status index_add(const KernelCall& call, Context& context) {
  ScalarValue alpha;
  alpha.kind = ScalarValue::Kind::kInt;
  alpha.i = 1;
  if (!call.scalars.empty() || !attribute(call, 1).none()) alpha = number(call, 1);
  const bool one = alpha.as_double() == 1;
  return accumulate("index_add_", call, true, one ? nullptr : &alpha, context);
}

GW_CPU_KERNEL("scatter", scatter);
GW_CPU_KERNEL("scatter_value", scatter_value);
GW_CPU_KERNEL("scatter_add", scatter_add);
GW_CPU_KERNEL("index_add", index_add);
GW_CPU_KERNEL("index_copy", index_copy);
GW_CPU_KERNEL("index_fill", index_fill);

}  // namespace
}  // namespace gradwire::cpu
