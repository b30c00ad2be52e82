// Rows 861 to 879: norms of vectors and matrices, and what is measured with them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/promotion.h"
#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

constexpr double kInfinity = std::numeric_limits<double>::infinity();

absl::Status infer_norm(const Call& call, TensorSpecs* out) {
  Dims sizes = call.in(0)->sizes;
  for (int64_t d : call.attr(1).as_ints()) sizes[d] = 1;
  out->push_back({call.in(0)->dtype, sizes, {}});
  return absl::OkStatus();
}

// torch's subgradients: 0 where the norm or, for orders under 1, the element is 0.
void backward_norm(Backward& b) {
  double p = b.attr(0).as_double();
  Tensor x = b.input(0), y = b.output(0), g = b.grad();
  if (p == 0) {
    b.set(0, zeros_like(b.input_spec(0)));
  } else if (p == 1) {
    b.set(0, mul(sign(x), g));
  } else if (p == 2) {
    b.set(0, mul(masked_fill(div(x, y), equal(y, 0), 0), g));
  } else if (std::isinf(p)) {
    static const OpRef is_nan("isnan"), logical_or("logical_or");
    Tensor size = absolute(x);
    Tensor hit = call(logical_or, {equal(size, y), call(is_nan, {size})});
    Tensor count = sum(cast(hit, b.input_spec(0).dtype), b.attr(1).as_ints(), true);
    b.set(0, mul(sign(x), mul(cast(hit, b.input_spec(0).dtype), div(g, count))));
  } else if (p < 1) {
    Tensor slope = masked_fill(power(absolute(x), p - 1), equal(x, 0), 0);
    b.set(0, mul(mul(mul(sign(x), slope), g), power(y, 1 - p)));
  } else {
    Tensor scaled =
        p < 2 ? mul(sign(x), power(absolute(x), p - 1)) : mul(x, power(absolute(x), p - 2));
    Tensor scale = masked_fill(div(g, power(y, p - 1)), equal(y, 0), 0);
    b.set(0, mul(scaled, scale));
  }
}

// The dims of a slot, wrapped; none or an empty list means all.
absl::StatusOr<IntList> dims_of(const Call& call, const Attribute& given, int rank) {
  IntList dims;
  std::vector<bool> seen(rank, false);
  if (given.none() || given.as_ints().empty()) {
    for (int d = 0; d < rank; ++d) dims.push_back(d);
    return dims;
  }
  for (int64_t d : given.as_ints()) {
    auto dim = dim_of(call, d, rank);
    if (!dim.ok()) return dim.status();
    if (rank == 0) continue;
    if (seen[*dim]) {
      return runtime_error("dim ", *dim, " appears multiple times in the list of dims");
    }
    seen[*dim] = true;
    dims.push_back(*dim);
  }
  return dims;
}

// The input as the dtype to compute in; attribute `slot` is torch's dtype argument.
absl::Status to_computed(const Call& call, int slot, Tensor* x) {
  GW_RETURN_IF_ERROR(check_floating(call, (*x)->dtype));
  DType given = call.attr(slot).as_dtype();
  if (given == DType::kNone) return absl::OkStatus();
  if (!is_floating(given)) {
    return runtime_error(call.op->name, ": dtype should be floating point or complex. Got ",
                         std::string(dtype_name(given)));
  }
  if (promote((*x)->dtype, given) != given) {
    return runtime_error(call.op->name, ": the dtype of the input ",
                         std::string(dtype_name((*x)->dtype)),
                         " should be convertible without narrowing to the specified dtype (",
                         std::string(dtype_name(given)), ")");
  }
  *x = cast(*x, given);
  return absl::OkStatus();
}

absl::Status check_filled(const Call& call, const Tensor& x, double order, const IntList& dims,
                          bool all) {
  if (order >= 0 && order != kInfinity) return absl::OkStatus();
  if (all && x->numel() == 0) {
    return runtime_error(call.op->name, " cannot compute the ", order,
                         " norm on an empty tensor because the operation does not have an "
                         "identity");
  }
  for (int64_t d : dims) {
    if (x->sizes[d] == 0) {
      return runtime_error(call.op->name, " cannot compute the ", order, " norm on the dimension ",
                           d,
                           " because this dimension is empty and the operation does not have "
                           "an identity");
    }
  }
  return absl::OkStatus();
}

Tensors vector_norm_of(const Call& call, double order, const Attribute& dim, bool keepdim,
                       int dtype_slot) {
  Tensor x = call.in(0);
  absl::Status status = to_computed(call, dtype_slot, &x);
  if (!status.ok()) return fail(call, status);
  if (x->poison) return {x};
  auto dims = dims_of(call, dim, x->rank());
  if (!dims.ok()) return fail(call, dims.status());
  status = check_filled(call, x, order, *dims, dim.none() || dim.as_ints().empty());
  if (!status.ok()) return fail(call, status);
  return {vector_norm(x, order, *dims, keepdim)};
}

// The order of a norm as the caller gave it: a number, "fro" or "nuc".
struct Order {
  bool named = false;
  std::string name;
  double number = 0;
};

Tensor extreme(const Tensor& x, IntList dims, bool largest, bool keepdim) {
  static const OpRef amax("amax"), amin("amin");
  return call(largest ? amax : amin, {x}, {std::move(dims), keepdim});
}

Tensor singular_values(const Tensor& x) {
  Tensors found = svd(x, false, false, "linalg.svd");
  return found[found.size() > 1 ? 1 : 0];
}

// `dims` are the two of the matrices.
Tensors matrix_norm_of(const Call& call, Tensor x, const Order& order, const Attribute& dim,
                       bool keepdim) {
  absl::Status status = check_matrix(call, x);
  if (!status.ok()) return fail(call, status);
  const IntList& given = dim.as_ints();
  if (given.size() != 2) {
    return fail(
        call, runtime_error("linalg.matrix_norm: dim must be a 2-tuple. Got ", shape_text(given)));
  }
  int rank = x->rank();
  auto row = dim_of(call, given[0], rank), column = dim_of(call, given[1], rank);
  if (!row.ok() || !column.ok()) return fail(call, row.ok() ? column.status() : row.status());
  if (*row == *column) {
    return fail(call, runtime_error("linalg.matrix_norm: dims must be different. Got (", given[0],
                                    ", ", given[1], ")"));
  }
  double size = std::abs(order.number);
  bool known = order.named ? order.name == "fro" || order.name == "nuc"
                           : size == 1 || size == 2 || size == kInfinity;
  if (!known) {
    return fail(call,
                order.named
                    ? runtime_error("linalg.matrix_norm: Order ", order.name, " not supported.")
                    : runtime_error("linalg.matrix_norm: Order ", order.number, " not supported."));
  }
  if (order.named && order.name == "fro") {
    return {vector_norm(x, 2, {*row, *column}, keepdim)};
  }
  bool largest = order.number > 0;
  if (!order.named && size != 2) {
    int64_t summed = *row, compared = *column;
    if (size == kInfinity) std::swap(summed, compared);
    if (!keepdim && summed < compared) --compared;
    return {extreme(vector_norm(x, 1, {summed}, keepdim), {compared}, largest, keepdim)};
  }
  status = check_real(call, x);
  if (!status.ok()) return fail(call, status);
  IntList orders;
  for (int d = 0; d < rank; ++d) {
    if (d != *row && d != *column) orders.push_back(d);
  }
  orders.push_back(*row);
  orders.push_back(*column);
  Tensor values = singular_values(permute(x, orders));
  Tensor result = order.named ? sum(values, {-1}, false) : extreme(values, {-1}, largest, false);
  if (keepdim) {
    result = unsqueeze(result, std::min(*row, *column));
    result = unsqueeze(result, std::max(*row, *column));
  }
  return {result};
}

Attribute two_dims(int64_t a, int64_t b) {
  return Attribute(IntList{a, b});
}

// linalg.norm: of a matrix where an order and two dims are given, else of vectors.
Tensors compose_linalg_norm(const Call& call, const Order* order) {
  Tensor x = call.in(0);
  const Attribute& dim = call.attr(1);
  bool keepdim = call.attr(2).as_bool();
  size_t count = dim.as_ints().size();
  bool has_dim = !dim.none() && count > 0;
  if (order) {
    if (has_dim && count > 2) {
      return fail(call, runtime_error("linalg.norm: If dim is specified, it must be of length 1 ",
                                      "or 2. Got ", shape_text(dim.as_ints())));
    }
    if (!has_dim && x->rank() != 1 && x->rank() != 2) {
      return fail(call, runtime_error("linalg.norm: If dim is not specified but ord is, the input ",
                                      "must be 1D or 2D. Got ", x->rank(), "D."));
    }
    if ((has_dim ? count : static_cast<size_t>(x->rank())) == 2) {
      absl::Status status = to_computed(call, 3, &x);
      if (!status.ok()) return fail(call, status);
      if (x->poison) return {x};
      return matrix_norm_of(call, x, *order, has_dim ? dim : two_dims(0, 1), keepdim);
    }
    if (order->named) {
      return fail(call, runtime_error("linalg.norm: Order ", order->name,
                                      " is only supported for matrices"));
    }
  }
  return vector_norm_of(call, order ? order->number : 2, dim, keepdim, 3);
}

// torch.norm: p of all elements, or over dim.
Tensors compose_old_norm(const Call& call) {
  bool keepdim = call.attr(2).as_bool();
  const Attribute& p = call.attr(0);
  return vector_norm_of(call, p.none() ? 2 : p.as_double(), call.attr(1), keepdim, 3);
}

Tensors compose_old_norm_name(const Call& call) {
  const std::string& name = call.attr(0).as_string();
  const Attribute& dim = call.attr(1);
  if (name == "fro") return vector_norm_of(call, 2, dim, call.attr(2).as_bool(), 3);
  if (name != "nuc") {
    return fail(call, runtime_error("only valid string values are 'fro' and 'nuc', found ", name));
  }
  Tensor x = call.in(0);
  absl::Status status = to_computed(call, 3, &x);
  if (!status.ok()) return fail(call, status);
  if (x->poison) return {x};
  bool given = !dim.none() && !dim.as_ints().empty();
  if (!given && x->rank() != 2) {
    std::string all;
    for (int d = 0; d < x->rank(); ++d) absl::StrAppend(&all, d ? " " : "", d);
    return fail(call, runtime_error("linalg.matrix_norm: dim must be a 2-tuple. Got ", all));
  }
  return matrix_norm_of(call, x, {true, "nuc", 0}, given ? dim : two_dims(0, 1),
                        call.attr(2).as_bool());
}

Tensors compose_matrix_norm(const Call& call) {
  Tensor x = call.in(0);
  absl::Status status = to_computed(call, 3, &x);
  if (!status.ok()) return fail(call, status);
  if (x->poison) return {x};
  const Attribute& order = call.attr(0);
  Order wanted{order.is_string(), order.as_string(), order.as_double()};
  return matrix_norm_of(call, x, wanted, call.attr(1), call.attr(2).as_bool());
}

Tensors compose_cond(const Call& call) {
  static const OpRef inv("linalg.inv_ex"), gt("gt");
  const Tensor& x = call.in(0);
  absl::Status status = check_matrix(call, x);
  if (status.ok()) status = check_real(call, x);
  if (!status.ok()) return fail(call, status);
  if (x->numel() == 0) return {zeros(batch_of(x), x->dtype)};
  const Attribute& order = call.attr(0);
  double number = order.none() ? 2 : order.as_double();
  if (!order.is_string() && std::abs(number) == 2) {
    Tensor s = singular_values(x);
    Tensor first = select(s, -1, 0), last = select(s, -1, -1);
    return {number < 0 ? div(last, first) : div(first, last)};
  }
  status = check_square(call, x);
  if (!status.ok()) return fail(call, status);
  Tensors found = call_many(inv, {x}, {false});
  if (found[0]->poison) return {found[0]};
  Tensor bad = with_number(gt, found[1], 0);
  Tensor inverse = masked_fill(found[0], unsqueeze(unsqueeze(bad, -1), -1), kInfinity);
  Order wanted{order.is_string(), order.as_string(), number};
  Tensors own = matrix_norm_of(call, x, wanted, two_dims(-2, -1), false);
  if (inverse->poison) return {inverse};
  Tensors other = matrix_norm_of(call, inverse, wanted, two_dims(-2, -1), false);
  // 0 times inf: as numpy.
  static const OpRef is_nan("isnan");
  Tensor product = mul(own[0], other[0]);
  return {masked_fill(product, gradwire::call(is_nan, {product}), kInfinity)};
}

Tensors compose_rank(const Call& call) {
  static const OpRef maximum("maximum"), gt("gt"), where("where");
  const Tensor& a = call.in(0);
  bool hermitian = call.attr(2).as_bool();
  absl::Status status = hermitian ? check_square(call, a) : check_matrix(call, a);
  if (status.ok()) status = check_real(call, a);
  if (!status.ok()) return fail(call, status);
  if (a->numel() == 0) return {zeros(batch_of(a), DType::kInt64)};
  GradMode off(false);
  Tensor s = hermitian ? absolute(eigh(a, false, false, "linalg.eigvalsh")[0]) : singular_values(a);
  if (s->poison) return {s};
  double usual = (a->dtype == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                              : std::numeric_limits<float>::epsilon()) *
                 static_cast<double>(std::max(rows_of(a), cols_of(a)));
  const Tensor &atol = call.in(1), &rtol = call.in(2);
  Tensor least = atol ? atol : full({}, call.attr(0).as_double(), a->dtype);
  Tensor relative;
  if (rtol) {
    relative = rtol;
  } else if (!call.attr(1).none()) {
    relative = full({}, call.attr(1).as_double(), a->dtype);
  } else {
    Tensor positive = with_number(gt, least, 0);
    relative = masked_fill(full(least->sizes, usual, a->dtype), positive, 0);
  }
  Tensor limit = gradwire::call(maximum, {least, mul(relative, extreme(s, {-1}, true, false))});
  return {sum(gradwire::call(gt, {s, unsqueeze(limit, -1)}), {-1}, false)};
}

// Slices along dim with a p-norm above maxnorm are scaled down to it.
Tensors compose_renorm(const Call& call) {
  static const OpRef gt("gt"), where("where"), reciprocal("reciprocal");
  const Tensor& x = call.in(0);
  double p = call.attr(0).as_double(), limit = call.attr(2).as_double();
  absl::Status status;
  if (!is_floating(x->dtype)) {
    status = runtime_error("renorm: expected a floating point tensor, got ", x->text());
  } else if (!(p > 0)) {
    status = runtime_error("renorm: non-positive-norm not supported");
  } else if (!(limit >= 0)) {
    status = runtime_error("renorm: expected maxnorm to be >= 0 but got ", limit);
  } else if (x->rank() < 2) {
    status =
        runtime_error("renorm: input needs at least 2 dimensions, got ", x->rank(), " dimensions");
  }
  if (!status.ok()) return fail(call, status);
  auto dim = dim_of(call, call.attr(1).as_int(), x->rank());
  if (!dim.ok()) return fail(call, dim.status());
  IntList dims;
  for (int d = 0; d < x->rank(); ++d) {
    if (d != *dim) dims.push_back(d);
  }
  DType wide = x->dtype == DType::kFloat64 ? x->dtype : DType::kFloat32;
  Tensor norm = vector_norm(cast(x, wide), p, dims, true);
  static const OpRef add_op("add");
  Tensor padded = with_number(add_op, norm, 1e-7, 1);
  Tensor factor = mul(gradwire::call(reciprocal, {padded}), limit);
  Tensor above = with_number(gt, norm, limit);
  factor = gradwire::call(where, {above, factor, nullptr}, {{}, 1.0});
  return {mul(x, cast(factor, x->dtype))};
}

Tensors compose_dist(const Call& call) {
  Tensor difference = sub(call.in(0), call.in(1));
  if (difference->poison) return {difference};
  absl::Status status;
  if (!is_floating(difference->dtype)) {
    return fail(call, runtime_error("norm(): input dtype should be either floating point or ",
                                    "complex. Got ", std::string(dtype_name(difference->dtype)),
                                    " instead."));
  }
  auto dims = dims_of(call, {}, difference->rank());
  status = check_filled(call, difference, call.attr(0).as_double(), *dims, true);
  if (!status.ok()) return fail(call, status);
  return {vector_norm(difference, call.attr(0).as_double(), *dims, false)};
}

}  // namespace

namespace linalg {

Tensor vector_norm(const Tensor& a, double order, const IntList& dims, bool keepdim) {
  static const OpRef op("vector_norm_along");
  if (a->poison) return a;
  Tensor y = call(op, {a}, {order, dims});
  if (keepdim || dims.empty()) return y;
  Dims sizes;
  for (int d = 0; d < a->rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) sizes.push_back(a->sizes[d]);
  }
  return reshape(y, sizes);
}

}  // namespace linalg

void add_linalg_norm_rows(Catalog& c) {
  auto& along = c.add(861, OpKind::kKernel,
                      "vector_norm_along(Tensor input, float ord, int[] dims) -> Tensor",
                      "The norm over dims, which are kept with size 1.");
  along.infer = infer_norm;
  along.backward = backward_norm;
  along.saves_inputs = along.saves_outputs = save(0);
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, ComposeFn fn,
                 std::string_view types = "same") -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(types);
    r.out = true;
    return r;
  };
  row(
      862,
      "linalg.vector_norm(Tensor x, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, dtype? "
      "dtype=None) -> Tensor",
      "(sum |x|^ord)^(1/ord) over dim, or of all elements; the largest or smallest |x| for inf or "
      "-inf, the count of nonzero ones for 0.",
      [](const Call& call) {
        return vector_norm_of(call, call.attr(0).as_double(), call.attr(1), call.attr(2).as_bool(),
                              3);
      },
      "");
  row(
      863,
      "linalg.norm(Tensor A, Scalar? ord=None, int[]? dim=None, bool keepdim=False, *, dtype? "
      "dtype=None) -> Tensor",
      "A vector norm, or with an order and two dims a matrix norm.",
      [](const Call& call) {
        const Attribute& order = call.attr(0);
        Order wanted{false, "", order.as_double()};
        return compose_linalg_norm(call, order.none() ? nullptr : &wanted);
      },
      "");
  row(
      864,
      "linalg.norm_name(Tensor A, str ord, int[]? dim=None, bool keepdim=False, *, dtype? "
      "dtype=None) -> Tensor",
      "linalg.norm for the orders 'fro' and 'nuc'.",
      [](const Call& call) {
        Order wanted{true, call.attr(0).as_string(), 0};
        return compose_linalg_norm(call, &wanted);
      },
      "");
  row(865,
      "linalg.matrix_norm(Tensor A, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, "
      "dtype? dtype=None) -> Tensor",
      "The norm of the matrices in two dims, of order 1, -1, 2, -2, inf or -inf.",
      compose_matrix_norm, "");
  row(866,
      "linalg.matrix_norm_name(Tensor A, str ord='fro', int[] dim=[-2, -1], bool keepdim=False, "
      "*, dtype? dtype=None) -> Tensor",
      "linalg.matrix_norm for the orders 'fro' and 'nuc'.", compose_matrix_norm, "");
  row(867, "linalg.cond(Tensor A, Scalar? p=None) -> Tensor",
      "|A| |A^-1| in the matrix norm p; by singular values for None, 2 and -2.", compose_cond);
  row(868, "linalg.cond_name(Tensor A, str p) -> Tensor",
      "linalg.cond for the norms 'fro' and 'nuc'.", compose_cond);
  row(869,
      "linalg.matrix_rank(Tensor A, *, Tensor? atol_tensor=None, Tensor? rtol_tensor=None, "
      "float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
      "How many singular values are above max(atol, rtol * largest).", compose_rank, "int64");
  row(870,
      "norm(Tensor input, Scalar? p=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) "
      "-> Tensor",
      "As linalg.vector_norm.", compose_old_norm, "");
  row(871,
      "norm_name(Tensor input, str p='fro', int[]? dim=None, bool keepdim=False, *, dtype? "
      "dtype=None) -> Tensor",
      "norm for 'fro' and 'nuc'.", compose_old_norm_name, "");
  auto& renorm = row(872, "renorm(Tensor input, Scalar p, int dim, Scalar maxnorm) -> Tensor",
                     "input with every slice along dim whose p-norm is above maxnorm scaled down "
                     "to maxnorm.",
                     compose_renorm);
  renorm.method = renorm.in_place = true;
  renorm.shape_rule = "same";
  auto& dist = row(873, "dist(Tensor input, Tensor other, Scalar p=2) -> Tensor",
                   "The p-norm of input - other.", compose_dist, "promote");
  dist.method = true;
  dist.shape_rule = "scalar";
  c.keep_internal({"vector_norm_along"});
}

}  // namespace gradwire
