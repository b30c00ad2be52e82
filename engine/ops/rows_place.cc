// Rows 403 to 410: diagonals, and tensors with other tensors in their places.
#include <algorithm>

#include "engine/ops/formula.h"

namespace gradwire {
namespace {

const OpRef kDiagonal("diagonal"), kNarrow("narrow"), kAsStrided("as_strided");

// --- diagonals -----------------------------------------------------------------------------------

Tensor embedded(const Call& call, const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t rank = x->rank() + 1;
  auto a = dim_of(call, dim1, rank);
  if (!a.ok()) return poisoned(a.status());
  auto b = dim_of(call, dim2, rank);
  if (!b.ok()) return poisoned(b.status());
  if (*a == *b) {
    return poisoned(runtime_error("diagonal dimensions cannot be identical ", dim1, ", ", dim2));
  }
  int64_t size = x->sizes.back(), more = offset < 0 ? offset : -offset;  // -|offset|, no overflow
  if (__builtin_sub_overflow(size, more, &size)) {
    return poisoned(runtime_error("[", call.op->name, "] offset ", offset, " is too large"));
  }
  Dims sizes(x->sizes.begin(), x->sizes.end() - 1);
  sizes.insert(sizes.begin() + std::min(*a, *b), size);
  sizes.insert(sizes.begin() + std::max(*a, *b), size);
  return put_in(call.op->name, zeros(sizes, x->dtype), x,
                [offset, a = *a, b = *b](const Tensor& whole) {
                  return gradwire::call(kDiagonal, {whole}, {offset, a, b});
                });
}

Tensors compose_diag_embed(const Call& call) {
  if (call.in(0)->rank() == 0) {
    return {poisoned(runtime_error("diag_embed() expects a tensor of at least 1 dimension"))};
  }
  return {embedded(call, call.in(0), call.attr(0).as_int(), call.attr(1).as_int(),
                   call.attr(2).as_int())};
}

Tensors compose_diag(const Call& call) {
  const Tensor& x = call.in(0);
  if (x->rank() == 1) return {embedded(call, x, call.attr(0).as_int(), 0, 1)};
  if (x->rank() != 2) {
    return {poisoned(runtime_error("diag(): Supports 1D or 2D tensors. Got ", x->rank(), "D"))};
  }
  return {clone(gradwire::call(kDiagonal, {x}, {call.attr(0), 0, 1}))};
}

Tensors compose_diagflat(const Call& call) {
  const Tensor& x = call.in(0);
  Tensor flat = reshape(x, Dims{x->numel()});
  return {flat->poison ? flat : embedded(call, flat, call.attr(0).as_int(), 0, 1)};
}

// --- in the place of a view ----------------------------------------------------------------------

// A row whose result is input with src in the place that another row's view of it takes.
Tensors in_place_of(const Call& call, const OpRef& view, AttributeList attributes) {
  return {put_in(call.op->name, call.in(0), call.in(1), [&view, attributes](const Tensor& whole) {
    return gradwire::call(view, {whole}, attributes);
  })};
}

Tensors compose_diagonal_scatter(const Call& call) {
  return in_place_of(call, kDiagonal, call.attributes);
}

Tensors compose_select_scatter(const Call& call) {
  static const OpRef select("select");
  return in_place_of(call, select, call.attributes);
}

Tensors compose_slice_scatter(const Call& call) {
  static const OpRef slice("slice");
  return in_place_of(call, slice, call.attributes);
}

// The elements of `x` in memory laid out as `model`'s, from its storage's first element on.
Tensor laid_out(const Tensor& x, const ViewSpec& model) {
  static const OpRef copy("copy_");
  int64_t extent = model.offset + extent_of(model.sizes, model.strides);
  Tensor block = zeros(Dims{extent}, x->dtype);
  if (block->poison) return block;
  Tensor place = new_view(block, model);
  if (x->numel() == 0) return place;
  Tensor written = call_in_place(copy, {place, detached(x)});
  return written->poison ? written : place;
}

// The geometry of as_strided is over the input's storage, so that a copy must keep its layout.
Tensor strided_scatter(const Tensor& x, const Tensor& src, const ViewSpec& model,
                       const IntList& sizes, const IntList& strides, int64_t offset) {
  static const OpRef copy("copy_");
  Tensor out;
  {
    GradMode off(false);
    out = laid_out(x, model);
    if (out->poison) return out;
    Tensor hole = call(kAsStrided, {out}, {sizes, strides, offset});
    if (hole->poison) return hole;
    if (hole->sizes != src->sizes) {
      return poisoned(
          runtime_error("expected src to have a size equal to the slice of self. "
                        "src size = ",
                        shape_text(src->sizes), ", slice size = ", shape_text(hole->sizes)));
    }
    Tensor written = call_in_place(copy, {hole, detached(src)});
    if (written->poison) return written;
  }
  Formula cut = [=](const Tensor& g) {
    Tensor whole = contiguous(g);
    if (whole->poison || model.strides == contiguous_strides(model.sizes)) {
      return call(kAsStrided, {whole}, {sizes, strides, offset - model.offset});
    }
    Tensor moved = laid_out(whole, model);
    return moved->poison ? moved : call(kAsStrided, {moved}, {sizes, strides, offset});
  };
  // PyTorch gives the input the gradient of the part that was overwritten, and none for the rest.
  // That is not the derivative, but its users' numbers; see as_strided_scatter_backward there.
  return with_gradient("as_strided_scatter", out, {x, src},
                       {[=](const Tensor& g) {
                          return strided_scatter(zeros(model.sizes, g->dtype), cut(g), model, sizes,
                                                 strides, offset);
                        },
                        cut});
}

Tensors compose_as_strided_scatter(const Call& call) {
  const Tensor& x = call.in(0);
  if (may_overlap(x->sizes, x->strides)) {
    return {
        poisoned(runtime_error("[as_strided_scatter] elements of the input share memory: "
                               "clone() it first"))};
  }
  ViewSpec model{x->sizes, x->strides, x->offset};
  int64_t offset = call.attr(2).none() ? x->offset : call.attr(2).as_int();
  return {strided_scatter(x, call.in(1), model, call.attr(0).as_ints(), call.attr(1).as_ints(),
                          offset)};
}

}  // namespace

void add_place_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = fn;
    row.type_rule = "same";
    row.method = true;
    return row;
  };
  composite(403, "diag(Tensor input, int diagonal=0) -> Tensor",
            "The diagonal of a matrix as a vector, or a matrix with a vector on its diagonal.",
            compose_diag)
      .out = true;
  composite(404, "diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
            "The last dimension on the diagonal of two new dimensions; the rest is 0.",
            compose_diag_embed);
  composite(405, "diagflat(Tensor input, int offset=0) -> Tensor",
            "A matrix with all elements on its diagonal.", compose_diagflat);
  composite(406,
            "diagonal_scatter(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1) "
            "-> Tensor",
            "input with src on a diagonal.", compose_diagonal_scatter)
      .shape_rule = "same";
  composite(407, "select_scatter(Tensor input, Tensor src, int dim, int index) -> Tensor",
            "input with src at one index of dim.", compose_select_scatter)
      .shape_rule = "same";
  composite(408,
            "slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, "
            "int step=1) -> Tensor",
            "input with src in input[start:end:step] along dim.", compose_slice_scatter)
      .shape_rule = "same";
  composite(409,
            "as_strided_scatter(Tensor input, Tensor src, int[] size, int[] stride, "
            "int? storage_offset=None) -> Tensor",
            "input with src in the place of as_strided(size, stride, storage_offset).",
            compose_as_strided_scatter)
      .shape_rule = "same";
}

}  // namespace gradwire
