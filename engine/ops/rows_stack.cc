// Rows 387 to 394: tensors joined along the first dimensions, grids and products of vectors.
#include "engine/ops/formula.h"

namespace gradwire {
namespace {

Tensor cat(Tensors parts, int64_t dim) {
  static const OpRef op("cat");
  return call_list(op, std::move(parts), {dim})[0];
}

absl::Status check_any(const Call& call) {
  if (!call.inputs.empty()) return absl::OkStatus();
  return runtime_error(call.op->name, " expects a non-empty TensorList");
}

Tensors raised(const Call& call, const OpRef& op) {
  Tensors out;
  for (const Tensor& t : call.inputs) out.push_back(gradwire::call(op, {t}));
  return out;
}

Tensors compose_hstack(const Call& call) {
  static const OpRef atleast("atleast_1d");
  Tensors parts = raised(call, atleast);
  int64_t dim = parts[0]->rank() == 1 ? 0 : 1;
  return {cat(std::move(parts), dim)};
}

Tensors compose_vstack(const Call& call) {
  static const OpRef atleast("atleast_2d");
  return {cat(raised(call, atleast), 0)};
}

Tensors compose_dstack(const Call& call) {
  static const OpRef atleast("atleast_3d");
  return {cat(raised(call, atleast), 2)};
}

Tensors compose_column_stack(const Call& call) {
  Tensors parts;
  for (const Tensor& t : call.inputs) {
    parts.push_back(t->rank() <= 1 ? reshape(t, Dims{t->numel(), 1}) : t);
  }
  return {cat(std::move(parts), 1)};
}

// --- grids ---------------------------------------------------------------------------------------

absl::Status check_vectors(const Call& call) {
  for (const Tensor& t : call.inputs) {
    if (t->dtype != call.in(0)->dtype) {
      return runtime_error(call.op->name, " expects all tensors to have the same dtype");
    }
    if (t->rank() > 1) {
      return runtime_error(call.op->name,
                           ": Expected 0D or 1D tensor in the tensor list but got: ", t->text());
    }
  }
  return absl::OkStatus();
}

Tensors grid(const Tensors& vectors, bool swap) {
  Dims shape;
  for (const Tensor& t : vectors) shape.push_back(t->numel());
  swap = swap && shape.size() > 1;
  if (swap) std::swap(shape[0], shape[1]);
  Tensors out;
  for (size_t i = 0; i < vectors.size(); ++i) {
    Dims sizes(shape.size(), 1);
    sizes[swap && i < 2 ? 1 - i : i] = vectors[i]->numel();
    out.push_back(expand(reshape(vectors[i], sizes), shape));
  }
  return out;
}

Tensors compose_meshgrid(const Call& call) {
  absl::Status status = check_vectors(call);
  if (!status.ok()) return {poisoned(status)};
  const std::string& indexing = call.attr(0).as_string();
  if (indexing != "ij" && indexing != "xy") {
    return {poisoned(runtime_error(
        "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing))};
  }
  return grid(call.inputs, indexing == "xy");
}

Tensors compose_cartesian_prod(const Call& call) {
  for (const Tensor& t : call.inputs) {
    if (t->rank() != 1) {
      return {poisoned(runtime_error("Expect a 1D vector, but got shape ", shape_text(t->sizes)))};
    }
  }
  absl::Status status = check_vectors(call);
  if (!status.ok()) return {poisoned(status)};
  if (call.inputs.size() == 1) return {call.in(0)};
  static const OpRef stack("stack"), flatten("flatten");
  int64_t last = static_cast<int64_t>(call.inputs.size()) - 1;
  Tensor pairs = call_list(stack, grid(call.inputs, false), {int64_t{-1}})[0];
  return {gradwire::call(flatten, {pairs}, {0, last})};
}

// n! / (r! (n - r)!) for r of n + r - 1 with replacement; -1 when it does not fit.
int64_t choose(int64_t n, int64_t r) {
  if (r > n) return 0;
  __int128 count = 1;
  for (int64_t i = 1; i <= r; ++i) {
    count = count * (n - r + i) / i;
    if (count > (int64_t{1} << 40)) return -1;
  }
  return static_cast<int64_t>(count);
}

// The rows of places i0 < i1 < ... (<= with replacement), found as the true elements of a mask of
// rank r.
Tensors compose_combinations(const Call& call) {
  const Tensor& x = call.in(0);
  int64_t r = call.attr(0).as_int();
  bool again = call.attr(1).as_bool();
  if (x->rank() != 1) {
    return {poisoned(runtime_error("Expect a 1D vector, but got shape ", shape_text(x->sizes)))};
  }
  if (r < 0) return {poisoned(runtime_error("Expect a non-negative number, but got ", r))};
  if (r == 0) return {zeros(Dims{0}, x->dtype)};
  int64_t n = x->numel();
  if (r > kMaxRank) {
    return {poisoned(runtime_error("[combinations] r must be at most ", kMaxRank, ", got ", r))};
  }
  int64_t count = n == 0 ? 0 : choose(again ? n + r - 1 : n, r);
  if (count < 0 || !checked_numel(Dims(r, n)).ok()) {
    return {poisoned(runtime_error("[combinations] ", n, " elements in groups of ", r,
                                   " are more than a tensor can hold"))};
  }
  static const OpRef arange("arange"), lt("lt"), le("le"), both("logical_and"),
      nonzero("nonzero_of_count"), select("index_select");
  Tensor places = gradwire::call(arange, {}, {int64_t{0}, n, 1, DType::kInt64});
  Tensor mask = full(Dims{n}, 1, DType::kBool);
  for (int64_t i = 1; i < r; ++i) {
    Dims column(i + 1, 1), row(i + 1, 1);
    column[i - 1] = row[i] = n;
    Tensor fits = gradwire::call(again ? le : lt, {reshape(places, column), reshape(places, row)});
    mask = gradwire::call(both, {unsqueeze(mask, -1), fits});
  }
  Tensor index = gradwire::call(nonzero, {mask}, {count});
  if (index->poison) return {index};
  Tensor taken = gradwire::call(select, {x, reshape(index, Dims{count * r})}, {0});
  return {taken->poison ? taken : reshape(taken, Dims{count, r})};
}

}  // namespace

void add_stack_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = fn;
    row.check = check_any;
    row.type_rule = "promote";
    row.out = true;
    return row;
  };
  composite(387, "hstack(Tensor[] tensors) -> Tensor",
            "Joined along dimension 1, vectors along dimension 0.", compose_hstack);
  for (auto [number, name] : {std::pair{uint16_t{388}, "vstack"}, {uint16_t{389}, "row_stack"}}) {
    composite(number, absl::StrCat(name, "(Tensor[] tensors) -> Tensor"),
              "Joined along dimension 0; vectors are rows.", compose_vstack);
  }
  composite(390, "dstack(Tensor[] tensors) -> Tensor",
            "Joined along dimension 2; vectors and matrices get it.", compose_dstack);
  composite(391, "column_stack(Tensor[] tensors) -> Tensor",
            "Joined along dimension 1; vectors are columns.", compose_column_stack);
  auto& mesh =
      composite(392, "meshgrid(Tensor[] tensors, *, str indexing='ij') -> Tensor[]",
                "Grids of the coordinates in vectors; 'xy' swaps the first two.", compose_meshgrid);
  mesh.shape_rule = "meshgrid";
  mesh.type_rule = "each";
  mesh.out = false;
  composite(393, "cartesian_prod(Tensor[] tensors) -> Tensor",
            "All tuples of elements of the vectors, one a row.", compose_cartesian_prod)
      .out = false;
  auto& combinations =
      composite(394, "combinations(Tensor input, int r=2, bool with_replacement=False) -> Tensor",
                "All groups of r elements of a vector, in order, one a row.", compose_combinations);
  combinations.type_rule = "same";
  combinations.method = true;
  combinations.out = false;
}

}  // namespace gradwire
