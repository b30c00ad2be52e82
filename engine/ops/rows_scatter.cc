// Rows 526, 527 and 1102 to 1110: writing along one dimension.
#include <algorithm>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

const OpRef kGather("gather"), kSelect("index_select"), kReduce("scatter_reduce");

// --- scatter -------------------------------------------------------------------------------------

absl::Status check_scatter(const Call& call, bool reads_src) {
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  std::string name = call.op->name.substr(0, call.op->name.find("_at"));
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (reads_src && call.in(2)->dtype != x->dtype) {
    return runtime_error(name, "(): Expected self.dtype to be equal to src.dtype, got ", x->text(),
                         " and ", call.in(2)->text());
  }
  if (index->numel() == 0) return absl::OkStatus();
  if (index->dtype != DType::kInt64 && index->dtype != DType::kInt32) {
    return runtime_error(name, "(): Expected dtype int32/int64 for index, got ", index->text());
  }
  int rank = std::max(x->rank(), 1);
  if (std::max(index->rank(), 1) != rank) {
    return runtime_error(
        "Index tensor must have the same number of dimensions as self tensor, got ", index->text(),
        " for ", x->text());
  }
  if (reads_src && std::max(call.in(2)->rank(), 1) != rank) {
    return runtime_error("Index tensor must have the same number of dimensions as src tensor, got ",
                         index->text(), " for ", call.in(2)->text());
  }
  for (int i = 0; i < index->rank(); ++i) {
    bool outside = i != *dim && i < x->rank() && index->sizes[i] > x->sizes[i];
    if (reads_src) {
      const Tensor& src = call.in(2);
      outside = outside || (i < src->rank() && index->sizes[i] > src->sizes[i]);
    }
    if (!outside) continue;
    return runtime_error(
        "Expected index ", shape_text(index->sizes), " to be no larger than self ",
        shape_text(x->sizes), " apart from dimension ", *dim,
        reads_src ? " and to be no larger than src " + shape_text(call.in(2)->sizes) : "");
  }
  return absl::OkStatus();
}

absl::Status infer_scatter(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_scatter(call, true));
  return infer_like_first(call, out);
}

absl::Status infer_scatter_value(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_scatter(call, false));
  return infer_like_first(call, out);
}

absl::Status lower_dim(const Call& call, Task* task) {
  auto dim = dim_of(call, call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  task->attributes[0] = Attribute(*dim);
  return absl::OkStatus();
}

// The part of src that was written, as a gather from the gradient; the rest of a src larger than
// index has no influence.
Tensor gathered(Backward& b, int64_t dim) {
  Tensor g = call(kGather, {b.grad(), b.input(1)}, {dim});
  if (g->poison || g->sizes == b.input_spec(2).sizes) return g;
  static const OpRef place("view_scatter");
  const Dims& sizes = b.input_spec(2).sizes;
  Dims strides = contiguous_strides(sizes);
  return call(place, {g},
              {IntList(sizes.begin(), sizes.end()), IntList(g->sizes.begin(), g->sizes.end()),
               IntList(strides.begin(), strides.end()), int64_t{0}});
}

void backward_scatter_value(Backward& b) {
  static const OpRef value("scatter_at_value");
  b.set(0, call(value, {b.grad(), b.input(1)}, {b.attr(0), int64_t{0}}));
}

void backward_scatter(Backward& b) {
  if (b.needs(0)) backward_scatter_value(b);
  if (b.needs(2)) b.set(2, gathered(b, b.attr(0).as_int()));
}

void backward_scatter_add(Backward& b) {
  if (b.needs(0)) b.set(0, b.grad());
  if (b.needs(2)) b.set(2, gathered(b, b.attr(0).as_int()));
}

// Runs `op` in the form of the call in hand.
Tensors same_form(const Call& outer, const OpRef& op, Tensors inputs, AttributeList attributes) {
  Call inner;
  inner.op = op.get();
  inner.form = outer.form;
  inner.inputs = std::move(inputs);
  inner.attributes = std::move(attributes);
  return invoke(std::move(inner));
}

Tensors compose_scatter(const Call& call) {
  static const OpRef at("scatter_at"), at_value("scatter_at_value");
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  Tensor src = call.in(2);
  if (!call.attr(2).none()) {
    const std::string& reduce = call.attr(2).as_string();
    if (reduce != "add" && reduce != "multiply") {
      return {poisoned(runtime_error("reduce argument must be either add or multiply."))};
    }
    if (!src) {
      static const OpRef full_op("full");
      src = expand(gradwire::call(full_op, {}, {IntList{}, call.attr(1), x->dtype}), index->sizes);
    }
    return same_form(call, kReduce, {x, index, src},
                     {call.attr(0), reduce == "add" ? "sum" : "prod", true});
  }
  if (!src) return same_form(call, at_value, {x, index}, {call.attr(0), call.attr(1)});
  return same_form(call, at, {x, index, src}, {call.attr(0)});
}

// --- scatter_reduce ------------------------------------------------------------------------------

Tensor equal(const Tensor& a, const Tensor& b) {
  static const OpRef op("eq");
  return call(op, {a, b});
}

Tensor equal(const Tensor& a, double value) {
  static const OpRef op("eq");
  return with_number(op, a, value);
}

Tensor filled(const Tensor& x, const Tensor& mask, double value) {
  static const OpRef op("masked_fill");
  return call(op, {x, mask, nullptr}, {value});
}

Tensor added(const Tensor& x, const Tensor& index, const Tensor& src, int64_t dim) {
  static const OpRef op("scatter_add");
  return call(op, {x, index, src}, {dim});
}

// Each element's share of a product's gradient is the product of the others; where exactly one is
// zero, that is computed without it.
void backward_prod(Backward& b, int64_t dim, bool include_self) {
  static const OpRef where("where"), both("logical_and");
  Tensor g = b.grad(), x = b.input(0), index = b.input(1), src = b.input(2), y = b.output(0);
  for (const Tensor& t : {g, x, index, src, y}) {
    if (!t->poison) continue;
    b.set(0, t);
    b.set(2, t);
    return;
  }
  auto product = [&](const Tensor& self, const Tensor& from) {
    return call(kReduce, {self, index, from}, {dim, "prod", include_self});
  };
  if (b.needs(0)) {
    Tensor masked = filled(x, equal(x, 0), 1);
    b.set(0, div(mul(g, product(masked, src)), masked));
  }
  if (b.needs(2)) {
    Tensor zero = equal(src, 0);
    Tensor zeros_here =
        call(kGather, {added(zeros(x->sizes, x->dtype), index, cast(zero, x->dtype), dim), index},
             {dim});
    Tensor single = call(both, {zero, equal(zeros_here, 1)});
    Tensor others = product(x, filled(src, single, 1));
    Tensor alone = call(kGather, {mul(g, others), index}, {dim});
    Tensor shared = div(call(kGather, {mul(g, y), index}, {dim}), filled(src, zero, 1));
    b.set(2, call(where, {single, alone, shared}));
  }
}

void backward_mean(Backward& b, int64_t dim, bool include_self) {
  Tensor g = b.grad(), index = b.input(1);
  if (g->poison || index->poison) return b.set(0, g->poison ? g : index);
  Tensor count = full(b.input_spec(0).sizes, include_self ? 1 : 0, g->dtype);
  count = added(count, index, full(b.input_spec(2).sizes, 1, g->dtype), dim);
  count = filled(count, equal(count, 0), 1);
  if (b.needs(0)) b.set(0, div(g, count));
  if (b.needs(2)) {
    b.set(2, div(call(kGather, {g, index}, {dim}), call(kGather, {count, index}, {dim})));
  }
}

// Shared evenly among all that equal the result.
void backward_extreme(Backward& b, int64_t dim) {
  Tensor g = b.grad(), x = b.input(0), index = b.input(1), src = b.input(2), y = b.output(0);
  for (const Tensor& t : {g, x, index, src, y}) {
    if (!t->poison) continue;
    b.set(0, t);
    b.set(2, t);
    return;
  }
  Tensor value = call(kGather, {y, index}, {dim});
  Tensor of_self = cast(equal(x, y), x->dtype), of_src = cast(equal(src, value), x->dtype);
  Tensor share = div(g, added(of_self, index, of_src, dim));
  if (b.needs(0)) b.set(0, mul(of_self, share));
  if (b.needs(2)) b.set(2, mul(of_src, call(kGather, {share, index}, {dim})));
}

void backward_scatter_reduce(Backward& b) {
  static const OpRef value("scatter_at_value");
  int64_t dim = b.attr(0).as_int();
  const std::string& reduce = b.attr(1).as_string();
  bool include_self = b.attr(2).as_bool();
  if (reduce == "sum") {
    backward_scatter_add(b);
  } else if (reduce == "prod") {
    backward_prod(b, dim, include_self);
  } else if (reduce == "mean") {
    backward_mean(b, dim, include_self);
  } else {
    backward_extreme(b, dim);
  }
  if (!include_self && b.needs(0)) {
    Tensor g = b.result(0);
    if (g) b.set(0, call(value, {g, b.input(1)}, {dim, int64_t{0}}));
  }
}

// src cut to the index's sizes; in place on a copy of what the gradient will want to see.
Tensors compose_scatter_reduce(const Call& call) {
  static const OpRef at("scatter_reduce_at"), narrow("narrow"), copy("copy_");
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  const std::string& reduce = call.attr(1).as_string();
  if (reduce != "sum" && reduce != "prod" && reduce != "mean" && reduce != "amax" &&
      reduce != "amin") {
    return {poisoned(runtime_error(
        "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce))};
  }
  absl::Status status = check_scatter(call, true);
  if (!status.ok()) return {poisoned(status)};
  if (index->numel() == 0 && index->rank() != call.in(2)->rank()) {
    return {call.form == Form::kInPlace ? x : clone(x)};
  }
  Tensor src = call.in(2);
  for (int i = 0; i < index->rank() && i < src->rank(); ++i) {
    if (src->sizes[i] == index->sizes[i]) continue;
    src = gradwire::call(narrow, {src}, {i, 0, index->sizes[i]});
  }
  bool grad = Slot::current().grad_enabled && (x->requires_grad() || src->requires_grad());
  bool reads = reduce == "prod" || reduce == "amax" || reduce == "amin";
  if (call.form != Form::kInPlace || !grad || !reads) {
    return same_form(call, at, {x, index, src}, call.attributes);
  }
  absl::Status allowed = check_in_place(x, call.op->name + "_");
  if (!allowed.ok()) return {poisoned(allowed)};
  Tensor result = gradwire::call(at, {clone(x), index, src}, call.attributes);
  return {result->poison ? result : call_in_place(copy, {x, result})};
}

// --- whole entries of a dimension ----------------------------------------------------------------

std::string dtype_text(const Tensor& t) {
  return std::string(dtype_name(t->dtype));
}

Tensors compose_index_reduce(const Call& call) {
  const Tensor& x = call.in(0);
  const Tensor& source = call.in(2);
  Tensor index = call.in(1);
  const std::string& reduce = call.attr(1).as_string();
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  if (reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin") {
    return {poisoned(runtime_error(
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce,
        "."))};
  }
  if (index->rank() > 1) {
    return {poisoned(index_error("index_reduce_(): Index is supposed to be a vector, but got dim: ",
                                 index->rank(), " with size: ", shape_text(index->sizes)))};
  }
  if (index->dtype != DType::kInt64 && index->dtype != DType::kInt32) {
    return {poisoned(runtime_error(
        "index_reduce_(): Expected dtype int32/int64 for index but got: ", dtype_text(index)))};
  }
  if (x->dtype != source->dtype) {
    return {poisoned(runtime_error("index_reduce_(): self (", dtype_text(x), ") and source (",
                                   dtype_text(source), ") must have the same scalar type"))};
  }
  int64_t along = source->rank() && *dim < source->rank() ? source->sizes[*dim] : 1;
  if (index->numel() != along) {
    return {poisoned(runtime_error("index_reduce_(): Number of indices (", index->numel(),
                                   ") should be equal to source.size(dim): (", along,
                                   "), for dim: ", *dim))};
  }
  bool fits = x->rank() == source->rank();
  for (int i = 0; fits && i < x->rank(); ++i) {
    fits = i == *dim || x->sizes[i] == source->sizes[i];
  }
  if (!fits) {
    return {poisoned(runtime_error(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
        "self.shape = ",
        shape_text(x->sizes), " source.shape = ", shape_text(source->sizes)))};
  }
  Dims sizes(x->rank(), 1);
  if (x->rank()) sizes[*dim] = index->numel();
  index = expand(reshape(index, sizes), source->sizes);
  return same_form(call, kReduce, {x, index, source}, {*dim, reduce, call.attr(2)});
}

absl::Status check_entries(const Call& call) {
  const Tensor& index = call.in(1);
  if (index->dtype != DType::kInt64) {
    return index_error("index_fill_(): Expected dtype int64 for index.");
  }
  if (index->rank() > 1) return runtime_error("Index has to be a vector/scalar");
  return absl::OkStatus();
}

absl::Status infer_index_fill(const Call& call, TensorSpecs* out) {
  GW_RETURN_IF_ERROR(check_entries(call));
  auto dim = dim_of(call, call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  return infer_like_first(call, out);
}

void backward_index_fill(Backward& b) {
  static const OpRef fill("index_fill_value");
  b.set(0, call(fill, {b.grad(), b.input(1)}, {b.attr(0), int64_t{0}}));
}

Tensors compose_index_fill(const Call& call) {
  static const OpRef fill("index_fill_value"), masked("masked_fill");
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  const Tensor& value = call.in(2);
  if (!value) return same_form(call, fill, {x, index}, {call.attr(0), call.attr(1)});
  if (value->rank()) {
    return {poisoned(runtime_error(
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
        value->rank(), " dimension(s)."))};
  }
  absl::Status status = check_entries(call);
  if (!status.ok()) return {poisoned(status)};
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  // An entry named twice is filled once: the value's gradient must see it once.
  Tensor mask = gradwire::call(fill, {zeros(x->sizes, DType::kBool), index}, {*dim, true});
  return same_form(call, masked, {x, mask, cast(value, x->dtype)}, {Attribute()});
}

absl::Status infer_index_copy(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  const Tensor& source = call.in(2);
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (index->rank() > 1) {
    return index_error("index_copy_(): Index should have dimension 1 or 0 (got ", index->rank(),
                       ")");
  }
  if (index->dtype != DType::kInt64) {
    return runtime_error("index_copy_(): Expected a long tensor for index, but got ",
                         dtype_text(index));
  }
  if (x->dtype != source->dtype) {
    return runtime_error(
        "index_copy_(): self and source expected to have the same dtype, but got (self) ",
        dtype_text(x), " and (source) ", dtype_text(source));
  }
  if (source->rank() && x->rank() && source->rank() != x->rank()) {
    return index_error(
        "index_copy_(): When source and destination are not scalars, their dimensionality must "
        "match. Source dimensionality (",
        source->rank(), "), destination dimensionality (", x->rank(), ")");
  }
  int64_t along = source->rank() ? source->rank() > *dim ? source->sizes[*dim] : 0 : 1;
  if (index->numel() != along) {
    return index_error("index_copy_(): Number of indices (", index->numel(),
                       ") should be equal to source.size(dim) (", along, ")");
  }
  bool fits = x->rank() == source->rank() || std::max(x->rank(), source->rank()) == 1;
  for (int i = 0; fits && i < x->rank() && i < source->rank(); ++i) {
    fits = i == *dim || x->sizes[i] == source->sizes[i];
  }
  if (!fits) {
    return runtime_error(
        "index_copy_(): Source/destination tensor must have same slice shapes. "
        "Destination ",
        x->text(), ", source ", source->text(), ", dimension ", *dim, ".");
  }
  return infer_like_first(call, out);
}

absl::Status lower_index_copy(const Call& call, Task* task) {
  GW_RETURN_IF_ERROR(lower_dim(call, task));
  const Tensor& source = call.in(2);
  if (source->rank() == call.in(0)->rank()) return absl::OkStatus();
  // A scalar for a vector, or one element for a scalar.
  GradMode off(false);
  Tensor shaped = reshape(source, Dims(call.in(0)->rank(), 1));
  if (shaped->poison) return runtime_error("index_copy_(): source ", source->text());
  task->inputs[2] = operand_of(shaped);
  return absl::OkStatus();
}

void backward_index_copy(Backward& b) {
  static const OpRef fill("index_fill_value");
  if (b.needs(0)) b.set(0, call(fill, {b.grad(), b.input(1)}, {b.attr(0), int64_t{0}}));
  if (b.needs(2)) {
    Tensor g = call(kSelect, {b.grad(), b.input(1)}, {b.attr(0)});
    b.set(2, g->poison ? g : reshape(g, b.input_spec(2).sizes));
  }
}

// --- through one long dimension ------------------------------------------------------------------

Tensors compose_put(const Call& call) {
  static const OpRef put("index_put_at");
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  const Tensor& source = call.in(2);
  if (index->dtype != DType::kInt64) {
    return {poisoned(
        runtime_error("put_(): Expected a long tensor for index, but got ", dtype_text(index)))};
  }
  if (x->dtype != source->dtype) {
    return {
        poisoned(runtime_error("put_(): self and source expected to have the same dtype, but got "
                               "self.dtype = ",
                               dtype_text(x), " and source.dtype = ", dtype_text(source)))};
  }
  if (index->numel() != source->numel()) {
    return {poisoned(index_error(
        "put_(): Expected source and index to have the same number of elements, but got "
        "source.numel() = ",
        source->numel(), ", index.numel() = ", index->numel()))};
  }
  Call inner;
  inner.op = put.get();
  inner.inputs = {reshape(x, Dims{x->numel()}), reshape(source, Dims{source->numel()}),
                  reshape(index, Dims{index->numel()})};
  inner.list_sizes.push_back(1);
  inner.attributes = {IntList{0}, int64_t{0}, call.attr(0)};
  Tensor flat = invoke(std::move(inner))[0];
  return {flat->poison ? flat : reshape(flat, x->sizes)};
}

}  // namespace

void add_scatter_rows(Catalog& c) {
  // Rows that write their first input: in place at once, else on a copy.
  auto writes = [&](uint16_t number, OpKind kind, std::string_view signature,
                    std::string_view doc) -> OpDef& {
    OpDef& r = c.add(number, kind, signature, doc);
    r.writes_first = r.in_place = r.out = r.method = true;
    r.shape_rule = r.type_rule = "same";
    return r;
  };
  auto kernel = [&](uint16_t number, std::string_view signature, std::string_view doc,
                    InferFn infer, BackwardFn backward) -> OpDef& {
    OpDef& r = writes(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.lower = lower_dim;
    r.backward = backward;
    r.saves_inputs = save(1);
    r.checks = true;
    return r;
  };
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn) -> OpDef& {
    OpDef& r = writes(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    return r;
  };
  composite(526,
            "scatter(Tensor input, int dim, Tensor index, Operand src, *, str? reduce=None) "
            "-> Tensor",
            "input with src, a tensor or a number, written where index says along dim; reduce "
            "'add' or 'multiply' combines instead.",
            compose_scatter);
  kernel(527, "scatter_add(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
         "input with src added where index says along dim.", infer_scatter, backward_scatter_add);
  kernel(1102, "scatter_at(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
         "scatter of a tensor.", infer_scatter, backward_scatter)
      .kernel = "scatter";
  kernel(1103, "scatter_at_value(Tensor input, int dim, Tensor index, Scalar value) -> Tensor",
         "scatter of a number.", infer_scatter_value, backward_scatter_value)
      .kernel = "scatter_value";
  composite(1104,
            "scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, "
            "bool include_self=True) -> Tensor",
            "input combined with src where index says along dim; reduce is 'sum', 'prod', "
            "'mean', 'amax' or 'amin'; without include_self the old values do not count.",
            compose_scatter_reduce);
  auto& reduce = kernel(1105,
                        "scatter_reduce_at(Tensor input, int dim, Tensor index, Tensor src, "
                        "str reduce, bool include_self) -> Tensor",
                        "scatter_reduce with src of the index's sizes.", infer_scatter,
                        backward_scatter_reduce);
  reduce.kernel = "scatter_reduce";
  reduce.saves_inputs = save(0) | save(1) | save(2);
  reduce.saves_outputs = save(0);
  composite(1106,
            "index_reduce(Tensor input, int dim, Tensor index, Tensor source, str reduce, *, "
            "bool include_self=True) -> Tensor",
            "input with the entries of dim that index names combined with source's; reduce is "
            "'prod', 'mean', 'amax' or 'amin'.",
            compose_index_reduce);
  composite(1107, "index_fill(Tensor input, int dim, Tensor index, Operand value) -> Tensor",
            "input with value in the entries of dim that index names.", compose_index_fill)
      .out = false;
  kernel(1108, "index_fill_value(Tensor input, int dim, Tensor index, Scalar value) -> Tensor",
         "index_fill of a number.", infer_index_fill, backward_index_fill)
      .kernel = "index_fill";
  kernel(1109, "index_copy(Tensor input, int dim, Tensor index, Tensor source) -> Tensor",
         "input with source's entries of dim written to those index names.", infer_index_copy,
         backward_index_copy)
      .lower = lower_index_copy;
  auto& put = composite(
      1110, "put(Tensor input, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
      "input, seen as one vector, with source written (or added) at the places index.",
      compose_put);
  put.writes_first = put.out = false;
  c.keep_internal({"scatter_at", "scatter_at_value", "scatter_reduce_at", "index_fill_value"});
}

}  // namespace gradwire
