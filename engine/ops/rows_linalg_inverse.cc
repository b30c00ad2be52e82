// Rows 835, 836, 842 to 844 and 855 to 860: inverses and powers of matrices.
#include <algorithm>

#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

absl::Status infer_pinv(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  out->push_back({a->dtype, with_last(batch_of(a), {cols_of(a), rows_of(a)}), {}});
  return absl::OkStatus();
}

void backward_pinv(Backward& b) {
  b.set(0, pinv_gradient(b.grad(), b.output(0), b.input(0)));
}

absl::Status infer_exp(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  if (a->rank() < 2 || rows_of(a) != cols_of(a)) {
    return runtime_error(
        "linalg.matrix_exp: A must be batches of square matrices, but they are of shape ",
        shape_text(a->sizes));
  }
  GW_RETURN_IF_ERROR(check_floating(call, a->dtype));
  out->push_back({a->dtype, a->sizes, {}});
  return absl::OkStatus();
}

// The gradient is the upper right block of exp of [[A^T, G], [0, A^T]].
void backward_exp(Backward& b) {
  static const OpRef op("matrix_exp");
  const TensorSpec& spec = b.input_spec(0);
  Tensor t = swapped(b.input(0));
  Tensor upper_rows = cat({t, b.grad()}, -1);
  Tensor lower_rows = cat({zeros(spec.sizes, spec.dtype), t}, -1);
  Tensor whole = call(op, {cat({upper_rows, lower_rows}, -2)});
  int64_t n = spec.sizes.back();
  b.set(0, narrow(narrow(whole, -2, 0, n), -1, n, n));
}

// Public rows.

Tensors compose_inv(const Call& call) {
  static const OpRef op("linalg_solve");
  const Tensor& a = call.in(0);
  absl::Status status = check_factor(call, a);
  if (!status.ok()) return fail(call, status);
  bool ex = call.op->signature.fixed_outputs > 1;
  bool checked = !ex || call.attr(0).as_bool();
  std::string name = call.op->name == "inverse" ? "linalg.inv" : call.op->name;
  Tensor one = expand(identity(rows_of(a), rows_of(a), a->dtype), a->sizes);
  Tensors found = call_many(op, {a, one}, {true, checked ? name : std::string()});
  if (ex) return {found[0], found.back()};
  return {found[0]};
}

Tensors compose_pinv(const Call& call) {
  static const OpRef op("linalg_pinv");
  const Tensor& a = call.in(0);
  bool old = call.op->name == "pinverse";
  bool hermitian = !old && call.attr(2).as_bool();
  absl::Status status = hermitian ? check_square(call, a) : check_matrix(call, a);
  if (status.ok()) status = check_real(call, a);
  Tensors limits(2);
  auto batch = status.ok() ? batch_of(a) : std::span<const int64_t>();
  for (int i = 0; i < 2 && !old && status.ok(); ++i) {
    const Tensor& limit = call.in(i + 1);
    if (!limit) continue;
    auto sizes = broadcast_shapes(limit->sizes, batch);
    if (!sizes.ok() || !std::ranges::equal(*sizes, batch)) {
      status = runtime_error(call.op->name, ": a tolerance of shape ", shape_text(limit->sizes),
                             " does not broadcast to the batch of ", a->text());
    } else {
      limits[i] = expand(limit, batch);
    }
  }
  if (!status.ok()) return fail(call, status);
  if (old) return {gradwire::call(op, {a, nullptr, nullptr}, {{}, call.attr(0), false})};
  return {
      gradwire::call(op, {a, limits[0], limits[1]}, {call.attr(0), call.attr(1), call.attr(2)})};
}

Tensors compose_power(const Call& call) {
  static const OpRef inv("linalg.inv");
  const Tensor& a = call.in(0);
  absl::Status status = check_square(call, a);
  int64_t n = call.attr(0).as_int();
  if (status.ok() && n < 0) status = check_real(call, a);
  if (!status.ok()) return fail(call, status);
  if (n == 0) {
    // As a function of A, whose gradient is 0.
    static const OpRef where("where");
    Tensor one = expand(identity(rows_of(a), rows_of(a), a->dtype), a->sizes);
    return {gradwire::call(where, {full({}, 1, DType::kBool), one, a})};
  }
  Tensor square = n < 0 ? gradwire::call(inv, {a}) : a;
  auto left = n < 0 ? ~static_cast<uint64_t>(n) + 1 : static_cast<uint64_t>(n);
  if (left == 1) return {n < 0 ? square : clone(a)};
  Tensor result;
  while (true) {
    if (left & 1) result = result ? matmul(result, square) : square;
    left >>= 1;
    if (!left) return {result};
    square = matmul(square, square);
  }
}

int64_t product_of(std::span<const int64_t> sizes) {
  return numel_of(sizes);
}

Tensors compose_tensorinv(const Call& call) {
  static const OpRef inv("linalg.inv_ex");
  const Tensor& a = call.in(0);
  int64_t ind = call.attr(0).as_int();
  absl::Status status = check_real(call, a);
  if (status.ok() && ind <= 0) {
    status = runtime_error("Expected a strictly positive integer for 'ind'");
  }
  if (!status.ok()) return fail(call, status);
  auto at = static_cast<size_t>(std::min<int64_t>(ind, a->rank()));
  std::span<const int64_t> sizes = a->sizes;
  auto first = sizes.subspan(0, at), last = sizes.subspan(at);
  int64_t rows = product_of(first), cols = product_of(last);
  if (rows != cols) {
    return fail(call, runtime_error("Expected self to satisfy the requirement ",
                                    "prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ",
                                    cols, " != ", rows));
  }
  Tensors found = call_many(inv, {reshape(a, Dims{rows, cols})}, {true});
  Dims out(last.begin(), last.end());
  out.insert(out.end(), first.begin(), first.end());
  return {reshape(found[0], out)};
}

Tensors compose_tensorsolve(const Call& call) {
  static const OpRef op("linalg.solve");
  Tensor a = call.in(0);
  const Tensor& b = call.in(1);
  absl::Status status = check_real(call, a);
  if (status.ok()) status = check_same_dtype(call, a, b);
  if (!status.ok()) return fail(call, status);
  if (!call.attr(0).none()) {
    std::vector<bool> last(a->rank(), false);
    IntList order, moved;
    for (int64_t d : call.attr(0).as_ints()) {
      auto dim = dim_of(call, d, a->rank());
      if (!dim.ok()) return fail(call, dim.status());
      if (a->rank() == 0 || last[*dim]) {
        return fail(call, runtime_error("linalg.tensorsolve: repeated dim in dims"));
      }
      last[*dim] = true;
      moved.push_back(*dim);
    }
    for (int d = 0; d < a->rank(); ++d) {
      if (!last[d]) order.push_back(d);
    }
    order.insert(order.end(), moved.begin(), moved.end());
    a = permute(a, order);
  }
  if (b->rank() > a->rank()) {
    return fail(call, runtime_error("linalg.tensorsolve: B has more dimensions than A"));
  }
  std::span<const int64_t> rest(a->sizes.data() + b->rank(), a->rank() - b->rank());
  int64_t n = product_of(rest), m = b->numel();
  if (n * static_cast<__int128>(m) != a->numel() || n != m) {
    return fail(call, runtime_error("Expected self to satisfy the requirement ",
                                    "prod(self.shape[other.ndim:]) == "
                                    "prod(self.shape[:other.ndim]), but got ",
                                    n, " != ", m));
  }
  Tensor x = gradwire::call(op, {reshape(a, Dims{m, n}), reshape(b, Dims{m})}, {true});
  return {reshape(x, rest)};
}

}  // namespace

void add_linalg_inverse_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, BackwardFn backward, uint32_t inputs,
                    uint32_t outputs) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.backward = backward;
    r.saves_inputs = inputs;
    r.saves_outputs = outputs;
    r.checks = true;
    return r;
  };
  kernel(835,
         "linalg_pinv(Tensor A, Tensor? atol_tensor, Tensor? rtol_tensor, float? atol, float? "
         "rtol, bool hermitian) -> Tensor",
         "V S^-1 U^T without small singular values.", infer_pinv, backward_pinv, save(0), save(0))
      .no_grad_inputs = {1, 2};
  OpDef& exp = kernel(836, "matrix_exp(Tensor input) -> Tensor",
                      "The matrix exponential of [..., n, n] matrices.", infer_exp, backward_exp,
                      save(0), 0);
  exp.method = true;
  exp.shape_rule = exp.type_rule = "same";
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, ComposeFn fn,
                 std::string_view types) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(types);
    r.out = true;
    r.method = r.name.find('.') == std::string::npos;
  };
  row(842, "linalg.inv(Tensor A) -> Tensor", "The inverse of [..., n, n] matrices.", compose_inv,
      "same");
  row(843, "linalg.inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
      "linalg.inv without an error: info is 0, or the diagonal element of U that is 0.",
      compose_inv, "same, int32");
  row(844, "inverse(Tensor input) -> Tensor", "As linalg.inv.", compose_inv, "same");
  row(855,
      "linalg.pinv(Tensor A, *, Tensor? atol_tensor=None, Tensor? rtol_tensor=None, float? "
      "atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
      "The pseudo-inverse; singular values up to max(atol, rtol * largest) count as 0.",
      compose_pinv, "same");
  row(856, "pinverse(Tensor input, float rcond=1e-15) -> Tensor", "As linalg.pinv.", compose_pinv,
      "same");
  row(857, "linalg.matrix_power(Tensor A, int n) -> Tensor",
      "A multiplied with itself n times; of the inverse for negative n.", compose_power, "same");
  row(858, "matrix_power(Tensor input, int n) -> Tensor", "As linalg.matrix_power.", compose_power,
      "same");
  row(859, "linalg.tensorinv(Tensor A, int ind=2) -> Tensor",
      "The inverse of tensordot by A over its first ind dims.", compose_tensorinv, "same");
  row(860, "linalg.tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor",
      "X with tensordot(A, X, X.ndim) = B.", compose_tensorsolve, "same");
  c.keep_internal({"linalg_pinv"});
}

}  // namespace gradwire
