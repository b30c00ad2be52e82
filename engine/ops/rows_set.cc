// Rows 544 to 569: histograms; 573 to 589: search, sets and further orders.
#include <algorithm>
#include <cmath>

#include "engine/core/promotion.h"
#include "engine/ops/call.h"

namespace gradwire {
namespace {

Tensors failed(const absl::Status& status, int n = 1) {
  return Tensors(n, poisoned(status));
}

// --- search ------------------------------------------------------------------------------------

absl::Status infer_search(const Call& call, TensorSpecs* out) {
  const Tensor& sequence = call.in(0);
  const Tensor& values = call.in(1);
  if (sequence->rank() == 0) {
    return runtime_error("boundaries tensor should have positive dimension");
  }
  bool fits = sequence->rank() == 1 || sequence->rank() == values->rank();
  for (int i = 0; fits && sequence->rank() > 1 && i + 1 < sequence->rank(); ++i) {
    fits = sequence->sizes[i] == values->sizes[i];
  }
  if (!fits) {
    return runtime_error(
        "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor ",
        "and input value tensor must match, but we got boundaries tensor ",
        shape_text(sequence->sizes), " and input value tensor ", shape_text(values->sizes));
  }
  out->push_back({call.attr(1).as_bool() ? DType::kInt32 : DType::kInt64, values->sizes, {}});
  return absl::OkStatus();
}

// Compares in the common dtype of the two.
Tensor search(const Tensor& sequence, const Tensor& values, bool right, bool int32 = false) {
  static const OpRef op("searchsorted_at");
  if (sequence->poison || values->poison) return sequence->poison ? sequence : values;
  DType dtype = promote(sequence->dtype, values->dtype);
  return call(op, {cast(sequence, dtype), cast(values, dtype)}, {right, int32});
}

// A number becomes a 0-dim tensor of the sequence's dtype.
Tensor values_of(const Call& call, int input, int slot, DType dtype) {
  if (call.in(input)) return call.in(input);
  return full(Dims{}, call.attr(slot).as_double(), dtype);
}

Tensors compose_searchsorted(const Call& call) {
  static const OpRef gather("gather");
  Tensor sequence = call.in(0);
  const Tensor& sorter = call.in(2);
  Tensor values = values_of(call, 1, 0, sequence->dtype);
  bool int32 = call.attr(1).as_bool(), right = call.attr(2).as_bool();
  if (!call.attr(3).none()) {
    const std::string& side = call.attr(3).as_string();
    if (side != "left" && side != "right") {
      return failed(runtime_error("[searchsorted] torch.searchsorted(): side can only be 'left' ",
                                  "or 'right' but got ", side));
    }
    if (right && side == "left") {
      return failed(runtime_error("[searchsorted] torch.searchsorted(): side and right can't be ",
                                  "set to opposites, got side of left while right was True"));
    }
    right = side == "right";
  }
  if (sorter) {
    if (sorter->sizes != sequence->sizes || sorter->dtype != DType::kInt64) {
      return failed(runtime_error("[searchsorted] torch.searchsorted(): boundary and sorter must ",
                                  "have the same size and sorter must be int64, got ",
                                  sequence->text(), " and ", sorter->text()));
    }
    sequence = gradwire::call(gather, {sequence, sorter}, {-1});
  }
  return {search(sequence, values, right, int32)};
}

Tensors compose_bucketize(const Call& call) {
  const Tensor& boundaries = call.in(1);
  if (boundaries->rank() != 1) {
    return failed(runtime_error("[bucketize] boundaries tensor must be 1 dimension, but got dim(",
                                boundaries->rank(), ")"));
  }
  Tensor values = values_of(call, 0, 0, boundaries->dtype);
  return {search(boundaries, values, call.attr(2).as_bool(), call.attr(1).as_bool())};
}

DType common_type(const Call& call) {
  PromotionState state;
  for (int i : {0, 1}) {
    const Attribute& a = call.attr(i);
    if (const Tensor& t = call.in(i)) {
      state.add_tensor(t->dtype, t->sizes.empty());
    } else if (a.is_float()) {
      state.add_scalar_float(Slot::current().default_float);
    } else if (a.is_int()) {
      state.add_scalar_int();
    } else {
      state.add_scalar_bool();
    }
  }
  return state.result();
}

Tensors compose_isin(const Call& call) {
  static const OpRef sort("sort"), eq("eq"), gather("gather"), clamp_max("clamp_max");
  static const OpRef logical_not("logical_not");
  if (!call.in(0) && !call.in(1)) {
    return failed(type_error("[isin] argument 'elements' must be Tensor, not a number"));
  }
  DType dtype = common_type(call);
  Tensor elements = cast(values_of(call, 0, 0, dtype), dtype);
  Tensor test = cast(values_of(call, 1, 1, dtype), dtype);
  if (elements->poison || test->poison) return {elements->poison ? elements : test};
  bool invert = call.attr(3).as_bool();
  int64_t n = test->numel();
  if (n == 0 || elements->numel() == 0) {
    return {full(elements->sizes, invert ? 1 : 0, DType::kBool)};
  }
  Tensor sorted = call_many(sort, {reshape(test, Dims{n})}, {0, false, false})[0];
  Tensor flat = reshape(elements, Dims{elements->numel()});
  Tensor place = gradwire::call(clamp_max, {search(sorted, flat, false), nullptr}, {n - 1});
  Tensor found = gradwire::call(eq, {gradwire::call(gather, {sorted, place}, {0}), flat}, {{}});
  if (invert) found = gradwire::call(logical_not, {found});
  return {reshape(found, elements->sizes)};
}

// --- unique ------------------------------------------------------------------------------------

// The elements (or slices along dim, as rows) in their order, where each came from, and which
// differ from the one before.
struct Runs {
  Tensor rows;   // [n] or [n, m]
  Tensor order;  // [n]; null: as they were
  Tensor fresh;  // bool [n]; row 0 is always fresh
  int64_t n = 0;
};

Runs runs_of(const Call& call, int64_t dim) {
  static const OpRef sort("sort"), ne("ne"), any("any"), order_rows("order_rows");
  static const OpRef narrow("narrow"), cat("cat"), index_select("index_select");
  const Tensor& x = call.in(0);
  bool consecutive = call.attr(1).as_bool();
  Runs runs;
  if (dim < 0) {
    runs.n = x->numel();
    runs.rows = reshape(x, Dims{runs.n});
    if (!consecutive) {
      Tensors sorted = call_many(sort, {runs.rows}, {0, false, true});
      runs.rows = sorted[0];
      runs.order = sorted.back();
    }
  } else {
    runs.n = x->sizes[dim];
    runs.rows = reshape(transpose(x, 0, dim), Dims{runs.n, runs.n ? x->numel() / runs.n : 0});
    if (!consecutive) {
      runs.order = gradwire::call(order_rows, {runs.rows});
      runs.rows = gradwire::call(index_select, {runs.rows, runs.order}, {0});
    }
  }
  if (runs.rows->poison || runs.n == 0) return runs;
  Tensor after = gradwire::call(narrow, {runs.rows}, {0, int64_t{1}, runs.n - 1});
  Tensor before = gradwire::call(narrow, {runs.rows}, {0, int64_t{0}, runs.n - 1});
  Tensor differs = gradwire::call(ne, {after, before}, {{}});
  if (dim >= 0) differs = gradwire::call(any, {differs}, {IntList{1}, false});
  runs.fresh = call_list(cat, {full(Dims{1}, 1, DType::kBool), differs}, {0})[0];
  return runs;
}

absl::StatusOr<int64_t> unique_dim(const Call& call) {
  if (call.attr(0).none()) return -1;
  const Tensor& x = call.in(0);
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (x->rank() == 0) return -1;
  if (x->numel() == 0 && x->sizes[*dim] != 0) {
    return runtime_error("There are 0 sized dimensions, and they aren't selected, so unique ",
                         "cannot be applied");
  }
  return *dim;
}

Tensors measure_unique(const Call& call) {
  static const OpRef count("count_nonzero");
  GradMode off(false);
  auto dim = unique_dim(call);
  if (!dim.ok()) return {};
  Runs runs = runs_of(call, *dim);
  if (runs.n == 0 || !runs.fresh) return {};
  return {gradwire::call(count, {runs.fresh})};
}

Tensors compose_unique(const Call& call) {
  static const OpRef nonzero("nonzero_of_count"), index_select("index_select"), cat("cat");
  static const OpRef cumsum("cumsum"), scatter("scatter"), narrow("narrow");
  GradMode off(false);
  const Tensor& x = call.in(0);
  bool inverse = call.attr(2).as_bool(), counts = call.attr(3).as_bool();
  auto dim = unique_dim(call);
  if (!dim.ok()) return failed(dim.status(), 3);
  Runs runs = runs_of(call, *dim);
  if (runs.rows->poison) return Tensors(3, runs.rows);
  Dims shape = *dim < 0 && inverse ? x->sizes : Dims{runs.n};
  if (runs.n == 0) {
    Tensor none = zeros(Dims{0}, DType::kInt64);
    return {*dim < 0 ? reshape(x, Dims{0}) : clone(x), inverse ? zeros(shape, DType::kInt64) : none,
            none};
  }
  if (call.values.empty()) {
    return failed(runtime_error("[unique] can only be used in a command of its own"), 3);
  }
  int64_t found = call.values[0];
  Tensor starts = reshape(gradwire::call(nonzero, {runs.fresh}, {found}), Dims{found});
  Tensor values = gradwire::call(index_select, {runs.rows, starts}, {0});
  if (*dim >= 0) {
    Dims sizes = x->sizes;
    sizes[*dim] = sizes[0];
    sizes[0] = found;
    values = contiguous(transpose(reshape(values, sizes), 0, *dim));
  }
  Tensor none = zeros(Dims{0}, DType::kInt64);
  Tensor back = none, times = none;
  if (inverse) {
    Tensor number =
        sub(gradwire::call(cumsum, {runs.fresh}, {0, {}}), full(Dims{}, 1, DType::kInt64));
    back = number;
    if (runs.order) {
      back = gradwire::call(scatter, {zeros(Dims{runs.n}, DType::kInt64), runs.order, number}, {0});
    }
    back = reshape(back, shape);
  }
  if (counts) {
    Tensor end = full(Dims{1}, static_cast<double>(runs.n), DType::kInt64);
    Tensor all = call_list(cat, {starts, end}, {0})[0];
    times = sub(gradwire::call(narrow, {all}, {0, int64_t{1}, found}), starts);
  }
  return {values, back, times};
}

absl::Status infer_order(const Call& call, TensorSpecs* out) {
  if (call.in(0)->rank() != 2) return runtime_error("expected a matrix, got ", call.in(0)->text());
  out->push_back({DType::kInt64, {call.in(0)->sizes[0]}, {}});
  return absl::OkStatus();
}

// --- order -------------------------------------------------------------------------------------

Dims without(const Tensor& x, int64_t dim, bool keepdim) {
  Dims sizes = x->sizes;
  if (sizes.empty()) return sizes;
  if (keepdim) {
    sizes[dim] = 1;
  } else {
    sizes.erase(sizes.begin() + dim);
  }
  return sizes;
}

// Rows (…, int dim, bool keepdim) -> (values, indices) whose dim is attribute `slot`.
template <int slot>
absl::Status infer_pick(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  auto dim = dim_of(call, call.attr(slot).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  int64_t length = x->rank() ? x->sizes[*dim] : 1;
  if (length == 0) {
    return index_error(call.op->name, "(): Expected reduction dim ", *dim,
                       " to have non-zero size.");
  }
  if (slot == 1) {
    int64_t k = call.attr(0).as_int();
    if (k < 1 || k > length) {
      return runtime_error("kthvalue(): selected number k out of range for dimension ", *dim);
    }
  }
  Dims sizes = without(x, *dim, call.attr(slot + 1).as_bool());
  out->push_back({x->dtype, sizes, {}});
  out->push_back({DType::kInt64, sizes, {}});
  return absl::OkStatus();
}

template <int slot>
absl::Status lower_pick(const Call& call, Task* task) {
  auto dim = dim_of(call, call.attr(slot).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  Dims keep = without(call.in(0), *dim, true);
  for (Operand& out : task->outputs) {
    out.sizes = keep;
    out.strides = contiguous_strides(keep);
  }
  task->attributes.clear();
  if (slot == 1) task->attributes.push_back(call.attr(0));
  task->attributes.emplace_back(*dim);
  return absl::OkStatus();
}

template <int slot>
void backward_pick(Backward& b) {
  static const OpRef scatter("scatter");
  const TensorSpec& x = b.input_spec(0);
  Tensor g = b.grad(0), index = b.output(1);
  auto rank = static_cast<int64_t>(x.sizes.size());
  int64_t dim = rank ? (b.attr(slot).as_int() + rank) % rank : 0;
  if (!b.attr(slot + 1).as_bool() && rank) {
    g = unsqueeze(g, dim);
    index = unsqueeze(index, dim);
  }
  b.set(0, call(scatter, {zeros(x.sizes, x.dtype), index, g}, {dim}));
}

template <int slot>
void add_pick(Catalog& c, uint16_t number, const std::string& name, const char* params,
              const char* kernel, const char* doc) {
  auto& row = c.add(number, OpKind::kKernel,
                    name + "(Tensor input, " + params +
                        ", bool keepdim=False) -> (Tensor values, Tensor indices)",
                    doc);
  row.kernel = kernel;
  row.infer = infer_pick<slot>;
  row.lower = lower_pick<slot>;
  row.backward = backward_pick<slot>;
  row.saves_outputs = save(1);
  row.method = name == kernel;
  row.out = true;
}

// --- histograms --------------------------------------------------------------------------------

Tensors compose_histc(const Call& call) {
  static const OpRef amin("amin"), amax("amax"), where("where"), eq("eq"), floor("floor");
  static const OpRef clamp_max("clamp_max"), ge("ge"), le("le"), logical_and("logical_and");
  static const OpRef scatter_add("scatter_add"), clamp_min("clamp_min");
  const Tensor& x = call.in(0);
  int64_t bins = call.attr(0).as_int();
  double low = call.attr(1).as_double(), high = call.attr(2).as_double();
  if (!is_floating(x->dtype)) {
    return failed(not_implemented_error("\"histogram_cpu\" not implemented for '",
                                        std::string(dtype_name(x->dtype)), "'"));
  }
  if (bins <= 0) return failed(runtime_error("[histc] bins must be > 0"));
  if (!std::isfinite(low) || !std::isfinite(high)) {
    return failed(runtime_error("[histc] range of [", low, ", ", high, "] is not finite"));
  }
  if (low > high) return failed(runtime_error("[histc] max must be larger than min"));
  GradMode off(false);
  Tensor flat = reshape(x, Dims{x->numel()});
  if (flat->poison) return {flat};
  if (flat->numel() == 0) return {zeros(Dims{bins}, x->dtype)};
  Tensor from, to;
  if (low == high) {
    from = gradwire::call(amin, {flat}, {IntList{}, false});
    to = gradwire::call(amax, {flat}, {IntList{}, false});
    Tensor same = gradwire::call(eq, {from, to}, {{}});
    Tensor one = full(Dims{}, 1, x->dtype);
    Tensor lower = sub(from, one), upper = add(to, one);
    from = gradwire::call(where, {same, lower, from});
    to = gradwire::call(where, {same, upper, to});
  } else {
    from = full(Dims{}, low, x->dtype);
    to = full(Dims{}, high, x->dtype);
  }
  Tensor inside = gradwire::call(
      logical_and, {gradwire::call(ge, {flat, from}, {{}}), gradwire::call(le, {flat, to}, {{}})});
  Tensor place = div(mul(sub(flat, from), static_cast<double>(bins)), sub(to, from));
  place = gradwire::call(where, {inside, gradwire::call(floor, {place}), nullptr}, {{}, 0.0});
  place = cast(place, DType::kInt64);
  place = gradwire::call(clamp_max, {place, nullptr}, {bins - 1});
  place = gradwire::call(clamp_min, {place, nullptr}, {0});
  return {gradwire::call(scatter_add, {zeros(Dims{bins}, x->dtype), place, cast(inside, x->dtype)},
                         {0})};
}

// The rows of `points` [n, d] counted in the cells of d lists of edges; out first, then the edges.
Tensors compose_histogram(const Call& call) {
  static const OpRef linspace("linspace"), select("select"), ge("ge"), le("le");
  static const OpRef logical_and("logical_and"), clamp_max("clamp_max"), clamp_min("clamp_min");
  static const OpRef scatter_add("scatter_add"), amin("amin"), amax("amax"), arange("arange");
  static const OpRef where("where"), eq("eq"), narrow("narrow");
  const Tensor& points = call.in(0);
  const Tensor& weight = call.in(1);
  int64_t given = static_cast<int64_t>(call.inputs.size()) - 2;
  IntList bins = call.attr(0).as_ints();
  const FloatList& range = call.attr(1).as_floats();
  int64_t want = given + static_cast<int64_t>(bins.size()) + 1;
  auto bad = [&](const absl::Status& status) {
    return failed(status, static_cast<int>(std::min<int64_t>(want, 64)));
  };
  if (!is_floating(points->dtype)) {
    return bad(not_implemented_error("\"histogramdd\" not implemented for '",
                                     std::string(dtype_name(points->dtype)), "'"));
  }
  if (points->rank() < 2) {
    return bad(runtime_error("[histogramdd] torch.histogramdd: input tensor should have at least ",
                             "2 dimensions"));
  }
  int64_t d = points->sizes.back();
  if (d != std::max<int64_t>(given, static_cast<int64_t>(bins.size())) ||
      (given && !bins.empty())) {
    return bad(runtime_error("[histogramdd] torch.histogramdd(): The size of bins must be equal ",
                             "to the innermost dimension of the input."));
  }
  if (!range.empty() && static_cast<int64_t>(range.size()) != 2 * d) {
    return bad(
        runtime_error("[histogramdd] range should have ", 2 * d, " elements, got ", range.size()));
  }
  GradMode off(false);
  int64_t n = d ? points->numel() / d : 0;
  Tensor flat = reshape(points, Dims{n, d});
  if (flat->poison) return bad(runtime_error("[histogramdd] ", flat->poison->message));
  Tensors edges;
  __int128 cells = 1;
  for (int64_t i = 0; i < d; ++i) {
    if (given) {
      const Tensor& e = call.in(static_cast<int>(2 + i));
      if (e->rank() != 1 || e->numel() < 1 || e->dtype != points->dtype) {
        return bad(runtime_error("[histogramdd] bins tensors should be 1-dimensional, with the ",
                                 "input's dtype, got ", e->text()));
      }
      edges.push_back(e);
    } else {
      if (bins[i] < 1) return bad(runtime_error("[histogramdd] bins must be > 0, got ", bins[i]));
      if (bins[i] > (int64_t{1} << 32)) return bad(runtime_error("[histogramdd] too many bins"));
      Tensor column = gradwire::call(select, {flat}, {1, i});
      Tensor from, to;
      if (!range.empty()) {
        if (!std::isfinite(range[2 * i]) || !std::isfinite(range[2 * i + 1])) {
          return bad(runtime_error("[histogramdd] range is not finite"));
        }
        if (range[2 * i] > range[2 * i + 1]) {
          return bad(runtime_error("[histogramdd] min should not exceed max"));
        }
        from = full(Dims{}, range[2 * i], points->dtype);
        to = full(Dims{}, range[2 * i + 1], points->dtype);
      } else if (n == 0) {
        from = full(Dims{}, 0, points->dtype);
        to = full(Dims{}, 1, points->dtype);
      } else {
        from = gradwire::call(amin, {column}, {IntList{}, false});
        to = gradwire::call(amax, {column}, {IntList{}, false});
      }
      Tensor same = gradwire::call(eq, {from, to}, {{}});
      Tensor half = full(Dims{}, 0.5, points->dtype);
      Tensor lower = gradwire::call(where, {same, sub(from, half), from});
      Tensor upper = gradwire::call(where, {same, add(to, half), to});
      // As linspace: from the front in the first half, from the back in the second.
      Tensor step = div(sub(upper, lower), static_cast<double>(bins[i]));
      Tensor k = gradwire::call(arange, {}, {0, bins[i] + 1, 1, points->dtype});
      Tensor rest = sub(full(Dims{}, static_cast<double>(bins[i]), points->dtype), k);
      Tensor first = gradwire::call(le, {k, nullptr}, {(static_cast<double>(bins[i]) - 1) / 2});
      edges.push_back(
          gradwire::call(where, {first, add(lower, mul(step, k)), sub(upper, mul(step, rest))}));
    }
    if (edges.back()->poison) return bad(runtime_error(edges.back()->poison->message));
    cells *= edges.back()->numel() - 1;
    if (cells > (int64_t{1} << 40)) return bad(runtime_error("[histogramdd] too many cells"));
  }
  if (weight && (weight->numel() != n || weight->dtype != points->dtype)) {
    return bad(runtime_error("[histogramdd] torch.histogramdd(): if weight tensor is provided it ",
                             "should have the same shape as the input tensor excluding its ",
                             "innermost dimension, got input ", points->text(), " and weight ",
                             weight->text()));
  }
  Tensor add_up = weight ? reshape(weight, Dims{n}) : full(Dims{n}, 1, points->dtype);
  Tensor cell = zeros(Dims{n}, DType::kInt64);
  Tensor inside = full(Dims{n}, 1, DType::kBool);
  Dims shape;
  for (int64_t i = 0; i < d; ++i) {
    int64_t count = edges[i]->numel() - 1;
    shape.push_back(count);
    Tensor column = contiguous(gradwire::call(select, {flat}, {1, i}));
    Tensor low = gradwire::call(select, {edges[i]}, {0, 0});
    Tensor high = gradwire::call(select, {edges[i]}, {0, count});
    inside = gradwire::call(logical_and, {inside, gradwire::call(ge, {column, low}, {{}})});
    inside = gradwire::call(logical_and, {inside, gradwire::call(le, {column, high}, {{}})});
    Tensor place = sub(search(edges[i], column, true), full(Dims{}, 1, DType::kInt64));
    place = gradwire::call(clamp_max, {place, nullptr}, {count - 1});
    place = gradwire::call(clamp_min, {place, nullptr}, {0});
    cell = add(mul(cell, full(Dims{}, static_cast<double>(count), DType::kInt64)), place);
  }
  auto total = static_cast<int64_t>(cells);
  Tensor hist = zeros(Dims{total}, points->dtype);
  if (total > 0) {
    Tensor counted = gradwire::call(where, {inside, add_up, nullptr}, {{}, 0.0});
    hist = gradwire::call(scatter_add, {hist, cell, counted}, {0});
  }
  hist = reshape(hist, shape);
  if (call.attr(2).as_bool() && total > 0) {
    hist = div(hist, sum(hist, {}, false));
    for (int64_t i = 0; i < d; ++i) {
      Dims along(d, 1);
      along[i] = shape[i];
      Tensor upper = gradwire::call(narrow, {edges[i]}, {0, int64_t{1}, shape[i]});
      Tensor lower = gradwire::call(narrow, {edges[i]}, {0, int64_t{0}, shape[i]});
      hist = div(hist, reshape(sub(upper, lower), along));
    }
  }
  Tensors out{hist};
  for (Tensor& e : edges) out.push_back(e);
  return out;
}

}  // namespace

void add_set_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn compose, bool method = true) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = compose;
    row.method = method;
    return row;
  };
  composite(544, "histc(Tensor input, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
            "How many elements lie in each of equal bins from min to max; of the data when both "
            "are 0.",
            compose_histc)
      .out = true;
  composite(545,
            "histogram_cells(Tensor input, Tensor? weight, Tensor[] edges, int[] bins=[], "
            "float[]? range=None, bool density=False) -> Tensor[]",
            "How many rows of input lie in each cell, then each dimension's edges.",
            compose_histogram, false);
  auto& at = c.add(573, OpKind::kKernel,
                   "searchsorted_at(Tensor sorted_sequence, Tensor input, bool right=False, "
                   "bool out_int32=False) -> Tensor",
                   "Where input's elements would be inserted into the last dim.");
  at.kernel = "searchsorted";
  at.infer = infer_search;
  at.checks = true;
  composite(574,
            "searchsorted(Tensor sorted_sequence, Operand input, *, bool out_int32=False, "
            "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
            "Where input's elements would be inserted into the last dim of sorted_sequence.",
            compose_searchsorted)
      .out = true;
  composite(575,
            "bucketize(Operand input, Tensor boundaries, *, bool out_int32=False, "
            "bool right=False) -> Tensor",
            "The bucket between boundaries of each element.", compose_bucketize)
      .out = true;
  composite(576,
            "isin(Operand elements, Operand test_elements, *, bool assume_unique=False, "
            "bool invert=False) -> Tensor",
            "Whether each element is one of test_elements.", compose_isin, false)
      .type_rule = "bool";
  auto& order = c.add(577, OpKind::kKernel, "order_rows(Tensor input) -> Tensor",
                      "The order of a matrix's rows, by the first column, then the next.");
  order.infer = infer_order;
  composite(578,
            "unique_runs(Tensor input, int? dim=None, bool consecutive=False, "
            "bool return_inverse=False, bool return_counts=False) -> "
            "(Tensor output, Tensor inverse_indices, Tensor counts)",
            "The distinct elements, or slices along dim; sorted unless only neighbours count.",
            compose_unique, false)
      .measure = measure_unique;
  add_pick<1>(c, 579, "kthvalue", "int k, int dim=-1", "kthvalue",
              "The k-th smallest along dim and where it is.");
  add_pick<0>(c, 580, "mode", "int dim=-1", "mode",
              "The most frequent element along dim and where its last is; of several the "
              "smallest.");
  add_pick<0>(c, 581, "nanmedian_dim", "int dim", "nanmedian",
              "The lower median along dim of what is not nan, and where it is.");
  composite(582, "msort(Tensor input) -> Tensor", "input sorted along its first dim.",
            [](const Call& call) -> Tensors {
              static const OpRef sort("sort");
              return {call_many(sort, {call.in(0)}, {0, false, false})[0]};
            })
      .type_rule = "same";
  c.keep_internal({"searchsorted_at", "order_rows"});
}

}  // namespace gradwire
