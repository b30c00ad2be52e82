// Rows 485, 805 to 809, 826 to 828, 837 to 839, 876 to 879 and 888 to 890: sums and chains of
// products.
#include <algorithm>
#include <limits>

#include "engine/core/promotion.h"
#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

absl::Status one_dtype(const Call& call) {
  for (const Tensor& t : call.inputs) {
    if (t->dtype != call.in(0)->dtype) {
      return runtime_error("self and mat2 must have the same dtype, but got ", call.in(0)->text(),
                           " and ", t->text(), " [", call.op->name, "]");
    }
    if (t->dtype == DType::kBool) {
      return not_implemented_error("\"", call.op->name, "\" not implemented for 'Bool'");
    }
  }
  return absl::OkStatus();
}

// Whether `t` broadcasts to `sizes` and no further.
absl::Status check_expands(const Tensor& t, const Dims& sizes) {
  auto merged = broadcast_shapes(t->sizes, sizes);
  if (merged.ok() && *merged == sizes) return absl::OkStatus();
  return runtime_error("The expanded size of the tensor ", shape_text(sizes),
                       " must match the existing size ", shape_text(t->sizes));
}

// beta * input + alpha * a @ b of matrices or of batches of them.
absl::Status infer_add_product(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(1);
  const Tensor& b = call.in(2);
  bool batched = call.op->name == "baddbmm";
  int rank = batched ? 3 : 2;
  GW_RETURN_IF_ERROR(one_dtype(call));
  if (a->rank() != rank || b->rank() != rank) {
    return batched
               ? runtime_error("batch1 must be a 3D tensor, got ", a->text(), " and ", b->text())
               : runtime_error("mat1 must be a matrix, got ", a->rank(), "-D tensor and ",
                               b->rank(), "-D tensor");
  }
  if (batched && (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1])) {
    return runtime_error("Expected size for first two dimensions of batch2 tensor to be: [",
                         a->sizes[0], ", ", a->sizes[2], "] but got: [", b->sizes[0], ", ",
                         b->sizes[1], "].");
  }
  if (cols_of(a) != rows_of(b)) {
    return runtime_error("mat1 and mat2 shapes cannot be multiplied (", rows_of(a), "x", cols_of(a),
                         " and ", rows_of(b), "x", cols_of(b), ")");
  }
  Dims sizes = with_last(batch_of(a), {rows_of(a), cols_of(b)});
  GW_RETURN_IF_ERROR(check_expands(call.in(0), sizes));
  out->push_back({a->dtype, sizes, {}});
  return absl::OkStatus();
}

void backward_add_product(Backward& b) {
  double beta = b.attr(0).as_double(), alpha = b.attr(1).as_double();
  Tensor g = b.grad();
  if (b.needs(0)) {
    Tensor sum = sum_to(g, b.input_spec(0).sizes);
    b.set(0, beta == 1 ? sum : mul(sum, beta));
  }
  auto scaled = [&](const Tensor& t) { return alpha == 1 ? t : mul(t, alpha); };
  if (b.needs(1)) b.set(1, scaled(matmul(g, swapped(b.input(2)))));
  if (b.needs(2)) b.set(2, scaled(matmul(swapped(b.input(1)), g)));
}

Tensor add_product(const Tensor& input, const Tensor& a, const Tensor& b, const Call& from) {
  static const OpRef op("addmm");
  return call(op, {input, a, b}, {from.attr(0), from.attr(1)});
}

Tensors compose_addbmm(const Call& call) {
  const Tensor& a = call.in(1);
  const Tensor& b = call.in(2);
  absl::Status status = one_dtype(call);
  if (status.ok() && (a->rank() != 3 || b->rank() != 3)) {
    status =
        runtime_error("batch1 and batch2 must be 3D tensors, got ", a->text(), " and ", b->text());
  }
  if (status.ok() && (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1])) {
    status = runtime_error("batch1 and batch2 must have the same number of batches and the ",
                           "inner sizes must agree, got ", a->text(), " and ", b->text());
  }
  if (!status.ok()) return fail(call, status);
  // The sum over batches is part of one inner dimension.
  int64_t inner = a->sizes[0] * a->sizes[2];
  Tensor left = reshape(transpose(a, 0, 1), Dims{a->sizes[1], inner});
  Tensor right = reshape(b, Dims{inner, b->sizes[2]});
  return {add_product(call.in(0), left, right, call)};
}

Tensors compose_addmv(const Call& call) {
  const Tensor& input = call.in(0);
  const Tensor& a = call.in(1);
  const Tensor& v = call.in(2);
  if (a->rank() != 2 || v->rank() != 1 || input->rank() > 1) {
    return fail(call, runtime_error("vector + matrix @ vector expected, got ", input->rank(), ", ",
                                    a->rank(), ", ", v->rank()));
  }
  if (a->sizes[1] != v->sizes[0]) {
    return fail(call, runtime_error("size mismatch, got input (", rows_of(a), "), mat (",
                                    rows_of(a), "x", cols_of(a), "), vec (", v->sizes[0], ")"));
  }
  Tensor column = input->rank() == 1 ? unsqueeze(input, -1) : input;
  return {squeeze(add_product(column, a, unsqueeze(v, -1), call), -1)};
}

Tensors compose_mv(const Call& call) {
  const Tensor& a = call.in(0);
  const Tensor& v = call.in(1);
  if (a->rank() != 2 || v->rank() != 1) {
    return fail(call, runtime_error("vector + matrix @ vector expected, got 1, ", a->rank(), ", ",
                                    v->rank()));
  }
  if (a->sizes[1] != v->sizes[0]) {
    return fail(call, runtime_error("size mismatch, got input (", rows_of(a), "), mat (",
                                    rows_of(a), "x", cols_of(a), "), vec (", v->sizes[0], ")"));
  }
  return {matmul(a, v)};
}

Tensors compose_addr(const Call& call) {
  static const OpRef mul_op("mul"), add_op("add");
  const Tensor& input = call.in(0);
  const Tensor& a = call.in(1);
  const Tensor& b = call.in(2);
  if (a->rank() != 1 || b->rank() != 1) {
    return fail(call, runtime_error("addr: Expected 1-D argument vec1 and vec2, but got ",
                                    a->rank(), "-D and ", b->rank(), "-D"));
  }
  absl::Status status = check_expands(input, Dims{a->sizes[0], b->sizes[0]});
  if (!status.ok()) return fail(call, status);
  auto scaled = [&](const Tensor& t, const Attribute& by) {
    if (by.as_double() == 1) return t;
    return with_number(mul_op, t, by);
  };
  Tensor product = scaled(mul(unsqueeze(a, 1), b), call.attr(1));
  if (call.attr(0).as_double() == 0) return {product};
  return {gradwire::call(add_op, {scaled(input, call.attr(0)), product}, {{}, {}, 1})};
}

// Sums over pairs of dims; attributes are the two lists.
Tensor contracted(const Call& call, Tensor a, Tensor b, const IntList& dims_a,
                  const IntList& dims_b) {
  if (dims_a.size() != dims_b.size()) {
    return poisoned(runtime_error("both dimension lists should have same length"));
  }
  if (a->dtype != b->dtype) {
    return poisoned(runtime_error("both inputs should have same dtype"));
  }
  std::vector<bool> summed_a(a->rank(), false), summed_b(b->rank(), false);
  IntList first, second;
  for (size_t i = 0; i < dims_a.size(); ++i) {
    auto da = dim_of(call, dims_a[i], a->rank()), db = dim_of(call, dims_b[i], b->rank());
    if (!da.ok() || !db.ok()) return poisoned(da.ok() ? db.status() : da.status());
    if (a->rank() == 0 || b->rank() == 0 || summed_a[*da] || summed_b[*db]) {
      return poisoned(runtime_error("dim appears multiple times in the list of dims"));
    }
    summed_a[*da] = summed_b[*db] = true;
    int64_t n = a->sizes[*da], m = b->sizes[*db];
    if (n != m && n != 1 && m != 1) {
      return poisoned(runtime_error("contracted dimensions need to match, but first has size ", n,
                                    " in dim ", *da, " and second has size ", m, " in dim ", *db));
    }
    // A size of 1 broadcasts: the other is summed first.
    DType dtype = a->dtype;
    if (n == 1 && m != 1) b = cast(sum(b, {*db}, true), dtype);
    if (m == 1 && n != 1) a = cast(sum(a, {*da}, true), dtype);
    if (a->poison || b->poison) return a->poison ? a : b;
    first.push_back(*da);
    second.push_back(*db);
  }
  Dims sizes;
  IntList order_a, order_b = second;
  int64_t rows = 1, cols = 1, inner = 1;
  for (int d = 0; d < a->rank(); ++d) {
    if (summed_a[d]) continue;
    order_a.push_back(d);
    sizes.push_back(a->sizes[d]);
    rows *= a->sizes[d];
  }
  for (int64_t d : first) {
    order_a.push_back(d);
    inner *= a->sizes[d];
  }
  for (int d = 0; d < b->rank(); ++d) {
    if (summed_b[d]) continue;
    order_b.push_back(d);
    sizes.push_back(b->sizes[d]);
    cols *= b->sizes[d];
  }
  Tensor left = reshape(permute(a, order_a), Dims{rows, inner});
  Tensor right = reshape(permute(b, order_b), Dims{inner, cols});
  return reshape(matmul(left, right), sizes);
}

Tensors compose_tensordot(const Call& call) {
  return {contracted(call, call.in(0), call.in(1), call.attr(0).as_ints(), call.attr(1).as_ints())};
}

Tensors compose_inner(const Call& call) {
  const Tensor& a = call.in(0);
  const Tensor& b = call.in(1);
  if (a->rank() == 0 || b->rank() == 0) return {mul(a, b)};
  if (a->sizes.back() != b->sizes.back()) {
    return fail(call, runtime_error("inner() the last dimension must match on both input tensors ",
                                    "but got shapes ", shape_text(a->sizes), " and ",
                                    shape_text(b->sizes)));
  }
  return {contracted(call, a, b, {-1}, {-1})};
}

Tensors compose_vdot(const Call& call) {
  static const OpRef dot("dot");
  return {gradwire::call(dot, {call.in(0), call.in(1)})};
}

Tensors compose_trace(const Call& call) {
  const Tensor& a = call.in(0);
  if (a->rank() != 2) {
    return fail(call,
                runtime_error("trace: expected a matrix, but got tensor with dim ", a->rank()));
  }
  return {sum(diagonal_of(a), {}, false)};
}

Tensors compose_block_diag(const Call& call) {
  PromotionState common;
  Tensors blocks;
  int64_t cols = 0, before = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    Tensor t = call.inputs[i];
    if (!t) return fail(call, type_error("block_diag takes tensors"));
    if (t->rank() > 2) {
      return fail(call, runtime_error("torch.block_diag: Input tensors must have 2 or fewer ",
                                      "dimensions. Input ", i, " has ", t->rank(), " dimensions"));
    }
    common.add_tensor(t->dtype, false);
    if (t->rank() < 2) t = reshape(t, Dims{1, t->numel()});
    blocks.push_back(t);
    if (__builtin_add_overflow(cols, t->sizes[1], &cols)) {
      return fail(call, runtime_error("block_diag: too many columns"));
    }
  }
  if (blocks.empty()) return {zeros(Dims{1, 0}, Slot::current().default_float)};
  DType dtype = common.result();
  Tensors rows;
  for (const Tensor& t : blocks) {
    int64_t n = t->sizes[0], after = cols - before - t->sizes[1];
    rows.push_back(
        cat({zeros(Dims{n, before}, dtype), cast(t, dtype), zeros(Dims{n, after}, dtype)}, 1));
    before += t->sizes[1];
  }
  return {cat(std::move(rows), 0)};
}

Tensors compose_kron(const Call& call) {
  Tensor a = call.in(0), b = call.in(1);
  int rank = std::max(a->rank(), b->rank());
  if (rank > kMaxRank / 2) {
    return fail(call, runtime_error("kron: at most ", kMaxRank / 2, " dimensions, got ", rank));
  }
  Dims wide_a, wide_b, sizes;
  for (int d = 0; d < rank; ++d) {
    int da = d - (rank - a->rank()), db = d - (rank - b->rank());
    int64_t n = da < 0 ? 1 : a->sizes[da], m = db < 0 ? 1 : b->sizes[db];
    wide_a.insert(wide_a.end(), {n, 1});
    wide_b.insert(wide_b.end(), {1, m});
    if (m && n > std::numeric_limits<int64_t>::max() / m) {
      return fail(call, runtime_error("kron: the result is too big"));
    }
    sizes.push_back(n * m);
  }
  return {reshape(mul(reshape(a, wide_a), reshape(b, wide_b)), sizes)};
}

// i, j, k of one dim rotated by `by`.
Tensor rotated(const Tensor& t, int64_t dim, int64_t by) {
  return cat({narrow(t, dim, by, 3 - by), narrow(t, dim, 0, by)}, dim);
}

Tensors compose_cross(const Call& call) {
  Tensor a = call.in(0), b = call.in(1);
  bool old = call.op->name == "cross";
  if (!old && a->rank() != b->rank()) {
    return fail(call,
                runtime_error("linalg.cross: inputs must have the same number of dimensions."));
  }
  auto sizes = broadcast_shapes(a->sizes, b->sizes);
  if (!sizes.ok()) return fail(call, sizes.status());
  int64_t rank = static_cast<int64_t>(sizes->size()), dim = -1;
  if (call.attr(0).none()) {
    for (int64_t d = rank - 1; d >= 0; --d) {
      if ((*sizes)[d] == 3) dim = d;
    }
    if (dim < 0) return fail(call, runtime_error("no dimension of size 3 in input"));
  } else {
    auto given = dim_of(call, call.attr(0).as_int(), rank);
    if (!given.ok()) return fail(call, given.status());
    dim = *given;
  }
  // Along dim nothing broadcasts.
  auto along = [&](const Tensor& t) {
    int64_t at = dim - (rank - t->rank());
    return at >= 0 && t->rank() ? t->sizes[at] : 1;
  };
  if (rank == 0 || along(a) != 3 || along(b) != 3) {
    return fail(call, runtime_error("linalg.cross: inputs dimension ",
                                    call.attr(0).none() ? dim : call.attr(0).as_int(),
                                    " must have length 3. Got ", along(a), " and ", along(b)));
  }
  a = expand(a, *sizes);
  b = expand(b, *sizes);
  return {sub(mul(rotated(a, dim, 1), rotated(b, dim, 2)),
              mul(rotated(a, dim, 2), rotated(b, dim, 1)))};
}

Tensors compose_vecdot(const Call& call) {
  absl::Status status = check_floating(call, call.in(0)->dtype);
  if (status.ok()) status = check_same_dtype(call, call.in(0), call.in(1), "x and y");
  if (!status.ok()) return fail(call, status);
  Tensor product = mul(call.in(0), call.in(1));
  return {sum(product, {call.attr(0).as_int()}, false)};
}

Tensors compose_vander(const Call& call) {
  static const OpRef arange("arange"), pow("pow");
  Tensor x = call.in(0);
  if (x->dtype == DType::kBool) {
    return fail(call, runtime_error("linalg.vander: not defined for bool"));
  }
  if (x->rank() == 0) x = unsqueeze(x, 0);
  if (!is_floating(x->dtype)) x = cast(x, DType::kInt64);
  int64_t n = call.attr(0).none() ? call.in(0)->sizes.empty() ? 1 : call.in(0)->sizes.back()
                                  : call.attr(0).as_int();
  if (n <= 1) return fail(call, runtime_error("N must be greater than 1."));
  if (x->numel() == 0) {
    Dims sizes = x->sizes;
    sizes.push_back(n);
    return {expand(unsqueeze(x, -1), sizes)};
  }
  Tensor exponents = gradwire::call(arange, {}, {int64_t{0}, n, 1, DType::kInt64});
  return {gradwire::call(pow, {unsqueeze(x, -1), exponents})};
}

Tensors compose_diagonal(const Call& call) {
  static const OpRef op("diagonal");
  return {gradwire::call(op, {call.in(0)}, {call.attr(0), call.attr(1), call.attr(2)})};
}

// The cheapest order of a chain of matrices (Cormen et al., Introduction to Algorithms, 15.2).
Tensor chain(const Tensors& m, const std::vector<std::vector<size_t>>& split, size_t i, size_t j) {
  if (i == j) return m[i];
  return matmul(chain(m, split, i, split[i][j]), chain(m, split, split[i][j] + 1, j));
}

Tensors compose_multi_dot(const Call& call) {
  size_t n = call.inputs.size();
  bool chained = call.op->name == "chain_matmul";
  if (n < (chained ? 1u : 2u)) {
    return fail(call, runtime_error("multi_dot(): expected at least 2 tensors but got ", n));
  }
  if (n > 256) return fail(call, runtime_error("multi_dot(): more than 256 tensors"));
  if (n == 1) {
    if (call.in(0)->rank() != 2) {
      return fail(call, runtime_error("chain_matmul(): expected matrices"));
    }
    return {clone(call.in(0))};
  }
  Tensors m(call.inputs.begin(), call.inputs.end());
  bool row = !chained && m[0]->rank() == 1, column = !chained && m[n - 1]->rank() == 1;
  if (row) m[0] = unsqueeze(m[0], 0);
  if (column) m[n - 1] = unsqueeze(m[n - 1], -1);
  std::vector<double> sizes;
  for (size_t i = 0; i < n; ++i) {
    if (m[i]->rank() != 2) {
      bool end = i == 0 || i + 1 == n;
      return fail(call, runtime_error("multi_dot(): tensor ", i, " must be ",
                                      end ? "1D or 2D" : "2D", " but got ", m[i]->rank(), "D"));
    }
    if (m[i]->dtype != m[0]->dtype) {
      return fail(
          call, runtime_error("multi_dot(): all tensors must have be the same dtype but ",
                              "tensor 0 is ", std::string(dtype_name(m[0]->dtype)), " and tensor ",
                              i, " ", std::string(dtype_name(m[i]->dtype))));
    }
    if (i && m[i - 1]->sizes[1] != m[i]->sizes[0]) {
      return fail(call, runtime_error("multi_dot(): tensors ", i - 1, " and ", i, " with shapes ",
                                      shape_text(m[i - 1]->sizes), " and ", shape_text(m[i]->sizes),
                                      " cannot be multiplied"));
    }
    sizes.push_back(static_cast<double>(m[i]->sizes[0]));
  }
  sizes.push_back(static_cast<double>(m[n - 1]->sizes[1]));
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        double c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (c < cost[i][j] || k == i) {
          cost[i][j] = c;
          split[i][j] = k;
        }
      }
    }
  }
  Tensor out = chain(m, split, 0, n - 1);
  if (column) out = squeeze(out, -1);
  if (row) out = squeeze(out, 0);
  return {out};
}

}  // namespace

void add_product_rows(Catalog& c) {
  for (auto [number, signature, doc] :
       {std::tuple{uint16_t{485},
                   "addmm(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
                   "alpha=1) -> Tensor",
                   "beta * input + alpha * mat1 @ mat2; input broadcasts."},
        std::tuple{uint16_t{805},
                   "baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
                   "alpha=1) -> Tensor",
                   "beta * input + alpha * batch1 @ batch2 of batches of matrices."}}) {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer_add_product;
    r.backward = backward_add_product;
    r.saves_inputs = save(1) | save(2);
    r.type_rule = "same";
    r.method = r.out = r.in_place = true;
  }
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, ComposeFn fn,
                 std::string_view types = "same", bool method = true) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(types);
    r.out = true;
    r.method = method && r.name.find('.') == std::string::npos;
    return r;
  };
  row(806,
      "addbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor",
      "beta * input + alpha * the sum of batch1 @ batch2 over the batch.", compose_addbmm)
      .in_place = true;
  row(807,
      "addmv(Tensor input, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      "beta * input + alpha * mat @ vec.", compose_addmv)
      .in_place = true;
  row(808,
      "addr(Tensor input, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      "beta * input + alpha * the outer product of vec1 and vec2.", compose_addr, "promote")
      .in_place = true;
  row(809, "mv(Tensor input, Tensor vec) -> Tensor", "Matrix times vector.", compose_mv);
  row(826, "inner(Tensor input, Tensor other) -> Tensor",
      "Sums of products over the last dims; the product where one is 0-dim.", compose_inner,
      "promote");
  row(827, "vdot(Tensor input, Tensor other) -> Tensor", "Sum of products of two vectors.",
      compose_vdot)
      .shape_rule = "scalar";
  row(828, "tensordot_dims(Tensor a, Tensor b, int[] dims_a, int[] dims_b) -> Tensor",
      "Sums of products over pairs of dims of a and b.", compose_tensordot, "same", false);
  row(837, "trace(Tensor input) -> Tensor", "The sum of a matrix's diagonal.", compose_trace, "sum")
      .shape_rule = "scalar";
  row(838, "block_diag(Tensor[] tensors) -> Tensor",
      "A matrix with the given ones along its diagonal; vectors are rows.", compose_block_diag,
      "promote", false)
      .out = false;
  row(839, "kron(Tensor input, Tensor other) -> Tensor",
      "Kronecker's product: every element of input times other.", compose_kron, "promote");
  row(876, "linalg.cross(Tensor input, Tensor other, *, int dim=-1) -> Tensor",
      "The cross products of the 3-vectors along dim.", compose_cross, "promote");
  row(877, "cross(Tensor input, Tensor other, int? dim=None) -> Tensor",
      "linalg.cross, along the first dim of size 3 by default.", compose_cross, "promote");
  row(878, "linalg.vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
      "Sums of products along dim; the rest broadcasts.", compose_vecdot);
  row(879, "linalg.vander(Tensor x, *, int? N=None) -> Tensor",
      "The powers 0 to N - 1 of each element of x [..., n].", compose_vander, "sum")
      .out = false;
  row(888, "linalg.multi_dot(Tensor[] tensors) -> Tensor",
      "The product of a chain of matrices in the cheapest order; the ends may be vectors.",
      compose_multi_dot);
  row(889, "chain_matmul(Tensor[] matrices) -> Tensor", "As linalg.multi_dot.", compose_multi_dot,
      "same", false);
  row(890, "linalg.diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
      "A view of the diagonals of the matrices in two dims.", compose_diagonal)
      .out = false;
}

}  // namespace gradwire
