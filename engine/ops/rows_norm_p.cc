// Rows 691 to 694: norms of vectors, and what is made of them.
#include <cmath>

#include "engine/ops/loss.h"

namespace gradwire {
namespace {

Tensor abs(const Tensor& a) {
  static const OpRef op("abs");
  return call(op, {a});
}

Tensor sign(const Tensor& a) {
  static const OpRef op("sign");
  return call(op, {a});
}

Tensor power(const Tensor& a, double p) {
  static const OpRef op("pow");
  return with_number(op, a, p);
}

absl::Status check_norm(const Call& call) {
  if (is_floating(call.in(0)->dtype)) return absl::OkStatus();
  return runtime_error("linalg.vector_norm: Expected a floating point or complex tensor as input. ",
                       "Got ", std::string(dtype_name(call.in(0)->dtype)));
}

// 16-bit floats are summed in float32.
Tensors compose_norm(const Call& call) {
  static const OpRef amax("amax"), amin("amin"), root("sqrt"), square("square"), ne("ne");
  DType dtype = call.in(0)->dtype;
  Tensor x = dtype == DType::kFloat64 ? call.in(0) : cast(call.in(0), DType::kFloat32);
  double p = call.attr(0).as_double();
  const IntList& dims = call.attr(1).as_ints();
  bool keep = call.attr(2).as_bool();
  Tensor norm;
  if (p == 2) {
    norm = gradwire::call(root, {sum(gradwire::call(square, {x}), dims, keep)});
  } else if (p == 1) {
    norm = sum(abs(x), dims, keep);
  } else if (p == 0) {
    norm = sum(cast(with_number(ne, x, 0.0), x->dtype), dims, keep);
  } else if (std::isinf(p)) {
    norm = gradwire::call(p > 0 ? amax : amin, {abs(x)}, {dims, keep});
  } else {
    norm = power(sum(power(abs(x), p), dims, keep), 1 / p);
  }
  return {cast(norm, dtype)};
}

// The norm's dims put back, so that it broadcasts against the input.
Tensor with_dims(Tensor t, const IntList& dims, int rank, bool keep) {
  if (keep || t->poison || rank == 0) return t;
  if (dims.empty()) return reshape(t, Dims(rank, 1));
  std::vector<bool> reduced(rank, false);
  for (int64_t d : dims) reduced[d < 0 ? d + rank : d] = true;
  for (int i = 0; i < rank; ++i) {
    if (reduced[i]) t = unsqueeze(t, i);
  }
  return t;
}

// torch's gradients: 0 where the norm is 0; p = 0 gives none.
void backward_norm(Backward& b) {
  const TensorSpec& spec = b.input_spec(0);
  double p = b.attr(0).as_double();
  const IntList& dims = b.attr(1).as_ints();
  bool keep = b.attr(2).as_bool();
  Tensor x = b.input(0);
  int rank = static_cast<int>(spec.sizes.size());
  Tensor g = with_dims(b.grad(), dims, rank, keep);
  Tensor norm = with_dims(b.output(0), dims, rank, keep);
  if (p == 0) {
    b.set(0, zeros(spec.sizes, spec.dtype));
  } else if (p == 1) {
    b.set(0, mul(sign(x), g));
  } else if (p == 2) {
    b.set(0, mul(g, masked_fill(div(x, norm), equals(norm, 0), 0)));
  } else if (std::isinf(p)) {
    static const OpRef eq("eq");
    Tensor hit = cast(call(eq, {abs(x), norm}), spec.dtype);
    b.set(0, mul(mul(sign(x), hit), div(g, sum(hit, dims, true))));
  } else if (p < 1) {
    Tensor scaled = mul(sign(x), masked_fill(power(abs(x), p - 1), equals(x, 0), 0));
    b.set(0, mul(mul(scaled, g), power(norm, 1 - p)));
  } else {
    Tensor scaled = p < 2 ? mul(sign(x), power(abs(x), p - 1)) : mul(x, power(abs(x), p - 2));
    Tensor scale = masked_fill(div(g, power(norm, p - 1)), equals(norm, 0), 0);
    b.set(0, mul(scaled, scale));
  }
}

Tensors compose_normalize(const Call& call) {
  const Tensor& x = call.in(0);
  const IntList& dims = call.attr(1).as_ints();
  Tensor norm = p_norm(x, call.attr(0).as_double(), dims, true);
  return {div(x, clamp_min(norm, call.attr(2).as_double()))};
}

}  // namespace

void add_norm_p_rows(Catalog& c) {
  auto& norm = c.add(691, OpKind::kComposite,
                     "p_norm(Tensor input, float p, int[] dim=[], bool keepdim=False) -> Tensor",
                     "(sum of |input|**p)**(1 / p) over dim (all when empty); inf and -inf are the "
                     "largest and the smallest |input|, 0 the number of elements that are not 0.");
  norm.compose = compose_norm;
  norm.check = check_norm;
  norm.backward = backward_norm;
  norm.saves_inputs = norm.saves_outputs = save(0);
  norm.shape_rule = "reduce";
  norm.type_rule = "same";
  auto& normalize = c.add(692, OpKind::kComposite,
                          "nn.functional.normalize(Tensor input, float p=2.0, int[] dim=[1], "
                          "float eps=1e-12) -> Tensor",
                          "input / max(p_norm(input), eps) along dim.");
  normalize.compose = compose_normalize;
  normalize.out = true;
  normalize.shape_rule = normalize.type_rule = "same";
}

}  // namespace gradwire
