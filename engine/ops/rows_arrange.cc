// Rows 364 to 369 and 375 to 386: dimensions moved, added, repeated, turned.
#include <algorithm>

#include "engine/ops/formula.h"

namespace gradwire {
namespace {

ViewSpec swapped(const Tensor& t, int64_t a, int64_t b) {
  ViewSpec spec{t->sizes, t->strides, t->offset};
  if (!spec.sizes.empty()) {
    std::swap(spec.sizes[a], spec.sizes[b]);
    std::swap(spec.strides[a], spec.strides[b]);
  }
  return spec;
}

absl::Status view_swap(const Call& call, std::vector<ViewSpec>* out) {
  const Tensor& x = call.in(0);
  auto a = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!a.ok()) return a.status();
  auto b = dim_of(call, call.attr(1).as_int(), x->rank());
  if (!b.ok()) return b.status();
  out->push_back(swapped(x, *a, *b));
  return absl::OkStatus();
}

void backward_swap(Backward& b) {
  b.set(0, transpose(b.grad(), b.attr(0).as_int(), b.attr(1).as_int()));
}

absl::Status view_t(const Call& call, std::vector<ViewSpec>* out) {
  const Tensor& x = call.in(0);
  if (x->rank() > 2) {
    return runtime_error("t() expects a tensor with <= 2 dimensions, but self is ", x->rank(), "D");
  }
  out->push_back(x->rank() < 2 ? swapped(x, 0, 0) : swapped(x, 0, 1));
  return absl::OkStatus();
}

void backward_t(Backward& b) {
  Tensor g = b.grad();
  b.set(0, g->poison || g->rank() < 2 ? g : transpose(g, 0, 1));
}

// --- movedim -------------------------------------------------------------------------------------

absl::StatusOr<IntList> distinct_dims(const Call& call, const IntList& dims, const char* name) {
  IntList wrapped;
  for (int64_t d : dims) {
    auto dim = dim_of(call, d, call.in(0)->rank());
    if (!dim.ok()) return dim.status();
    if (std::find(wrapped.begin(), wrapped.end(), *dim) != wrapped.end()) {
      return runtime_error("movedim: repeated dim in `", name, "` (", shape_text(dims), ")");
    }
    wrapped.push_back(*dim);
  }
  return wrapped;
}

Tensors compose_movedim(const Call& call) {
  const IntList& source = call.attr(0).as_ints();
  const IntList& destination = call.attr(1).as_ints();
  if (source.size() != destination.size()) {
    return {poisoned(runtime_error("movedim: Invalid source or destination dims: source (",
                                   shape_text(source),
                                   " dims) should contain the same number of dims as destination (",
                                   shape_text(destination), " dims)"))};
  }
  auto from = distinct_dims(call, source, "source");
  if (!from.ok()) return {poisoned(from.status())};
  auto to = distinct_dims(call, destination, "destination");
  if (!to.ok()) return {poisoned(to.status())};
  int64_t rank = call.in(0)->rank();
  if (rank == 0) return {permute(call.in(0), {})};
  IntList order(rank, -1);
  for (size_t i = 0; i < from->size(); ++i) order[(*to)[i]] = (*from)[i];
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (std::find(from->begin(), from->end(), next) != from->end()) ++next;
    d = next++;
  }
  return {permute(call.in(0), std::move(order))};
}

// --- more dimensions, other sizes ----------------------------------------------------------------

Tensor at_least(Tensor x, int rank) {
  if (x->rank() >= rank) return x;
  if (x->rank() == 0) return reshape(x, Dims(rank, 1));
  if (x->rank() == 1) x = unsqueeze(x, 0);
  return rank == 3 ? unsqueeze(x, -1) : x;
}

Tensors compose_broadcast_to(const Call& call) {
  return {expand(call.in(0), call.attr(0).as_ints())};
}

Tensors compose_broadcast_tensors(const Call& call) {
  Dims shape;
  for (const Tensor& t : call.inputs) {
    auto merged = broadcast_shapes(shape, t->sizes);
    if (!merged.ok()) return Tensors(call.inputs.size(), poisoned(merged.status()));
    shape = *merged;
  }
  Tensors out;
  for (const Tensor& t : call.inputs) out.push_back(expand(t, shape));
  return out;
}

Tensors compose_unflatten(const Call& call) {
  const Tensor& x = call.in(0);
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  const IntList& sizes = call.attr(1).as_ints();
  if (sizes.empty()) return {poisoned(runtime_error("unflatten: sizes must be non-empty"))};
  int64_t size = x->rank() ? x->sizes[*dim] : 1;
  auto inferred = infer_size(sizes, size);
  if (!inferred.ok()) {
    if (std::count(sizes.begin(), sizes.end(), -1) > 1) return {poisoned(inferred.status())};
    return {poisoned(runtime_error("unflatten: Provided sizes ", shape_text(sizes),
                                   " don't multiply up to the size of dim ", *dim, " (", size,
                                   ") in the input tensor"))};
  }
  static const OpRef view("view");
  IntList all(x->sizes.begin(), x->sizes.end());
  if (x->rank()) all.erase(all.begin() + *dim);
  all.insert(all.begin() + *dim, inferred->begin(), inferred->end());
  return {gradwire::call(view, {x}, {std::move(all)})};
}

Tensors compose_sum_to_size(const Call& call) {
  const Tensor& x = call.in(0);
  const IntList& sizes = call.attr(0).as_ints();
  bool fits = sizes.size() <= x->sizes.size();
  size_t lead = fits ? x->sizes.size() - sizes.size() : 0;
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    fits = sizes[i] == 1 || sizes[i] == x->sizes[lead + i];
  }
  if (!fits) {
    return {poisoned(runtime_error("size {", shape_text(sizes), "} is not expandable to size {",
                                   shape_text(x->sizes), "}."))};
  }
  return {sum_to(x, sizes)};
}

// --- repetition ----------------------------------------------------------------------------------

absl::Status too_large(int64_t size, int64_t times) {
  return runtime_error("[repeat] ", size, " times ", times, " is more than a tensor can hold");
}

// x with dimension d shown `times` times, one after another.
Tensor repeated_along(const Tensor& x, size_t d, int64_t times) {
  Dims sizes = x->sizes;
  if (__builtin_mul_overflow(sizes[d], times, &sizes[d])) {
    return poisoned(too_large(x->sizes[d], times));
  }
  int64_t before = 1, block = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& product = i < d ? before : block;
    if (__builtin_mul_overflow(product, x->sizes[i], &product)) {
      return poisoned(too_large(x->sizes[i], times));
    }
  }
  return reshape(expand(reshape(x, Dims{before, 1, block}), Dims{before, times, block}), sizes);
}

// x with every dimension d shown repeats[d] times: a new dimension of stride 0 before each that is
// repeated, all merged by one copy; dimension by dimension where that would be too many.
Tensor repeated(Tensor x, const IntList& repeats) {
  Dims all(repeats.size() - x->sizes.size(), 1);
  all.insert(all.end(), x->sizes.begin(), x->sizes.end());
  x = reshape(x, all);
  IntList split, shown, merged;
  for (size_t d = 0; d < repeats.size(); ++d) {
    int64_t total = all[d];
    if (repeats[d] != 1) {
      split.push_back(1);
      shown.push_back(repeats[d]);
      if (__builtin_mul_overflow(all[d], repeats[d], &total)) {
        return poisoned(too_large(all[d], repeats[d]));
      }
    }
    split.push_back(all[d]);
    shown.push_back(all[d]);
    merged.push_back(total);
  }
  if (split.size() <= static_cast<size_t>(kMaxRank)) {
    return reshape(expand(reshape(x, split), shown), merged);
  }
  for (size_t d = 0; d < repeats.size() && !x->poison; ++d) {
    if (repeats[d] != 1) x = repeated_along(x, d, repeats[d]);
  }
  return x;
}

Tensor repeat(const Call& call, IntList repeats) {
  const Tensor& x = call.in(0);
  if (repeats.size() < x->sizes.size()) {
    return poisoned(
        runtime_error("Number of dimensions of repeat dims can not be smaller than "
                      "number of dimensions of tensor [",
                      call.op->name, "]"));
  }
  if (repeats.size() > static_cast<size_t>(kMaxRank)) {
    return poisoned(runtime_error("a tensor has at most ", kMaxRank, " dimensions"));
  }
  size_t lead = repeats.size() - x->sizes.size();
  bool once = true;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) {
      return poisoned(runtime_error("Trying to create tensor with negative dimension ", repeats[i],
                                    ": ", shape_text(repeats)));
    }
    once = once && repeats[i] == 1;
  }
  if (once) {
    IntList sizes(lead, 1);
    sizes.insert(sizes.end(), x->sizes.begin(), x->sizes.end());
    return clone(reshape(x, sizes));
  }
  Tensor shown = repeated(x, repeats);
  // Where merging needs no copy it is still x's memory.
  return !shown->poison && shown->storage == x->storage ? clone(shown) : shown;
}

Tensors compose_repeat(const Call& call) {
  return {repeat(call, call.attr(0).as_ints())};
}

Tensors compose_tile(const Call& call) {
  IntList dims = call.attr(0).as_ints();
  if (dims.size() < call.in(0)->sizes.size()) {
    dims.insert(dims.begin(), call.in(0)->sizes.size() - dims.size(), 1);
  }
  return {repeat(call, std::move(dims))};
}

// --- turning -------------------------------------------------------------------------------------

Tensors compose_roll(const Call& call) {
  static const OpRef narrow("narrow"), cat("cat");
  const Tensor& x = call.in(0);
  const IntList& shifts = call.attr(0).as_ints();
  const IntList& dims = call.attr(1).as_ints();
  if (shifts.empty()) return {poisoned(runtime_error("`shifts` required"))};
  if (dims.empty() && shifts.size() == 1) {
    Call flat = call;
    flat.inputs[0] = reshape(x, Dims{x->numel()});
    flat.attributes[1] = IntList{0};
    Tensor rolled = compose_roll(flat)[0];
    return {rolled->poison ? rolled : reshape(rolled, x->sizes)};
  }
  if (shifts.size() != dims.size()) {
    return {poisoned(runtime_error("shifts and dimensions must align. shifts: ", shifts.size(),
                                   ", dims:", dims.size()))};
  }
  Tensor out = x;
  bool copied = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto dim = dim_of(call, dims[i], x->rank());
    if (!dim.ok()) return {poisoned(dim.status())};
    int64_t size = x->rank() ? x->sizes[*dim] : 1;
    if (size < 2 || x->numel() == 0) continue;
    int64_t start = shifts[i] % size;
    if (start < 0) start += size;
    if (start == 0) continue;
    Tensor tail = gradwire::call(narrow, {out}, {*dim, size - start, start});
    Tensor head = gradwire::call(narrow, {out}, {*dim, 0, size - start});
    out = call_list(cat, {tail, head}, {*dim})[0];
    copied = true;
  }
  return {copied ? out : clone(out)};
}

Tensor flipped(const Tensor& x, IntList dims) {
  static const OpRef flip("flip");
  return call(flip, {x}, {std::move(dims)});
}

Tensors compose_rot90(const Call& call) {
  const Tensor& x = call.in(0);
  const IntList& dims = call.attr(1).as_ints();
  if (dims.size() != 2) {
    return {
        poisoned(runtime_error("expected total rotation dims == 2, but got dims = ", dims.size()))};
  }
  if (x->rank() < 2) {
    return {poisoned(runtime_error("expected total dims >= 2, but got total dims = ", x->rank()))};
  }
  auto a = dim_of(call, dims[0], x->rank());
  if (!a.ok()) return {poisoned(a.status())};
  auto b = dim_of(call, dims[1], x->rank());
  if (!b.ok()) return {poisoned(b.status())};
  if (*a == *b) {
    return {poisoned(runtime_error("expected rotation dims to be different, but got dim0 = ",
                                   dims[0], " and dim1 = ", dims[1]))};
  }
  switch (((call.attr(0).as_int() % 4) + 4) % 4) {
    case 1:
      return {transpose(flipped(x, {*b}), *a, *b)};
    case 2:
      return {flipped(x, {*a, *b})};
    case 3:
      return {transpose(flipped(x, {*a}), *a, *b)};
    default:
      return {clone(x)};
  }
}

template <int kDim>
Tensors compose_flip_one(const Call& call) {
  if (call.in(0)->rank() <= kDim) {
    return {poisoned(runtime_error("Input must be >= ", kDim + 1, "-d. [", call.op->name, "]"))};
  }
  return {flipped(call.in(0), {kDim})};
}

}  // namespace

void add_arrange_rows(Catalog& c) {
  auto view = [&](uint16_t number, std::string_view signature, std::string_view doc, ViewFn fn,
                  BackwardFn backward) {
    OpDef& row = c.add(number, OpKind::kView, signature, doc);
    row.view = fn;
    row.backward = backward;
    row.type_rule = "same";
    row.method = row.in_place = true;
  };
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = fn;
    row.type_rule = "same";
    row.method = true;
    return row;
  };
  view(364, "swapaxes(Tensor input, int axis0, int axis1) -> Tensor", "Two dimensions swapped.",
       view_swap, backward_swap);
  view(365, "swapdims(Tensor input, int dim0, int dim1) -> Tensor", "Two dimensions swapped.",
       view_swap, backward_swap);
  view(366, "t(Tensor input) -> Tensor",
       "A matrix transposed; a vector or a scalar as it is. Errors for more dimensions.", view_t,
       backward_t);
  composite(367, "movedim(Tensor input, int[] source, int[] destination) -> Tensor",
            "The dimensions source at the places destination; the others keep their order.",
            compose_movedim);
  composite(368, "moveaxis(Tensor input, int[] source, int[] destination) -> Tensor",
            "The dimensions source at the places destination; the others keep their order.",
            compose_movedim);
  composite(369, "broadcast_to(Tensor input, int[] size) -> Tensor",
            "input shown in the sizes it broadcasts to, without a copy.", compose_broadcast_to)
      .shape_rule = "expand";
  for (int rank : {1, 2, 3}) {
    static constexpr ComposeFn kCompose[] = {
        [](const Call& call) { return Tensors{at_least(call.in(0), 1)}; },
        [](const Call& call) { return Tensors{at_least(call.in(0), 2)}; },
        [](const Call& call) { return Tensors{at_least(call.in(0), 3)}; }};
    composite(static_cast<uint16_t>(374 + rank),
              absl::StrCat("atleast_", rank, "d(Tensor input) -> Tensor"),
              absl::StrCat("input as a view with at least ", rank, " dimensions."),
              kCompose[rank - 1])
        .method = false;
  }
  composite(
      378, "ravel(Tensor input) -> Tensor",
      "The elements in order, as one dimension; a view where one exists.",
      [](const Call& call) { return Tensors{reshape(call.in(0), Dims{call.in(0)->numel()})}; });
  composite(379, "unflatten(Tensor input, int dim, int[] sizes) -> Tensor",
            "dim seen as several dimensions; one of sizes may be -1.", compose_unflatten);
  composite(380, "sum_to_size(Tensor input, int[] size) -> Tensor",
            "Summed over the dimensions in which size broadcasts to the input's sizes.",
            compose_sum_to_size)
      .type_rule = "";
  composite(381, "repeat(Tensor input, int[] repeats) -> Tensor",
            "A copy with dimension d repeated repeats[d] times; further repeats lead.",
            compose_repeat);
  composite(382, "tile(Tensor input, int[] dims) -> Tensor",
            "A copy with the last dimensions repeated dims times.", compose_tile);
  composite(383, "roll(Tensor input, int[] shifts, int[]? dims=None) -> Tensor",
            "Elements moved by shifts along dims, around the end; without dims as one vector.",
            compose_roll)
      .shape_rule = "same";
  composite(384, "rot90(Tensor input, int k=1, int[] dims=[0,1]) -> Tensor",
            "Turned by 90 degrees k times in the plane of dims, from the first to the second.",
            compose_rot90);
  composite(385, "fliplr(Tensor input) -> Tensor", "The order of dimension 1 reversed.",
            compose_flip_one<1>)
      .shape_rule = "same";
  composite(386, "flipud(Tensor input) -> Tensor", "The order of dimension 0 reversed.",
            compose_flip_one<0>)
      .shape_rule = "same";
  auto& broadcast = composite(402, "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
                              "The tensors shown in their common sizes, without copies.",
                              compose_broadcast_tensors);
  broadcast.method = false;
  broadcast.shape_rule = "broadcast_each";
  broadcast.type_rule = "each";
}

}  // namespace gradwire
