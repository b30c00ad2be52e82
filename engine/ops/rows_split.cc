// Rows 395 to 401: splitting by numbers of parts, by places and by lengths.
#include <algorithm>

#include "engine/ops/formula.h"

namespace gradwire {
namespace {

Tensors by_lengths(const Tensor& x, IntList lengths, int64_t dim) {
  static const OpRef split("split_with_sizes");
  return call_many(split, {x}, {std::move(lengths), dim});
}

// `sections` parts, the first larger by one, or the parts between `indices`.
Tensors parts_of(const Call& call, const Attribute& sections, const Attribute& indices,
                 int64_t dim) {
  const Tensor& x = call.in(0);
  if (sections.none() == indices.none()) {
    return {
        poisoned(type_error("[", call.op->name, "] takes sections or indices, one of the two"))};
  }
  int64_t size = x->sizes[dim];
  if (!sections.none()) {
    int64_t n = sections.as_int();
    if (n <= 0) {
      return {poisoned(runtime_error("number of sections must be larger than 0, got ", n))};
    }
    absl::Status status = check_outputs(call, n);
    if (!status.ok()) return {poisoned(status)};
    IntList lengths(n, size / n);
    std::fill(lengths.begin(), lengths.begin() + size % n, size / n + 1);
    return by_lengths(x, std::move(lengths), dim);
  }
  static const OpRef slice("slice");
  Tensors out;
  int64_t start = 0;
  for (int64_t end : indices.as_ints()) {
    out.push_back(gradwire::call(slice, {x}, {dim, start, end, 1}));
    start = end;
  }
  out.push_back(gradwire::call(slice, {x}, {dim, start, size, 1}));
  return out;
}

Tensors compose_tensor_split(const Call& call) {
  const Tensor& x = call.in(0);
  if (x->rank() == 0) {
    return {poisoned(runtime_error(
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"))};
  }
  auto dim = dim_of(call, call.attr(2).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  return parts_of(call, call.attr(0), call.attr(1), *dim);
}

// hsplit, vsplit, dsplit: parts of one size, along a dimension that the name says.
Tensors split_at(const Call& call, int rank, int64_t dim) {
  const Tensor& x = call.in(0);
  if (x->rank() < rank) {
    return {
        poisoned(runtime_error("torch.", call.op->name, " requires a tensor with at least ", rank,
                               " dimension, but got a tensor with ", x->rank(), " dimensions!"))};
  }
  const Attribute& sections = call.attr(0);
  if (!sections.none() && (sections.as_int() == 0 || x->sizes[dim] % sections.as_int() != 0)) {
    return {
        poisoned(runtime_error("torch.", call.op->name, " attempted to split along dimension ", dim,
                               ", but the size of the dimension ", x->sizes[dim],
                               " is not divisible by the split_size ", sections.as_int(), "!"))};
  }
  return parts_of(call, sections, call.attr(1), dim);
}

Tensors compose_hsplit(const Call& call) {
  return split_at(call, 1, call.in(0)->rank() == 1 ? 0 : 1);
}
Tensors compose_vsplit(const Call& call) {
  return split_at(call, 2, 0);
}
Tensors compose_dsplit(const Call& call) {
  return split_at(call, 3, 2);
}

absl::StatusOr<int64_t> split_dim(const Call& call, int64_t dim) {
  if (call.in(0)->rank() == 0) {
    return runtime_error(call.op->name, " expects at least a 1-dimensional tensor");
  }
  return dim_of(call, dim, call.in(0)->rank());
}

Tensors pieces(const Call& call, int64_t length, int64_t dim) {
  int64_t size = call.in(0)->sizes[dim];
  if (length < 0) {
    return {poisoned(
        runtime_error("split expects split_size be non-negative, but got split_size=", length))};
  }
  if (length == 0 && size != 0) {
    return {
        poisoned(runtime_error("split_size can only be 0 if dimension size is 0, but got "
                               "dimension size of ",
                               size))};
  }
  int64_t n = size == 0 ? 1 : (size - 1) / length + 1;
  absl::Status status = check_outputs(call, n);
  if (!status.ok()) return {poisoned(status)};
  IntList lengths(n, length);
  if (size == 0) lengths[0] = 0;
  if (size != 0) lengths[n - 1] = size - length * (n - 1);
  return by_lengths(call.in(0), std::move(lengths), dim);
}

Tensors compose_unsafe_split(const Call& call) {
  auto dim = split_dim(call, call.attr(1).as_int());
  if (!dim.ok()) return {poisoned(dim.status())};
  return pieces(call, call.attr(0).as_int(), *dim);
}

Tensors compose_unsafe_chunk(const Call& call) {
  auto dim = split_dim(call, call.attr(1).as_int());
  if (!dim.ok()) return {poisoned(dim.status())};
  int64_t n = call.attr(0).as_int(), size = call.in(0)->sizes[*dim];
  if (n <= 0) {
    return {poisoned(runtime_error("chunk expects `chunks` to be greater than 0, got: ", n))};
  }
  if (size == 0) {
    absl::Status status = check_outputs(call, n);
    if (!status.ok()) return {poisoned(status)};
    return by_lengths(call.in(0), IntList(n, 0), *dim);
  }
  return pieces(call, (size - 1) / n + 1, *dim);
}

Tensors compose_unsafe_split_with_sizes(const Call& call) {
  return by_lengths(call.in(0), call.attr(0).as_ints(), call.attr(1).as_int());
}

}  // namespace

void add_split_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view shape_rule) {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = fn;
    row.shape_rule = std::string(shape_rule);
    row.type_rule = "same";
    row.method = true;
  };
  composite(395,
            "tensor_split(Tensor input, int? sections=None, int[]? indices=None, int dim=0) "
            "-> Tensor[]",
            "sections parts of dim, the first ones larger by one, or the parts between indices.",
            compose_tensor_split, "tensor_split");
  composite(396, "hsplit(Tensor input, int? sections=None, int[]? indices=None) -> Tensor[]",
            "Equal parts, or parts between indices, of dimension 1, of a vector's dimension 0.",
            compose_hsplit, "tensor_split");
  composite(397, "vsplit(Tensor input, int? sections=None, int[]? indices=None) -> Tensor[]",
            "Equal parts, or parts between indices, of dimension 0.", compose_vsplit,
            "tensor_split");
  composite(398, "dsplit(Tensor input, int? sections=None, int[]? indices=None) -> Tensor[]",
            "Equal parts, or parts between indices, of dimension 2.", compose_dsplit,
            "tensor_split");
  composite(399, "unsafe_chunk(Tensor input, int chunks, int dim=0) -> Tensor[]",
            "At most chunks parts of one size; the last may be smaller.", compose_unsafe_chunk,
            "chunk");
  composite(400, "unsafe_split(Tensor tensor, int split_size, int dim=0) -> Tensor[]",
            "Parts of split_size; the last may be smaller.", compose_unsafe_split, "split");
  composite(401, "unsafe_split_with_sizes(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]",
            "Consecutive parts of dim.", compose_unsafe_split_with_sizes, "split");
}

}  // namespace gradwire
