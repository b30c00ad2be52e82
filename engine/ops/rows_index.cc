// Rows 520 to 569: reading and writing by index.
#include <algorithm>
#include <tuple>

#include "engine/core/promotion.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

// --- x[i, j, ...] with tensors -------------------------------------------------------------------

struct Indexing {
  Tensors indices;  // int64, broadcast to one shape
  IntList dims;     // of the input
  int64_t position = 0;
  Dims shape;  // of the indices
};

Tensors measure_index(const Call& call, size_t first) {
  static const OpRef count("count_nonzero");
  Tensors counts;
  for (size_t i = first; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (t && (t->dtype == DType::kBool || t->dtype == DType::kUInt8)) {
      counts.push_back(gradwire::call(count, {t}));
    }
  }
  return counts;
}

Tensor nonzero_of(const Tensor& mask, int64_t count) {
  static const OpRef op("nonzero_of_count");
  return call(op, {mask}, {count});
}

absl::StatusOr<Indexing> plan_index(const Call& call, const Tensor& x, size_t first) {
  Indexing plan;
  Tensors found;
  size_t next_value = 0;
  int64_t dim = 0;
  for (size_t i = first; i < call.inputs.size(); ++i) {
    const Tensor& t = call.inputs[i];
    if (!t) {
      ++dim;
      continue;
    }
    if (t->dtype == DType::kBool || t->dtype == DType::kUInt8) {
      for (int k = 0; k < t->rank(); ++k) {
        if (dim + k >= x->rank() || x->sizes[dim + k] != t->sizes[k]) {
          return index_error("The shape of the mask ", shape_text(t->sizes), " at index ", k,
                             " does not match the shape of the indexed tensor ",
                             shape_text(x->sizes), " at index ", dim + k);
        }
      }
      if (next_value >= call.values.size()) {
        return runtime_error("[index] a bool mask can only be used in a command of its own");
      }
      Tensor places = nonzero_of(t, call.values[next_value++]);
      static const OpRef select("select");
      for (int k = 0; k < t->rank(); ++k) {
        found.push_back(gradwire::call(select, {places}, {1, k}));
        plan.dims.push_back(dim + k);
      }
      dim += t->rank();
      continue;
    }
    if (!is_integral(t->dtype)) {
      return index_error("tensors used as indices must be long, int, byte or bool tensors, got ",
                         t->text());
    }
    found.push_back(cast(t, DType::kInt64));
    plan.dims.push_back(dim++);
  }
  if (dim > x->rank()) {
    return index_error("too many indices for tensor of dimension ", x->rank());
  }
  for (const Tensor& t : found) {
    if (t->poison) return make_error(t->poison->kind, t->poison->message);
    auto merged = broadcast_shapes(plan.shape, t->sizes);
    if (!merged.ok()) {
      return index_error(
          "shape mismatch: indexing tensors could not be broadcast together with "
          "shapes ",
          shape_text(plan.shape), ", ", shape_text(t->sizes));
    }
    plan.shape = *merged;
  }
  for (const Tensor& t : found) plan.indices.push_back(expand(t, plan.shape));
  bool adjacent = true;
  for (size_t i = 1; i < plan.dims.size(); ++i) {
    adjacent = adjacent && plan.dims[i] == plan.dims[i - 1] + 1;
  }
  plan.position = adjacent && !plan.dims.empty() ? plan.dims[0] : 0;
  return plan;
}

Dims indexed_sizes(const Dims& sizes, const IntList& dims, int64_t position, const Dims& shape) {
  Dims out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) == dims.end()) {
      out.push_back(sizes[i]);
    }
  }
  out.insert(out.begin() + position, shape.begin(), shape.end());
  return out;
}

Tensors compose_index(const Call& call) {
  const Tensor& x = call.in(0);
  auto plan = plan_index(call, x, 1);
  if (!plan.ok()) return {poisoned(plan.status())};
  if (plan->indices.empty()) return {x};
  static const OpRef at("index_at");
  Tensors inputs{x};
  for (Tensor& t : plan->indices) inputs.push_back(t);
  return call_list(at, std::move(inputs), {plan->dims, plan->position});
}

absl::Status infer_index_at(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  out->push_back(
      {x->dtype,
       indexed_sizes(x->sizes, call.attr(0).as_ints(), call.attr(1).as_int(), call.in(1)->sizes),
       {}});
  auto numel = checked_numel(out->back().sizes);
  return numel.ok() ? absl::OkStatus() : numel.status();
}

void backward_index_at(Backward& b) {
  static const OpRef put("index_put_at");
  const TensorSpec& whole = b.input_spec(0);
  Tensors inputs{zeros(whole.sizes, whole.dtype), b.grad()};
  for (int i = 1; i < b.inputs(); ++i) inputs.push_back(b.input(i));
  b.set(0, call_list(put, std::move(inputs), {b.attr(0), b.attr(1), true})[0]);
}

// In place: writes values (broadcast to the indexed shape) or adds them up.
Tensors compose_index_put(const Call& call) {
  const Tensor& self = call.in(0);
  Tensor values = call.in(1);
  bool in_place = call.form == Form::kInPlace || call.op->name.back() == '_';
  auto plan = plan_index(call, self, 2);
  if (!plan.ok()) return {poisoned(plan.status())};
  if (values->dtype != self->dtype) {
    if (!values->sizes.empty()) {
      return {
          poisoned(runtime_error("Index put requires the source and destination dtypes match, "
                                 "got ",
                                 std::string(dtype_name(self->dtype)), " for the destination and ",
                                 std::string(dtype_name(values->dtype)), " for the source."))};
    }
    values = cast(values, self->dtype);
  }
  Dims sizes = indexed_sizes(self->sizes, plan->dims, plan->position, plan->shape);
  auto merged = broadcast_shapes(sizes, values->sizes);
  if (!merged.ok() || *merged != sizes) {
    return {poisoned(
        runtime_error("shape mismatch: value tensor of shape ", shape_text(values->sizes),
                      " cannot be broadcast to indexing result of shape ", shape_text(sizes)))};
  }
  static const OpRef put("index_put_at"), copy("copy_");
  Call inner;
  inner.op = put.get();
  inner.form = in_place ? Form::kInPlace : Form::kPlain;
  inner.inputs = {self, expand(values, sizes)};
  if (plan->indices.empty()) {
    Tensor target = in_place ? self : clone(self);
    return {call_in_place(copy, {target, values})};
  }
  for (Tensor& t : plan->indices) inner.inputs.push_back(t);
  inner.list_sizes.push_back(static_cast<int>(plan->indices.size()));
  inner.attributes = {plan->dims, plan->position, call.attr(0).as_bool()};
  return invoke(std::move(inner));
}

void backward_index_put_at(Backward& b) {
  static const OpRef at("index_at"), put("index_put_at");
  Tensor g = b.grad();
  Tensors indices;
  for (int i = 2; i < b.inputs(); ++i) indices.push_back(b.input(i));
  if (b.needs(0)) {
    if (b.attr(2).as_bool()) {
      b.set(0, g);
    } else {
      Tensors inputs{g, expand(zeros({}, g->dtype), b.input_spec(1).sizes)};
      for (const Tensor& t : indices) inputs.push_back(t);
      b.set(0, call_list(put, std::move(inputs), {b.attr(0), b.attr(1), false})[0]);
    }
  }
  if (b.needs(1)) {
    Tensors inputs{g};
    for (const Tensor& t : indices) inputs.push_back(t);
    b.set(1, call_list(at, std::move(inputs), {b.attr(0), b.attr(1)})[0]);
  }
}

// --- along one dimension -------------------------------------------------------------------------

absl::Status check_index(const Call& call, int which) {
  const Tensor& index = call.in(which);
  if (index->dtype == DType::kInt64 || index->dtype == DType::kInt32) return absl::OkStatus();
  return runtime_error(call.op->name, "(): Expected dtype int32 or int64 for index, got ",
                       index->text());
}

absl::Status infer_index_select(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  GW_RETURN_IF_ERROR(check_index(call, 1));
  auto dim = wrap_dim(call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (call.in(1)->rank() > 1) {
    return index_error("index_select(): Index is supposed to be a vector, got ",
                       call.in(1)->text());
  }
  Dims sizes = x->sizes;
  if (!sizes.empty()) sizes[*dim] = call.in(1)->numel();
  out->push_back({x->dtype, sizes, {}});
  return absl::OkStatus();
}

absl::Status lower_one_dim(const Call& call, Task* task) {
  auto dim = wrap_dim(call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  task->attributes[0] = Attribute(*dim);
  return absl::OkStatus();
}

void backward_index_select(Backward& b) {
  static const OpRef index_add("index_add");
  const TensorSpec& whole = b.input_spec(0);
  b.set(0,
        call(index_add, {zeros(whole.sizes, whole.dtype), b.input(1), b.grad()}, {b.attr(0), 1}));
}

absl::Status infer_first(const Call& call, TensorSpecs* out) {
  out->push_back({call.in(0)->dtype, call.in(0)->sizes, {}});
  return absl::OkStatus();
}

absl::Status infer_gather(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  if (index->dtype != DType::kInt64) {
    return runtime_error("gather(): Expected dtype int64 for index, got ", index->text());
  }
  auto dim = wrap_dim(call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (x->rank() != index->rank() && x->rank() && index->rank()) {
    return runtime_error(
        "Index tensor must have the same number of dimensions as input tensor, "
        "got ",
        index->text(), " for ", x->text());
  }
  for (int i = 0; i < x->rank() && i < index->rank(); ++i) {
    if (i != *dim && index->sizes[i] > x->sizes[i]) {
      return runtime_error("Size does not match at dimension ", i, " expected index ",
                           shape_text(index->sizes), " to be no larger than self ",
                           shape_text(x->sizes), " apart from dimension ", *dim);
    }
  }
  out->push_back({x->dtype, index->sizes, {}});
  return absl::OkStatus();
}

void backward_gather(Backward& b) {
  static const OpRef scatter_add("scatter_add");
  const TensorSpec& whole = b.input_spec(0);
  b.set(0, call(scatter_add, {zeros(whole.sizes, whole.dtype), b.input(1), b.grad()}, {b.attr(0)}));
}

absl::Status infer_scatter(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  const Tensor& src = call.in(2);
  if (index->dtype != DType::kInt64) {
    return runtime_error("scatter(): Expected dtype int64 for index, got ", index->text());
  }
  if (src->dtype != x->dtype) {
    return runtime_error("scatter(): Expected self.dtype to be equal to src.dtype, got ", x->text(),
                         " and ", src->text());
  }
  auto dim = wrap_dim(call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  int rank = std::max(x->rank(), 1);
  if (index->numel() && (std::max(index->rank(), 1) != rank || std::max(src->rank(), 1) != rank)) {
    return runtime_error(
        "Index tensor must have the same number of dimensions as self tensor and "
        "src tensor, got ",
        x->text(), ", ", index->text(), ", ", src->text());
  }
  for (int i = 0; i < index->rank() && index->numel(); ++i) {
    if ((i != *dim && i < x->rank() && index->sizes[i] > x->sizes[i]) ||
        (i < src->rank() && index->sizes[i] > src->sizes[i])) {
      return runtime_error("Expected index ", shape_text(index->sizes),
                           " to be no larger than self ", shape_text(x->sizes),
                           " apart from dimension ", *dim, " and to be no larger than src ",
                           shape_text(src->sizes));
    }
  }
  return infer_first(call, out);
}

// The part of src that was written, as a gather from the gradient.
Tensor gathered(Backward& b, int64_t dim) {
  static const OpRef gather("gather");
  Tensor g = call(gather, {b.grad(), b.input(1)}, {dim});
  if (g->poison || g->sizes == b.input_spec(2).sizes) return g;
  // src was larger than index: the rest has no influence.
  static const OpRef place("view_scatter");
  const Dims& sizes = b.input_spec(2).sizes;
  Dims strides = contiguous_strides(sizes);
  return call(place, {g},
              {IntList(sizes.begin(), sizes.end()), IntList(g->sizes.begin(), g->sizes.end()),
               IntList(strides.begin(), strides.end()), int64_t{0}});
}

void backward_scatter(Backward& b) {
  static const OpRef scatter("scatter");
  int64_t dim = b.attr(0).as_int();
  if (b.needs(0)) {
    Tensor index = b.input(1);
    b.set(0, index->poison
                 ? index
                 : call(scatter, {b.grad(), index, zeros(index->sizes, b.input_spec(0).dtype)},
                        {dim}));
  }
  if (b.needs(2)) b.set(2, gathered(b, dim));
}

void backward_scatter_add(Backward& b) {
  if (b.needs(0)) b.set(0, b.grad());
  if (b.needs(2)) b.set(2, gathered(b, b.attr(0).as_int()));
}

absl::Status infer_index_add(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_index(call, 1));
  const Tensor& x = call.in(0);
  const Tensor& src = call.in(2);
  auto dim = wrap_dim(call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (src->dtype != x->dtype || src->rank() != x->rank() || call.in(1)->rank() > 1 ||
      (x->rank() && src->sizes[*dim] != call.in(1)->numel())) {
    return runtime_error("index_add(): source ", src->text(), " does not fit self ", x->text(),
                         " and index ", call.in(1)->text());
  }
  for (int i = 0; i < x->rank(); ++i) {
    if (i != *dim && src->sizes[i] != x->sizes[i]) {
      return runtime_error("index_add(): source ", src->text(), " must have the shape of self ",
                           x->text(), " apart from dimension ", *dim);
    }
  }
  return infer_first(call, out);
}

void backward_index_add(Backward& b) {
  static const OpRef select("index_select");
  if (b.needs(0)) b.set(0, b.grad());
  if (b.needs(2)) {
    Tensor g = call(select, {b.grad(), b.input(1)}, {b.attr(0)});
    b.set(2, b.attr(1).as_double() == 1 ? g : mul(g, b.attr(1).as_double()));
  }
}

// --- embedding, masks, moves ---------------------------------------------------------------------

absl::Status infer_embedding(const Call& call, TensorSpecs* out) {
  const Tensor& weight = call.in(0);
  const Tensor& index = call.in(1);
  if (weight->rank() != 2) return runtime_error("'weight' must be 2-D, got ", weight->text());
  if (index->dtype != DType::kInt64 && index->dtype != DType::kInt32) {
    return runtime_error(
        "Expected tensor for argument #1 'indices' to have one of the following "
        "scalar types: Long, Int; but got ",
        index->text());
  }
  Dims sizes = index->sizes;
  sizes.push_back(weight->sizes[1]);
  out->push_back({weight->dtype, sizes, {}});
  return absl::OkStatus();
}

int64_t padding_row(const Attribute& a, int64_t rows) {
  if (a.none()) return -1;
  int64_t row = a.as_int();
  return row < 0 ? row + rows : row;
}

void backward_embedding(Backward& b) {
  static const OpRef op("embedding_gradient");
  const Dims& sizes = b.input_spec(0).sizes;
  b.set(0, call(op, {b.grad(), b.input(1)},
                {sizes[0], padding_row(b.attr(0), sizes[0]), b.attr(1).as_bool()}));
}

Tensors measure_mask(const Call& call) {
  static const OpRef count("count_nonzero");
  const Tensor& mask = call.inputs.back();
  if (call.op->name == "masked_select") {
    auto sizes = broadcast_shapes(call.in(0)->sizes, mask->sizes);
    if (!sizes.ok()) return {};
    return {gradwire::call(count, {expand(mask, *sizes)})};
  }
  return {gradwire::call(count, {mask})};
}

absl::Status infer_flat(const Call& call, TensorSpecs* out) {
  out->push_back({call.in(0)->dtype, {call.attr(0).as_int()}, {}});
  return absl::OkStatus();
}

Tensors compose_masked_select(const Call& call) {
  static const OpRef op("masked_select_of_count");
  const Tensor& mask = call.in(1);
  if (mask->dtype != DType::kBool) {
    return {
        poisoned(runtime_error("masked_select: expected BoolTensor for mask, got ", mask->text()))};
  }
  auto sizes = broadcast_shapes(call.in(0)->sizes, mask->sizes);
  if (!sizes.ok()) return {poisoned(sizes.status())};
  return {
      gradwire::call(op, {expand(call.in(0), *sizes), expand(mask, *sizes)}, {call.values.at(0)})};
}

void backward_masked_select(Backward& b) {
  static const OpRef scatter("masked_scatter");
  const TensorSpec& whole = b.input_spec(0);
  b.set(0, call(scatter, {zeros(whole.sizes, whole.dtype), b.input(1), b.grad()}));
}

absl::Status infer_masked_scatter(const Call& call, TensorSpecs* out) {
  const Tensor& self = call.in(0);
  const Tensor& mask = call.in(1);
  if (mask->dtype != DType::kBool) {
    return runtime_error("masked_scatter_: expected BoolTensor for mask, got ", mask->text());
  }
  if (self->dtype != call.in(2)->dtype) {
    return runtime_error("masked_scatter_: expected self and source to have same dtypes but got ",
                         self->text(), " and ", call.in(2)->text());
  }
  auto sizes = broadcast_shapes(self->sizes, mask->sizes);
  if (!sizes.ok()) return sizes.status();
  if (*sizes != self->sizes) {
    return runtime_error("masked_scatter_: mask ", mask->text(), " is larger than ", self->text());
  }
  return infer_first(call, out);
}

Tensors compose_nonzero(const Call& call) {
  return {nonzero_of(call.in(0), call.values.at(0))};
}

void backward_flip(Backward& b) {
  static const OpRef flip("flip");
  b.set(0, call(flip, {b.grad()}, {b.attr(0)}));
}

absl::Status lower_dims(const Call& call, Task* task) {
  IntList dims;
  for (int64_t d : call.attr(0).as_ints()) {
    auto dim = wrap_dim(d, call.in(0)->rank());
    if (!dim.ok()) return dim.status();
    if (std::find(dims.begin(), dims.end(), *dim) != dims.end()) {
      return runtime_error("dim ", *dim, " appears multiple times in the list of dims");
    }
    if (call.in(0)->rank() > 0) dims.push_back(*dim);
  }
  task->attributes = {dims};
  return absl::OkStatus();
}

absl::Status check_matrix(const Call& call, TensorSpecs* out) {
  if (call.in(0)->rank() < 2) {
    return runtime_error(call.op->name, "(): input tensor must have at least 2 dimensions");
  }
  return infer_first(call, out);
}

}  // namespace

void add_index_rows(Catalog& c) {
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, LowerFn lower, BackwardFn backward, uint32_t saves) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.lower = lower;
    r.backward = backward;
    r.saves_inputs = saves;
    r.checks = true;
    r.type_rule = "same";
    r.method = true;
    return r;
  };
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = "same";
    return r;
  };
  composite(520, "index(Tensor input, Tensor?[] indices) -> Tensor",
            "input[indices]: index tensors, masks, and None for a whole dimension.", compose_index)
      .measure = [](const Call& call) { return measure_index(call, 1); };
  auto& put = composite(521,
                        "index_put_(Tensor input, Tensor values, Tensor?[] indices, *, "
                        "bool accumulate=False) -> Tensor",
                        "input[indices] = values, or += with accumulate.", compose_index_put);
  put.in_place = true;
  put.measure = [](const Call& call) { return measure_index(call, 2); };
  auto& at = kernel(522,
                    "index_at(Tensor input, Tensor[] indices, int[] dims, int position) "
                    "-> Tensor",
                    "input indexed along dims by tensors of one shape.", infer_index_at, nullptr,
                    backward_index_at, ~1u);
  at.kernel = "index";
  at.method = false;
  auto& put_at = kernel(523,
                        "index_put_at(Tensor input, Tensor values, Tensor[] indices, "
                        "int[] dims, int position, bool accumulate=False) -> Tensor",
                        "input with values written along dims.", infer_first, nullptr,
                        backward_index_put_at, ~3u);
  put_at.kernel = "index_put";
  put_at.writes_first = put_at.in_place = true;
  put_at.method = false;
  kernel(524, "index_select(Tensor input, int dim, Tensor index) -> Tensor",
         "The entries of dim that index names.", infer_index_select, lower_one_dim,
         backward_index_select, save(1))
      .shape_rule = "index_select";
  kernel(525, "gather(Tensor input, int dim, Tensor index) -> Tensor",
         "out[i][j] = input[index[i][j]][j] for dim 0, and so on.", infer_gather, lower_one_dim,
         backward_gather, save(1))
      .shape_rule = "gather";
  auto writes = [](OpDef& r) -> OpDef& {
    r.writes_first = r.in_place = true;
    r.shape_rule = "same";
    return r;
  };
  writes(kernel(526, "scatter(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
                "input with src written where index says along dim.", infer_scatter, lower_one_dim,
                backward_scatter, save(1)));
  writes(kernel(527, "scatter_add(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
                "input with src added where index says along dim.", infer_scatter, lower_one_dim,
                backward_scatter_add, save(1)));
  auto& add_row = writes(kernel(528,
                                "index_add(Tensor input, int dim, Tensor index, "
                                "Tensor source, *, Scalar alpha=1) -> Tensor",
                                "input with alpha * source added to the entries index names.",
                                infer_index_add, lower_one_dim, backward_index_add, save(1)));
  add_row.lower = [](const Call& call, Task* task) {
    GW_RETURN_IF_ERROR(lower_one_dim(call, task));
    const Attribute& alpha = call.attr(1);
    ScalarValue value;
    value.kind = alpha.is_float() ? ScalarValue::Kind::kFloat : ScalarValue::Kind::kInt;
    value.i = alpha.as_int();
    value.f = alpha.as_double();
    task->scalars.push_back(value);
    task->attributes.resize(1);
    return absl::OkStatus();
  };
  auto& embedding = kernel(
      530,
      "nn.functional.embedding(Tensor weight, Tensor input, *, "
      "int? padding_idx=None, bool scale_grad_by_freq=False) -> Tensor",
      "The rows of weight that input names; padding_idx gets no gradient.", infer_embedding,
      [](const Call&, Task* task) {
        task->attributes.clear();
        return absl::OkStatus();
      },
      backward_embedding, save(1));
  embedding.method = false;
  embedding.shape_rule = "embedding";
  auto& gradient = kernel(
      531,
      "embedding_gradient(Tensor grad, Tensor index, int rows, "
      "int padding_idx, bool scale_grad_by_freq=False) -> Tensor",
      "The gradient of embedding's weight.",
      [](const Call& call, TensorSpecs* out) {
        const Tensor& g = call.in(0);
        out->push_back({g->dtype, {call.attr(0).as_int(), g->sizes.back()}, {}});
        return absl::OkStatus();
      },
      [](const Call& call, Task* task) {
        task->attributes = {call.attr(1), call.attr(2)};
        return absl::OkStatus();
      },
      nullptr, 0);
  gradient.kernel = "embedding_backward";
  gradient.method = false;
  auto& nonzero_row = kernel(
      532, "nonzero_of_count(Tensor input, int count) -> Tensor",
      "Where input is not zero, when the number is known.",
      [](const Call& call, TensorSpecs* out) {
        out->push_back({DType::kInt64, {call.attr(0).as_int(), call.in(0)->rank()}, {}});
        return absl::OkStatus();
      },
      [](const Call&, Task* task) {
        task->attributes.clear();
        return absl::OkStatus();
      },
      nullptr, 0);
  nonzero_row.kernel = "nonzero";
  nonzero_row.method = false;
  auto& nonzero =
      composite(533, "nonzero(Tensor input) -> Tensor",
                "The places of the elements that are not zero, one a row.", compose_nonzero);
  nonzero.measure = measure_mask;
  nonzero.method = true;
  nonzero.type_rule = "int64";
  auto& select_row = kernel(
      534,
      "masked_select_of_count(Tensor input, Tensor mask, int count) "
      "-> Tensor",
      "The elements where mask is true, when their number is known.", infer_flat,
      [](const Call&, Task* task) {
        task->attributes.clear();
        return absl::OkStatus();
      },
      backward_masked_select, save(1));
  select_row.kernel = "masked_select";
  select_row.method = false;
  auto& masked_select =
      composite(535, "masked_select(Tensor input, Tensor mask) -> Tensor",
                "The elements where mask is true, as one vector.", compose_masked_select);
  masked_select.measure = measure_mask;
  masked_select.method = true;
  writes(kernel(
      536, "masked_scatter(Tensor input, Tensor mask, Tensor source) -> Tensor",
      "input with the elements where mask is true taken from source, in order.",
      infer_masked_scatter,
      [](const Call& call, Task* task) {
        task->inputs[1] = operand_of(expand(call.in(1), call.in(0)->sizes));
        return absl::OkStatus();
      },
      nullptr, 0));
  kernel(540, "flip(Tensor input, int[] dims) -> Tensor", "The order of dims reversed.",
         infer_first, lower_dims, backward_flip, 0)
      .shape_rule = "same";
  for (auto [number, name, doc] :
       {std::tuple{uint16_t{541}, "tril", "The part on and below a diagonal; the rest is 0."},
        std::tuple{uint16_t{542}, "triu", "The part on and above a diagonal; the rest is 0."}}) {
    kernel(
        number, std::string(name) + "(Tensor input, int diagonal=0) -> Tensor", doc, check_matrix,
        nullptr,
        [](Backward& b) {
          static const OpRef lower("tril"), upper("triu");
          b.set(0, call(b.node.op->name == "tril" ? lower : upper, {b.grad()}, {b.attr(0)}));
        },
        0)
        .shape_rule = "same";
  }
}

}  // namespace gradwire
