// Rows 316 to 319: numbers by a rule, the places of a triangle.
#include <algorithm>
#include <cmath>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

Tensors compose_fill(const Call& call) {
  static const OpRef fill("fill_");
  const Tensor& value = call.in(1);
  if (value && value->rank()) {
    return {
        poisoned(runtime_error("fill only supports 0-dimension value tensor but got tensor with ",
                               value->rank(), " dimensions."))};
  }
  return {call_in_place(fill, {clone(call.in(0)), value}, {call.attr(0)})};
}

// In float64, rounded once: base ** (start + step * i).
Tensors compose_logspace(const Call& call) {
  static const OpRef linspace("linspace"), pow("pow");
  DType dtype = call.attr(4).as_dtype();
  if (dtype == DType::kBool) {
    return {poisoned(not_implemented_error("\"logspace\" not implemented for 'Bool'"))};
  }
  if (call.attr(2).as_int() < 0) {
    return {poisoned(runtime_error("number of steps must be non-negative"))};
  }
  double start = call.attr(0).as_double(), end = call.attr(1).as_double();
  if (!is_floating(dtype)) {  // the ends are of the result's dtype
    start = std::trunc(start);
    end = std::trunc(end);
  }
  Tensor exponent = gradwire::call(linspace, {}, {start, end, call.attr(2), DType::kFloat64});
  Tensor base = full({}, call.attr(3).as_double(), DType::kFloat64);
  return {cast(gradwire::call(pow, {base, exponent}), dtype)};
}

// How many of the first `rows` rows' places lie on or below diagonal `offset`.
__int128 count_lower(__int128 rows, __int128 columns, __int128 offset) {
  // Row i has clamp(i + offset + 1, 0, columns) places.
  __int128 first = std::clamp<__int128>(-offset, 0, rows);                  // first row with any
  __int128 full = std::clamp<__int128>(columns - 1 - offset, first, rows);  // first full row
  __int128 low = first + offset + 1, high = full + offset;
  __int128 slope = full > first ? (low + high) * (full - first) / 2 : 0;
  return slope + (rows - full) * columns;
}

absl::Status infer_triangle(const Call& call, TensorSpecs* out) {
  int64_t rows = call.attr(0).as_int(), columns = call.attr(1).as_int();
  int64_t offset = call.attr(2).as_int();
  DType dtype = call.attr(3).as_dtype();
  if (rows < 0) return runtime_error("row must be non-negative, got", rows);
  if (columns < 0) return runtime_error("col must be non-negative, got", columns);
  if (dtype != DType::kInt64 && dtype != DType::kInt32) {
    return not_implemented_error("\"", call.op->name, "\" not implemented for '",
                                 std::string(dtype_name(dtype)), "'");
  }
  auto numel = checked_numel(Dims{rows, columns});
  if (!numel.ok()) return numel.status();
  bool lower = call.op->name == "tril_indices";
  __int128 count = count_lower(rows, columns, static_cast<__int128>(offset) - (lower ? 0 : 1));
  if (!lower) count = static_cast<__int128>(*numel) - count;
  out->push_back({dtype, {2, static_cast<int64_t>(count)}, {}});
  return absl::OkStatus();
}

}  // namespace

void add_sequence_rows(Catalog& c) {
  auto& fill = c.add(316, OpKind::kComposite, "fill(Tensor input, Operand value) -> Tensor",
                     "A tensor like input with every element value.");
  fill.compose = compose_fill;
  fill.shape_rule = fill.type_rule = "same";
  auto& logspace =
      c.add(317, OpKind::kComposite,
            "logspace(Scalar start, Scalar end, int steps, Scalar base=10.0, *, dtype dtype) "
            "-> Tensor",
            "base ** start to base ** end in steps values, evenly spaced exponents.");
  logspace.compose = compose_logspace;
  logspace.type_rule = "given";
  logspace.out = true;
  for (auto [number, name, side] : {std::tuple{uint16_t{318}, "tril_indices", "on and below"},
                                    std::tuple{uint16_t{319}, "triu_indices", "on and above"}}) {
    OpDef& row = c.add(number, OpKind::kKernel,
                       absl::StrCat(name,
                                    "(int row, int col, int offset=0, *, dtype dtype) "
                                    "-> Tensor"),
                       absl::StrCat("Rows and columns of the places ", side,
                                    " a diagonal of a row x col matrix, row by row."));
    row.infer = infer_triangle;
    row.type_rule = "given";
    row.kernel = "triangle_indices";
    row.lower = [](const Call& call, Task* task) {
      task->attributes = {call.attr(0), call.attr(1), call.attr(2),
                          call.op->name == "tril_indices"};
      return absl::OkStatus();
    };
  }
}

}  // namespace gradwire
