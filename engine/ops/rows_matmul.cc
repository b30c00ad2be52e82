// Rows 480 to 519: matrix products.
#include <algorithm>

#include "engine/core/promotion.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

absl::Status same_dtype(const Call& call) {
  const Tensor* first = nullptr;
  for (const Tensor& t : call.inputs) {
    if (!t) continue;
    if (first && (*first)->dtype != t->dtype) {
      return runtime_error("expected m1 and m2 to have the same dtype, but got: ",
                           std::string(dtype_name((*first)->dtype)),
                           " != ", std::string(dtype_name(t->dtype)), " [", call.op->name, " of ",
                           (*first)->text(), " and ", t->text(), "]");
    }
    if (!first) first = &t;
    if (t->dtype == DType::kBool) {
      return not_implemented_error("\"", call.op->name, "\" not implemented for 'bool'");
    }
  }
  return absl::OkStatus();
}

absl::Status infer_bmm(const Call& call, TensorSpecs* out) {
  const Tensor& a = call.in(0);
  const Tensor& b = call.in(1);
  GW_RETURN_IF_ERROR(same_dtype(call));
  if (a->rank() != 3 || b->rank() != 3) {
    return runtime_error("batch1 and batch2 must be 3D tensors, got ", a->text(), " and ",
                         b->text());
  }
  if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1]) {
    return runtime_error("Expected size for first two dimensions of batch2 tensor to be: [",
                         a->sizes[0], ", ", a->sizes[2], "] but got: [", b->sizes[0], ", ",
                         b->sizes[1], "].");
  }
  out->push_back({a->dtype, {a->sizes[0], a->sizes[1], b->sizes[2]}, {}});
  return absl::OkStatus();
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  static const OpRef op("bmm");
  return call(op, {a, b});
}

void backward_bmm(Backward& b) {
  Tensor g = b.grad();
  if (b.needs(0)) b.set(0, bmm(g, transpose(b.input(1), 1, 2)));
  if (b.needs(1)) b.set(1, bmm(transpose(b.input(0), 1, 2), g));
}

absl::Status shapes_error(const Tensor& a, const Tensor& b) {
  return runtime_error("mat1 and mat2 shapes cannot be multiplied (", absl::StrCat(a->sizes[0]),
                       "x", a->sizes[1], " and ", b->sizes[0], "x", b->sizes[1], ")");
}

Tensors compose_mm(const Call& call) {
  const Tensor& a = call.in(0);
  const Tensor& b = call.in(1);
  if (a->rank() != 2 || b->rank() != 2) {
    return {poisoned(
        runtime_error("[mm] mat1 and mat2 must be matrices, got ", a->text(), " and ", b->text()))};
  }
  if (a->sizes[1] != b->sizes[0]) return {poisoned(shapes_error(a, b))};
  return {squeeze(bmm(unsqueeze(a, 0), unsqueeze(b, 0)), 0)};
}

// torch.matmul: vectors, matrices, batches with broadcasting.
Tensors compose_matmul(const Call& call) {
  Tensor a = call.in(0), b = call.in(1);
  absl::Status status = same_dtype(call);
  if (!status.ok()) return {poisoned(status)};
  if (a->sizes.empty() || b->sizes.empty()) {
    return {poisoned(runtime_error("both arguments to matmul need to be at least 1D, but they are ",
                                   a->rank(), "D and ", b->rank(), "D"))};
  }
  bool row = a->rank() == 1, column = b->rank() == 1;
  if (row) a = unsqueeze(a, 0);
  if (column) b = unsqueeze(b, 1);
  int64_t m = a->sizes[a->rank() - 2], k = a->sizes[a->rank() - 1];
  int64_t n = b->sizes[b->rank() - 1];
  if (k != b->sizes[b->rank() - 2]) {
    return {poisoned(runtime_error("mat1 and mat2 shapes cannot be multiplied (", m, "x", k,
                                   " and ", b->sizes[b->rank() - 2], "x", n, ") [matmul of ",
                                   call.in(0)->text(), " and ", call.in(1)->text(), "]"))};
  }
  Tensor out;
  Dims batch;
  if (b->rank() == 2) {
    // One product of all rows.
    batch = Dims(a->sizes.begin(), a->sizes.end() - 2);
    Tensor rows = a->rank() == 2 ? a : reshape(a, Dims{numel_of(batch) * m, k});
    out = bmm(unsqueeze(rows, 0), unsqueeze(b, 0));
  } else {
    auto merged = broadcast_shapes({a->sizes.data(), a->sizes.size() - 2},
                                   {b->sizes.data(), b->sizes.size() - 2});
    if (!merged.ok()) return {poisoned(merged.status())};
    batch = *merged;
    auto flat = [&](const Tensor& t, int64_t rows, int64_t columns) {
      Dims whole = batch;
      whole.push_back(rows);
      whole.push_back(columns);
      return reshape(expand(t, whole), Dims{numel_of(batch), rows, columns});
    };
    out = bmm(flat(a, m, k), flat(b, k, n));
  }
  Dims sizes = batch;
  if (!row) sizes.push_back(m);
  if (!column) sizes.push_back(n);
  return {reshape(out, sizes)};
}

absl::Status infer_linear(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  const Tensor& w = call.in(1);
  const Tensor& bias = call.in(2);
  GW_RETURN_IF_ERROR(same_dtype(call));
  if (x->rank() != 2 || w->rank() != 2 || x->sizes[1] != w->sizes[1] ||
      (bias && (bias->rank() != 1 || bias->sizes[0] != w->sizes[0]))) {
    return runtime_error("mat1 and mat2 shapes cannot be multiplied (", x->text(), " by weight ",
                         w->text(), bias ? " plus bias " + bias->text() : "", ")");
  }
  out->push_back({x->dtype, {x->sizes[0], w->sizes[0]}, {}});
  return absl::OkStatus();
}

void backward_linear(Backward& b) {
  Tensor g = b.grad();
  auto two = [](const Tensor& p, const Tensor& q) {
    return squeeze(bmm(unsqueeze(p, 0), unsqueeze(q, 0)), 0);
  };
  if (b.needs(0)) b.set(0, two(g, b.input(1)));
  if (b.needs(1)) b.set(1, two(transpose(g, 0, 1), b.input(0)));
  if (b.needs(2)) b.set(2, sum(g, {0}, false));
}

Tensors compose_linear(const Call& call) {
  static const OpRef rows_op("linear_rows");
  const Tensor& x = call.in(0);
  const Tensor& w = call.in(1);
  if (x->sizes.empty() || w->rank() != 2 || x->sizes.back() != w->sizes[1]) {
    int64_t rows = x->sizes.empty() ? 1 : x->numel() / std::max<int64_t>(x->sizes.back(), 1);
    return {poisoned(runtime_error("mat1 and mat2 shapes cannot be multiplied (", rows, "x",
                                   x->sizes.empty() ? 1 : x->sizes.back(), " and ",
                                   w->rank() == 2 ? w->sizes[1] : 0, "x",
                                   w->rank() == 2 ? w->sizes[0] : 0, ") [linear of input ",
                                   x->text(), " and weight ", w->text(), "]"))};
  }
  Dims sizes = x->sizes;
  sizes.back() = w->sizes[0];
  int64_t rows = numel_of({x->sizes.data(), x->sizes.size() - 1});
  Tensor flat = x->rank() == 2 ? x : reshape(x, Dims{rows, x->sizes.back()});
  Tensor out = gradwire::call(rows_op, {flat, w, call.in(2)});
  return {x->rank() == 2 ? out : reshape(out, sizes)};
}

Tensors compose_dot(const Call& call) {
  const Tensor& a = call.in(0);
  const Tensor& b = call.in(1);
  if (a->rank() != 1 || b->rank() != 1 || a->sizes != b->sizes) {
    return {poisoned(runtime_error("1D tensors of the same size expected, but got ", a->text(),
                                   " and ", b->text(), " [dot]"))};
  }
  return {matmul(a, b)};
}

Tensors compose_outer(const Call& call) {
  const Tensor& a = call.in(0);
  const Tensor& b = call.in(1);
  if (a->rank() != 1 || b->rank() != 1) {
    return {poisoned(
        runtime_error("outer: Expected 1-D arguments, but got ", a->text(), " and ", b->text()))};
  }
  return {mul(unsqueeze(a, 1), b)};
}

}  // namespace

void add_matmul_rows(Catalog& c) {
  auto& bmm_row = c.add(480, OpKind::kKernel, "bmm(Tensor input, Tensor mat2) -> Tensor",
                        "Batched matrix product of [B, M, K] and [B, K, N].");
  bmm_row.infer = infer_bmm;
  bmm_row.backward = backward_bmm;
  bmm_row.saves_inputs = save(0) | save(1);
  bmm_row.shape_rule = "bmm";
  bmm_row.type_rule = "same";
  bmm_row.method = bmm_row.out = true;
  auto& linear = c.add(481, OpKind::kKernel,
                       "linear_rows(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
                       "input @ weight.T + bias for a matrix of rows.");
  linear.infer = infer_linear;
  linear.backward = backward_linear;
  linear.saves_inputs = save(0) | save(1);
  linear.kernel = "linear";
  linear.shape_rule = "linear";
  linear.type_rule = "same";
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view shape) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.shape_rule = std::string(shape);
    r.type_rule = "same";
    r.method = r.out = r.name.find('.') == std::string::npos;
    return r;
  };
  composite(482, "mm(Tensor input, Tensor mat2) -> Tensor", "Matrix product.", compose_mm, "mm");
  composite(483, "matmul(Tensor input, Tensor other) -> Tensor",
            "Product of vectors, matrices or batches of matrices, with broadcasting.",
            compose_matmul, "matmul");
  composite(484, "nn.functional.linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
            "input @ weight.T + bias.", compose_linear, "linear");
  composite(486, "dot(Tensor input, Tensor tensor) -> Tensor", "Sum of products of two vectors.",
            compose_dot, "scalar");
  composite(487, "outer(Tensor input, Tensor vec2) -> Tensor", "All products of two vectors.",
            compose_outer, "")
      .type_rule = "promote";
  c.keep_internal({"linear_rows"});
}

}  // namespace gradwire
