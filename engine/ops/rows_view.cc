// Rows 350 to 372: new geometry over the same memory, and splitting.
#include <algorithm>

#include "engine/ops/formula.h"

namespace gradwire {
namespace {

ViewSpec spec_of(const Tensor& t) {
  return {t->sizes, t->strides, t->offset};
}

// Strides are free where a dimension has one element or none; kept far from overflow there.
constexpr int64_t kMaxStride = int64_t{1} << 60;

int64_t stepped(int64_t stride, int64_t step) {
  int64_t product;
  if (__builtin_mul_overflow(stride, step, &product)) return kMaxStride;
  return std::min(product, kMaxStride);
}

// --- gradients -----------------------------------------------------------------------------------

void backward_reshape(Backward& b) {
  b.set(0, reshape(b.grad(), b.input_spec(0).sizes));
}

void backward_transpose(Backward& b) {
  b.set(0, transpose(b.grad(), b.attr(0).as_int(), b.attr(1).as_int()));
}

void backward_permute(Backward& b) {
  const IntList& dims = b.attr(0).as_ints();
  int64_t rank = static_cast<int64_t>(dims.size());
  IntList inverse(dims.size());
  for (int64_t i = 0; i < rank; ++i) inverse[(dims[i] + rank) % rank] = i;
  b.set(0, permute(b.grad(), std::move(inverse)));
}

void backward_expand(Backward& b) {
  b.set(0, sum_to(b.grad(), b.input_spec(0).sizes));
}

// Zeros of the whole's sizes, row-major, with g in the place of a view; where the view shows an
// element twice, both add to it.
Tensor placed(const Tensor& g, const Dims& whole, const ViewSpec& view) {
  static const OpRef place("view_scatter"), arange("arange"), as_strided("as_strided"),
      index_add("index_add");
  if (g->poison) return g;
  IntList sizes(view.sizes.begin(), view.sizes.end());
  IntList strides(view.strides.begin(), view.strides.end());
  if (!may_overlap(view.sizes, view.strides)) {
    return call(place, {g}, {IntList(whole.begin(), whole.end()), sizes, strides, view.offset});
  }
  int64_t numel = std::max(numel_of(whole), view.offset + extent_of(view.sizes, view.strides));
  Tensor places = call(arange, {}, {int64_t{0}, numel, 1, DType::kInt64});
  Tensor index = reshape(call(as_strided, {places}, {sizes, strides, view.offset}),
                         Dims{numel_of(view.sizes)});
  Tensor total =
      call(index_add, {zeros(Dims{numel}, g->dtype), index, reshape(g, Dims{numel_of(view.sizes)})},
           {0, 1});
  if (numel != numel_of(whole)) {
    static const OpRef narrow("narrow");
    total = call(narrow, {total}, {0, 0, numel_of(whole)});
  }
  return reshape(total, whole);
}

// The gradient of a part: zeros of the whole with the gradient in the part's place. The place is
// found by running the row's own view rule on a row-major tensor of the whole's sizes.
void backward_part(Backward& b) {
  const TensorSpec& whole = b.input_spec(0);
  Tensor model = make_ref<TensorImpl>();
  model->dtype = whole.dtype;
  model->sizes = whole.sizes;
  model->strides = contiguous_strides(whole.sizes);
  Call again;
  again.op = b.node.op;
  again.inputs = {model};
  again.attributes = b.node.attributes;
  std::vector<ViewSpec> parts;
  absl::Status status = again.op->view(again, &parts);
  if (!status.ok()) {
    b.set(0, poisoned(status));
    return;
  }
  Tensor total;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!b.has_grad(static_cast<int>(i))) continue;
    Tensor g = placed(b.grad(static_cast<int>(i)), whole.sizes, parts[i]);
    total = total ? add(total, g) : g;
  }
  if (total) b.set(0, total);
}

// --- views ---------------------------------------------------------------------------------------

absl::Status view_view(const Call& call, std::vector<ViewSpec>* out) {
  const Tensor& x = call.in(0);
  auto sizes = infer_size(call.attr(0).as_ints(), x->numel());
  if (!sizes.ok()) return sizes.status();
  ViewSpec spec{*sizes, {}, x->offset};
  if (!view_strides(x->sizes, x->strides, spec.sizes, &spec.strides)) {
    return runtime_error(
        "view size is not compatible with input tensor's size and stride (at "
        "least one dimension spans across two contiguous subspaces). Use "
        ".reshape(...) instead.");
  }
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_transpose(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec spec = spec_of(call.in(0));
  auto a = dim_of(call, call.attr(0).as_int(), spec.sizes.size());
  if (!a.ok()) return a.status();
  auto b = dim_of(call, call.attr(1).as_int(), spec.sizes.size());
  if (!b.ok()) return b.status();
  if (!spec.sizes.empty()) {
    std::swap(spec.sizes[*a], spec.sizes[*b]);
    std::swap(spec.strides[*a], spec.strides[*b]);
  }
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_permute(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec from = spec_of(call.in(0));
  const IntList& dims = call.attr(0).as_ints();
  if (dims.size() != from.sizes.size()) {
    return runtime_error(
        "permute(sparse_coo): number of dimensions in the tensor input does not "
        "match the length of the desired ordering of dimensions i.e. input.dim() "
        "= ",
        from.sizes.size(), " is not equal to len(dims) = ", dims.size());
  }
  ViewSpec spec{{}, {}, from.offset};
  std::vector<bool> seen(dims.size());
  for (int64_t d : dims) {
    auto dim = dim_of(call, d, from.sizes.size());
    if (!dim.ok()) return dim.status();
    if (seen[*dim]) return runtime_error("permute(): duplicate dims are not allowed.");
    seen[*dim] = true;
    spec.sizes.push_back(from.sizes[*dim]);
    spec.strides.push_back(from.strides[*dim]);
  }
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_expand(const Call& call, std::vector<ViewSpec>* out) {
  const Tensor& x = call.in(0);
  const IntList& sizes = call.attr(0).as_ints();
  if (sizes.size() < x->sizes.size()) {
    return runtime_error("expand(", x->text(), ", size=", shape_text(sizes),
                         "): the number of sizes provided (", sizes.size(),
                         ") must be greater or equal to the number of dimensions in the tensor (",
                         x->sizes.size(), ")");
  }
  size_t lead = sizes.size() - x->sizes.size();
  ViewSpec spec{Dims(sizes.begin(), sizes.end()), Dims(sizes.size()), x->offset};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < lead) {
      if (sizes[i] < 0) {
        return runtime_error("The expanded size of the tensor (", sizes[i],
                             ") isn't allowed in a leading, non-existing dimension ", i);
      }
      continue;
    }
    int64_t have = x->sizes[i - lead];
    if (sizes[i] == -1) spec.sizes[i] = have;
    if (spec.sizes[i] == have) {
      spec.strides[i] = x->strides[i - lead];
    } else if (have != 1 || spec.sizes[i] < 0) {
      return runtime_error(
          "The expanded size of the tensor (", sizes[i], ") must match the existing size (", have,
          ") at non-singleton dimension ", i, ".  Target sizes: ", shape_text(sizes),
          ".  Tensor sizes: ", shape_text(x->sizes));
    }
  }
  auto numel = checked_numel(spec.sizes);
  if (!numel.ok()) return numel.status();
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_squeeze(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec from = spec_of(call.in(0));
  std::vector<bool> drop(from.sizes.size());
  if (call.attr(0).none()) {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = from.sizes[i] == 1;
  }
  for (int64_t d : call.attr(0).as_ints()) {
    auto dim = dim_of(call, d, from.sizes.size());
    if (!dim.ok()) return dim.status();
    if (!from.sizes.empty()) drop[*dim] = from.sizes[*dim] == 1;
  }
  ViewSpec spec{{}, {}, from.offset};
  for (size_t i = 0; i < drop.size(); ++i) {
    if (drop[i]) continue;
    spec.sizes.push_back(from.sizes[i]);
    spec.strides.push_back(from.strides[i]);
  }
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_unsqueeze(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec spec = spec_of(call.in(0));
  auto dim = dim_of(call, call.attr(0).as_int(), spec.sizes.size() + 1);
  if (!dim.ok()) return dim.status();
  if (spec.sizes.size() >= static_cast<size_t>(kMaxRank)) {
    return runtime_error("a tensor has at most ", kMaxRank, " dimensions");
  }
  int64_t stride = static_cast<size_t>(*dim) < spec.sizes.size()
                       ? stepped(spec.strides[*dim], std::max<int64_t>(spec.sizes[*dim], 1))
                       : 1;
  spec.sizes.insert(spec.sizes.begin() + *dim, 1);
  spec.strides.insert(spec.strides.begin() + *dim, stride);
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_select(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec spec = spec_of(call.in(0));
  if (spec.sizes.empty()) return index_error("select() cannot be applied to a 0-dim tensor.");
  auto dim = dim_of(call, call.attr(0).as_int(), spec.sizes.size());
  if (!dim.ok()) return dim.status();
  int64_t size = spec.sizes[*dim], index = call.attr(1).as_int();
  if (index < -size || index >= size) {
    return index_error("select(): index ", index, " out of range for tensor of size ",
                       shape_text(spec.sizes), " at dimension ", *dim);
  }
  spec.offset += (index < 0 ? index + size : index) * spec.strides[*dim];
  spec.sizes.erase(spec.sizes.begin() + *dim);
  spec.strides.erase(spec.strides.begin() + *dim);
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_slice(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec spec = spec_of(call.in(0));
  if (spec.sizes.empty()) return runtime_error("slice() cannot be applied to a 0-dim tensor.");
  auto dim = dim_of(call, call.attr(0).as_int(), spec.sizes.size());
  if (!dim.ok()) return dim.status();
  int64_t size = spec.sizes[*dim], step = call.attr(3).as_int();
  if (step <= 0) return value_error("step must be greater than zero");
  auto clip = [size](int64_t at) { return std::clamp(at < 0 ? at + size : at, int64_t{0}, size); };
  int64_t start = call.attr(1).none() ? 0 : clip(call.attr(1).as_int());
  int64_t end = call.attr(2).none() ? size : clip(call.attr(2).as_int());
  end = std::max(end, start);
  spec.offset += start * spec.strides[*dim];
  spec.sizes[*dim] = (end - start) / step + ((end - start) % step != 0);
  spec.strides[*dim] = stepped(spec.strides[*dim], step);
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_narrow(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec spec = spec_of(call.in(0));
  if (spec.sizes.empty()) return runtime_error("narrow() cannot be applied to a 0-dim tensor.");
  auto dim = dim_of(call, call.attr(0).as_int(), spec.sizes.size());
  if (!dim.ok()) return dim.status();
  int64_t size = spec.sizes[*dim], start = call.attr(1).as_int(), length = call.attr(2).as_int();
  if (start < -size || start > size) {
    return index_error("start out of range (expected to be in range of [", -size, ", ", size,
                       "], but got ", start, ")");
  }
  if (start < 0) start += size;
  if (length < 0 || length > size - start) {
    return runtime_error("start (", start, ") + length (", length, ") exceeds dimension size (",
                         size, ").");
  }
  spec.offset += start * spec.strides[*dim];
  spec.sizes[*dim] = length;
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_diagonal(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec from = spec_of(call.in(0));
  auto a = dim_of(call, call.attr(1).as_int(), from.sizes.size());
  if (!a.ok()) return a.status();
  auto b = dim_of(call, call.attr(2).as_int(), from.sizes.size());
  if (!b.ok()) return b.status();
  if (*a == *b) {
    return runtime_error("diagonal dimensions cannot be identical ", call.attr(1).as_int(), ", ",
                         call.attr(2).as_int());
  }
  int64_t offset = call.attr(0).as_int();
  int64_t rows = from.sizes[*a], columns = from.sizes[*b];
  offset = std::clamp(offset, -rows, columns);  // beyond them it is empty, too
  int64_t length =
      offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
  length = std::max<int64_t>(length, 0);
  ViewSpec spec{{}, {}, from.offset};
  if (length > 0) {
    spec.offset += offset >= 0 ? offset * from.strides[*b] : -offset * from.strides[*a];
  }
  for (size_t i = 0; i < from.sizes.size(); ++i) {
    if (static_cast<int64_t>(i) == *a || static_cast<int64_t>(i) == *b) continue;
    spec.sizes.push_back(from.sizes[i]);
    spec.strides.push_back(from.strides[i]);
  }
  spec.sizes.push_back(length);
  spec.strides.push_back(from.strides[*a] + from.strides[*b]);  // each at most kMaxStride
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status view_as_strided(const Call& call, std::vector<ViewSpec>* out) {
  const Tensor& x = call.in(0);
  const IntList& sizes = call.attr(0).as_ints();
  const IntList& strides = call.attr(1).as_ints();
  int64_t offset = call.attr(2).none() ? x->offset : call.attr(2).as_int();
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  if (sizes.size() != strides.size()) {
    return runtime_error("mismatch in length of strides and shape");
  }
  __int128 last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0) {
      return runtime_error(
          "as_strided: Negative strides are not supported at the moment, got "
          "strides: ",
          shape_text(strides));
    }
    if (strides[i] > kMaxStride) return runtime_error("as_strided: stride ", strides[i]);
    if (sizes[i] > 0) last += static_cast<__int128>(sizes[i] - 1) * strides[i];
  }
  auto capacity = static_cast<int64_t>(x->storage->bytes / dtype_size(x->dtype));
  if (offset < 0 || last > kMaxStride || (*numel && last >= capacity)) {
    return runtime_error("setStorage: sizes ", shape_text(sizes), ", strides ", shape_text(strides),
                         ", and storage offset ", offset, " are out of bounds for storage of ",
                         capacity, " elements");
  }
  out->push_back({Dims(sizes.begin(), sizes.end()), Dims(strides.begin(), strides.end()), offset});
  return absl::OkStatus();
}

// The gradient of any geometry, over any geometry: through a block of the storage's part that the
// two reach. An element that the input shows n times gets each time an n-th of what comes to it.
void backward_as_strided(Backward& b) {
  static const OpRef as_strided("as_strided"), clamp("clamp_min");
  ViewSpec from = b.node.layout;
  ViewSpec to{Dims(b.attr(0).as_ints().begin(), b.attr(0).as_ints().end()),
              Dims(b.attr(1).as_ints().begin(), b.attr(1).as_ints().end()),
              b.attr(2).none() ? from.offset : b.attr(2).as_int()};
  if (numel_of(to.sizes) == 0) to.offset = from.offset;
  if (numel_of(from.sizes) == 0) from.offset = to.offset;
  int64_t start = std::min(from.offset, to.offset);
  from.offset -= start;
  to.offset -= start;
  Dims block{std::max(from.offset + extent_of(from.sizes, from.strides),
                      to.offset + extent_of(to.sizes, to.strides))};
  Tensor total = placed(b.grad(), block, to);
  if (!total->poison && may_overlap(from.sizes, from.strides)) {
    Tensor shown = placed(full(from.sizes, 1, total->dtype), block, from);
    total = div(total, call(clamp, {shown, nullptr}, {1}));
  }
  b.set(0, call(as_strided, {total},
                {IntList(from.sizes.begin(), from.sizes.end()),
                 IntList(from.strides.begin(), from.strides.end()), from.offset}));
}

absl::Status view_split(const Call& call, std::vector<ViewSpec>* out) {
  const Tensor& x = call.in(0);
  if (x->sizes.empty()) return runtime_error("split expects at least a 1-dimensional tensor");
  auto dim = dim_of(call, call.attr(1).as_int(), x->sizes.size());
  if (!dim.ok()) return dim.status();
  const IntList& lengths = call.attr(0).as_ints();
  int64_t size = x->sizes[*dim], at = 0;
  for (int64_t length : lengths) {
    if (length < 0) {
      return runtime_error(
          "split_with_sizes expects split_sizes have only non-negative entries, "
          "but got split_sizes=",
          shape_text(lengths));
    }
    if (length > size - at) {
      at = -1;
      break;
    }
    ViewSpec spec = spec_of(x);
    spec.offset += at * spec.strides[*dim];
    spec.sizes[*dim] = length;
    at += length;
    out->push_back(std::move(spec));
  }
  if (at != size) {
    return runtime_error("split_with_sizes expects split_sizes to sum exactly to ", size,
                         " (input tensor's size at dimension ", *dim,
                         "), but got split_sizes=", shape_text(lengths));
  }
  return absl::OkStatus();
}

absl::Status view_unbind(const Call& call, std::vector<ViewSpec>* out) {
  const Tensor& x = call.in(0);
  if (x->sizes.empty())
    return runtime_error(
        "Dimension specified as 0 but tensor has no "
        "dimensions");
  auto dim = dim_of(call, call.attr(0).as_int(), x->sizes.size());
  if (!dim.ok()) return dim.status();
  GW_RETURN_IF_ERROR(check_outputs(call, x->sizes[*dim]));
  for (int64_t i = 0; i < x->sizes[*dim]; ++i) {
    ViewSpec spec = spec_of(x);
    spec.offset += i * spec.strides[*dim];
    spec.sizes.erase(spec.sizes.begin() + *dim);
    spec.strides.erase(spec.strides.begin() + *dim);
    out->push_back(std::move(spec));
  }
  return absl::OkStatus();
}

absl::Status view_unfold(const Call& call, std::vector<ViewSpec>* out) {
  ViewSpec spec = spec_of(call.in(0));
  auto dim = dim_of(call, call.attr(0).as_int(), spec.sizes.size());
  if (!dim.ok()) return dim.status();
  int64_t window = call.attr(1).as_int(), step = call.attr(2).as_int();
  int64_t size = spec.sizes.empty() ? 1 : spec.sizes[*dim];
  if (window < 0 || window > size) {
    return runtime_error("maximum size for tensor at dimension ", *dim, " is ", size,
                         " but size is ", window);
  }
  if (step <= 0) return runtime_error("step is ", step, " but must be > 0");
  int64_t stride = spec.sizes.empty() ? 1 : spec.strides[*dim];
  if (!spec.sizes.empty()) {
    spec.sizes[*dim] = (size - window) / step + 1;
    spec.strides[*dim] = stepped(stride, step);
  }
  spec.sizes.push_back(window);
  spec.strides.push_back(stride);
  out->push_back(std::move(spec));
  return absl::OkStatus();
}

// --- composites ----------------------------------------------------------------------------------

Tensors compose_reshape(const Call& call) {
  static const OpRef view("view");
  Tensor x = call.in(0);
  auto sizes = infer_size(call.attr(0).as_ints(), x->numel());
  if (!sizes.ok()) return {poisoned(sizes.status())};
  Dims strides;
  if (!view_strides(x->sizes, x->strides, *sizes, &strides)) x = contiguous(x);
  return {gradwire::call(view, {x}, {IntList(sizes->begin(), sizes->end())})};
}

Tensors compose_flatten(const Call& call) {
  const Tensor& x = call.in(0);
  auto start = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!start.ok()) return {poisoned(start.status())};
  auto end = dim_of(call, call.attr(1).as_int(), x->rank());
  if (!end.ok()) return {poisoned(end.status())};
  if (*start > *end) {
    return {
        poisoned(runtime_error("flatten() has invalid args: start_dim cannot come after "
                               "end_dim"))};
  }
  if (x->sizes.empty()) return {reshape(x, Dims{1})};
  if (*start == *end) return {x};
  Dims sizes;
  int64_t joined = 1;
  for (int i = 0; i < x->rank(); ++i) {
    if (i < *start || i > *end) {
      sizes.push_back(x->sizes[i]);
    } else {
      joined *= x->sizes[i];
      if (i == *end) sizes.push_back(joined);
    }
  }
  return {reshape(x, sizes)};
}

// zeros of `base_sizes`, row-major, with the input in the place that (sizes, strides, offset) name.
Tensors compose_view_scatter(const Call& call) {
  static const OpRef as_strided("as_strided"), copy("copy_");
  Tensor block = zeros(call.attr(0).as_ints(), call.in(0)->dtype);
  Tensor hole;
  {
    GradMode off(false);
    hole = gradwire::call(as_strided, {block}, {call.attr(1), call.attr(2), call.attr(3)});
    Tensor written = call_in_place(copy, {hole, detached(call.in(0))});
    if (written->poison) return {written};
  }
  if (Slot::current().grad_enabled && call.in(0)->requires_grad()) {
    class ScatterNode : public Node {
     public:
      AttributeList attributes;
      std::string name() const override { return "ViewScatterBackward0"; }
      Tensors apply(Tensors grads) override {
        if (!grads[0]) return {nullptr};
        static const OpRef as_strided_op("as_strided");
        return {gradwire::call(as_strided_op, {contiguous(grads[0])},
                               {attributes[1], attributes[2], attributes[3]})};
      }
    };
    auto* node = new ScatterNode();
    Ref<Node> ref(node);
    node->attributes = call.attributes;
    node->site = Slot::current().site;
    node->edges.push_back(gradient_edge(call.in(0)));
    set_history(block, ref, 0);
  }
  return {block};
}

}  // namespace

void add_view_rows(Catalog& c) {
  auto view = [&](uint16_t number, std::string_view signature, std::string_view doc, ViewFn fn,
                  BackwardFn backward, std::string_view shape_rule) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kView, signature, doc);
    row.view = fn;
    row.backward = backward;
    row.shape_rule = std::string(shape_rule);
    row.type_rule = "same";
    row.method = true;
    return row;
  };
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view shape_rule,
                       std::string_view type_rule) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = fn;
    row.shape_rule = std::string(shape_rule);
    row.type_rule = std::string(type_rule);
    return row;
  };
  view(350, "view(Tensor input, int[] size) -> Tensor",
       "The same elements in other sizes, sharing memory; one size may be -1.", view_view,
       backward_reshape, "view");
  view(351, "transpose(Tensor input, int dim0, int dim1) -> Tensor", "Two dimensions swapped.",
       view_transpose, backward_transpose, "transpose")
      .in_place = true;
  view(352, "permute(Tensor input, int[] dims) -> Tensor", "The dimensions in another order.",
       view_permute, backward_permute, "permute");
  view(353, "expand(Tensor input, int[] size) -> Tensor",
       "Dimensions of size 1 shown larger without copying; -1 keeps a size.", view_expand,
       backward_expand, "expand");
  view(354, "squeeze(Tensor input, int[]? dim=None) -> Tensor",
       "Without the dimensions of size 1 (of those named).", view_squeeze, backward_reshape,
       "squeeze")
      .in_place = true;
  view(355, "unsqueeze(Tensor input, int dim) -> Tensor", "With a new dimension of size 1.",
       view_unsqueeze, backward_reshape, "unsqueeze")
      .in_place = true;
  view(356, "select(Tensor input, int dim, int index) -> Tensor", "One index of a dimension.",
       view_select, backward_part, "select");
  view(357, "slice(Tensor input, int dim, int? start=None, int? end=None, int step=1) -> Tensor",
       "input[start:end:step] along dim.", view_slice, backward_part, "slice");
  view(358, "narrow(Tensor input, int dim, int start, int length) -> Tensor",
       "length elements of dim from start.", view_narrow, backward_part, "");
  view(359, "diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor",
       "The diagonal of two dimensions, as the last dimension.", view_diagonal, backward_part, "");
  view(360,
       "as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None) "
       "-> Tensor",
       "Any geometry over the same storage.", view_as_strided, backward_as_strided, "")
      .in_place = true;
  view(361, "split_with_sizes(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]",
       "Consecutive parts of dim.", view_split, backward_part, "");
  view(362, "unbind(Tensor input, int dim=0) -> Tensor[]", "All indices of a dimension.",
       view_unbind, backward_part, "");
  view(363, "unfold(Tensor input, int dimension, int size, int step) -> Tensor",
       "Sliding windows of a dimension, as the last dimension.", view_unfold, backward_part, "");
  composite(370, "reshape(Tensor input, int[] shape) -> Tensor",
            "The same elements in other sizes; a view where one exists, else a copy.",
            compose_reshape, "view", "same")
      .method = true;
  composite(371, "flatten(Tensor input, int start_dim=0, int end_dim=-1) -> Tensor",
            "Dimensions start_dim to end_dim as one.", compose_flatten, "flatten", "same")
      .method = true;
  composite(372,
            "view_scatter(Tensor input, int[] base_sizes, int[] size, int[] stride, "
            "int offset) -> Tensor",
            "Zeros of base_sizes with input in the place of a view.", compose_view_scatter, "",
            "same");
  c.keep_internal({"view_scatter"});
}

}  // namespace gradwire
