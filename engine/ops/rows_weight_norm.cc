// Rows 1336 to 1339: a weight as magnitude times direction.
#include "engine/ops/call.h"

namespace gradwire {
namespace {

// The norm over all dimensions but `dim`, which stay as ones; dim -1: over all, without dimensions.
Tensor norm_but(const Call& c, const Tensor& v, int64_t power, int64_t dim) {
  static const OpRef norm("linalg.vector_norm");
  if (dim == -1) return call(norm, {v}, {power, Attribute(), false, Attribute()});
  auto kept = dim_of(c, dim, v->rank());
  if (!kept.ok()) return poisoned(kept.status());
  IntList dims;
  for (int d = 0; d < v->rank(); ++d) {
    if (d != *kept) dims.push_back(d);
  }
  if (!dims.empty()) return call(norm, {v}, {power, dims, true, Attribute()});
  // A norm over no dimension is the magnitude of each element, which "no dims" would not mean.
  static const OpRef abs("abs");
  return call(abs, {v});
}

Tensors compose_norm(const Call& call) {
  return {norm_but(call, call.in(0), call.attr(0).as_int(), call.attr(1).as_int())};
}

Tensors compose_weight(const Call& call) {
  const Tensor &v = call.in(0), &g = call.in(1);
  if (v->dtype != g->dtype) {
    return {poisoned(
        runtime_error("weight_norm: expected one dtype, but got ", v->text(), " and ", g->text()))};
  }
  Tensor norm = norm_but(call, v, 2, call.attr(0).as_int());
  if (norm->poison) return {norm};
  if (g->sizes != norm->sizes) {
    return {poisoned(runtime_error("weight_norm: expected a magnitude of sizes ",
                                   shape_text(norm->sizes), ", but got ", g->text()))};
  }
  return {mul(v, div(g, norm))};
}

}  // namespace

void add_weight_norm_rows(Catalog& c) {
  auto& norm =
      c.add(1336, OpKind::kComposite, "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
            "The norm of order pow for each index of dim, kept as a dimension; dim -1: "
            "one norm of everything, without dimensions.");
  norm.compose = compose_norm;
  norm.type_rule = "same";
  auto& weight =
      c.add(1337, OpKind::kComposite, "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
            "g * v / |v| with the norm of norm_except_dim.");
  weight.compose = compose_weight;
  weight.shape_rule = "same";
  weight.type_rule = "same";
}

}  // namespace gradwire
