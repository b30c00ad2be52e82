// Rows 524 to 531 and 540 to 569: reading and adding along one dimension, embedding, moves.
#include <algorithm>
#include <tuple>

#include "engine/core/promotion.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

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

absl::Status infer_gather(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  if (index->dtype != DType::kInt64 && index->dtype != DType::kInt32 && index->numel()) {
    return runtime_error("gather(): Expected dtype int32/int64 for index, got ", index->text());
  }
  auto dim = wrap_dim(call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (index->numel() && std::max(x->rank(), 1) != std::max(index->rank(), 1)) {
    return runtime_error(
        "Index tensor must have the same number of dimensions as input tensor, "
        "got ",
        index->text(), " for ", x->text());
  }
  for (int i = 0; index->numel() && i < x->rank() && i < index->rank(); ++i) {
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
  return infer_like_first(call, out);
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

// Linear in the gradient: the rows that came together, apart again.
void backward_embedding_gradient(Backward& b) {
  static const OpRef embedding("nn.functional.embedding"), fill("masked_fill"), eq("eq");
  if (b.attr(2).as_bool()) {
    b.set(0, poisoned(runtime_error("embedding: a gradient scaled by frequency cannot be ",
                                    "differentiated again")));
    return;
  }
  Tensor rows = call(embedding, {b.grad(), b.input(1)});
  if (b.attr(1).as_int() >= 0 && !rows->poison) {
    Tensor padding = with_number(eq, b.input(1), b.attr(1));
    rows = call(fill, {rows, unsqueeze(padding, -1), nullptr}, {0.0});
  }
  b.set(0, rows);
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
  return infer_like_first(call, out);
}

}  // namespace

void add_gather_rows(Catalog& c) {
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
    r.out = number < 530;
    return r;
  };
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
      backward_embedding_gradient, save(1));
  gradient.no_grad_inputs = {1};
  gradient.kernel = "embedding_backward";
  gradient.method = false;
  kernel(540, "flip(Tensor input, int[] dims) -> Tensor", "The order of dims reversed.",
         infer_like_first, lower_dims, backward_flip, 0)
      .shape_rule = "same";
  for (auto [number, name, doc] :
       {std::tuple{uint16_t{541}, "tril", "The part on and below a diagonal; the rest is 0."},
        std::tuple{uint16_t{542}, "triu", "The part on and above a diagonal; the rest is 0."}}) {
    OpDef& row = kernel(
        number, std::string(name) + "(Tensor input, int diagonal=0) -> Tensor", doc, check_matrix,
        nullptr,
        [](Backward& b) {
          static const OpRef lower("tril"), upper("triu");
          b.set(0, call(b.node.op->name == "tril" ? lower : upper, {b.grad()}, {b.attr(0)}));
        },
        0);
    row.shape_rule = "same";
    row.in_place = row.out = true;
  }
  c.keep_internal({"embedding_gradient"});
}

}  // namespace gradwire
