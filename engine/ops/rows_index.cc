// Rows 520 to 523 and 532 to 539: reading and writing by index tensors and masks.
#include <algorithm>

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
    if (t->dtype != DType::kInt64 && t->dtype != DType::kInt32) {
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
    // One mask and one value: filling, which converts.
    int masks = 0, others = 0;
    for (size_t i = 2; i < call.inputs.size(); ++i) {
      const Tensor& t = call.inputs[i];
      if (t) ++(t->dtype == DType::kBool || t->dtype == DType::kUInt8 ? masks : others);
    }
    if (masks != 1 || others != 0 || values->numel() != 1) {
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

// --- masks -------------------------------------------------------------------------------------

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

// Element i of the mask's true ones comes from source[i]: gradients go back by counting them.
void backward_masked_scatter(Backward& b) {
  static const OpRef fill("masked_fill"), cumsum("cumsum"), where("where"), put("index_put_at"),
      narrow("narrow");
  Tensor g = b.grad(), mask = b.input(1);
  if (g->poison || mask->poison) {
    for (int i : {0, 2}) b.set(i, g->poison ? g : mask);
    return;
  }
  if (b.needs(0)) b.set(0, call(fill, {g, mask, nullptr}, {0}));
  if (!b.needs(2)) return;
  const Dims& sizes = b.input_spec(2).sizes;
  int64_t count = numel_of(sizes);
  Dims flat{g->numel()};
  mask = reshape(expand(mask, g->sizes), flat);
  // What the mask leaves out is added up in one more place behind the others.
  Tensor nth = sub(call(cumsum, {cast(mask, DType::kInt64)}, {0}), full({}, 1, DType::kInt64));
  Tensor place = call(where, {mask, nth, full({}, static_cast<double>(count), DType::kInt64)});
  Call add;
  add.op = put.get();
  add.inputs = {zeros(Dims{count + 1}, g->dtype), reshape(g, flat), place};
  add.list_sizes.push_back(1);
  add.attributes = {IntList{0}, int64_t{0}, true};
  Tensor total = invoke(std::move(add))[0];
  b.set(2, total->poison ? total : reshape(call(narrow, {total}, {0, 0, count}), sizes));
}

// Out of place, input and mask are broadcast together.
Tensors compose_masked_scatter(const Call& call) {
  static const OpRef at("masked_scatter_at");
  Call inner;
  inner.op = at.get();
  inner.form = call.form;
  inner.inputs = call.inputs;
  if (call.form != Form::kInPlace) {
    auto sizes = broadcast_shapes(call.in(0)->sizes, call.in(1)->sizes);
    if (!sizes.ok()) return {poisoned(sizes.status())};
    if (*sizes != call.in(0)->sizes) inner.inputs[0] = contiguous(expand(call.in(0), *sizes));
  }
  return invoke(std::move(inner));
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
  return infer_like_first(call, out);
}

Tensors compose_nonzero(const Call& call) {
  return {nonzero_of(call.in(0), call.values.at(0))};
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
  auto writes = [](OpDef& r) -> OpDef& {
    r.writes_first = r.in_place = true;
    r.shape_rule = "same";
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
                        "input with values written along dims.", infer_like_first, nullptr,
                        backward_index_put_at, ~3u);
  put_at.kernel = "index_put";
  put_at.writes_first = put_at.in_place = true;
  put_at.method = false;
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
  nonzero.out = true;
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
  masked_select.method = masked_select.out = true;
  auto& masked_scatter =
      writes(composite(536, "masked_scatter(Tensor input, Tensor mask, Tensor source) -> Tensor",
                       "input with the elements where mask is true taken from source, in order.",
                       compose_masked_scatter));
  masked_scatter.method = true;
  masked_scatter.shape_rule = "";
  auto& masked_at = writes(kernel(
      537, "masked_scatter_at(Tensor input, Tensor mask, Tensor source) -> Tensor",
      "masked_scatter with a mask that broadcasts to input.", infer_masked_scatter,
      [](const Call& call, Task* task) {
        task->inputs[1] = operand_of(expand(call.in(1), call.in(0)->sizes));
        return absl::OkStatus();
      },
      backward_masked_scatter, save(1)));
  masked_at.kernel = "masked_scatter";
  masked_at.method = false;
  c.keep_internal({"index_at", "index_put_at", "nonzero_of_count", "masked_select_of_count",
                   "masked_scatter_at"});
}

}  // namespace gradwire
