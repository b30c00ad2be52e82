// Rows 420 to 479: reductions and scans.
#include <algorithm>
#include <tuple>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

// The dims of attribute 0 as flags; none or an empty list means all.
absl::StatusOr<std::vector<bool>> reduced_dims(const Call& call) {
  int rank = call.in(0)->rank();
  const Attribute& a = call.attr(0);
  IntList dims = a.is_int() ? IntList{a.as_int()} : a.as_ints();
  std::vector<bool> reduced(rank, dims.empty());
  for (int64_t d : dims) {
    auto dim = wrap_dim(d, rank);
    if (!dim.ok()) return dim.status();
    if (rank == 0) continue;
    if (reduced[*dim]) {
      return runtime_error("dim ", *dim, " appears multiple times in the list of dims");
    }
    reduced[*dim] = true;
  }
  return reduced;
}

Dims reduced_sizes(const Dims& sizes, const std::vector<bool>& reduced, bool keepdim) {
  Dims out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!reduced[i]) {
      out.push_back(sizes[i]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

// Kernels see outputs in keepdim form and dims as a list of those reduced.
absl::Status lower_reduce(const Call& call, Task* task, AttributeList rest) {
  auto reduced = reduced_dims(call);
  if (!reduced.ok()) return reduced.status();
  Dims keep = reduced_sizes(call.in(0)->sizes, *reduced, true);
  for (Operand& out : task->outputs) {
    out.sizes = keep;
    out.strides = contiguous_strides(keep);
  }
  IntList dims;
  for (size_t i = 0; i < reduced->size(); ++i) {
    if ((*reduced)[i]) dims.push_back(static_cast<int64_t>(i));
  }
  task->attributes.clear();
  task->attributes.emplace_back(std::move(dims));
  for (Attribute& a : rest) task->attributes.push_back(std::move(a));
  return absl::OkStatus();
}

absl::Status infer_reduce(const Call& call, TensorSpecs* outputs, DType dtype, bool keepdim) {
  auto reduced = reduced_dims(call);
  if (!reduced.ok()) return reduced.status();
  outputs->push_back({dtype, reduced_sizes(call.in(0)->sizes, *reduced, keepdim), {}});
  return absl::OkStatus();
}

DType sum_dtype(const Call& call, int slot) {
  DType given = call.attr(slot).as_dtype();
  if (given != DType::kNone) return given;
  DType t = call.in(0)->dtype;
  return is_floating(t) ? t : DType::kInt64;
}

absl::Status float_only(const Call& call, DType dtype, std::string_view what) {
  if (is_floating(dtype)) return absl::OkStatus();
  return runtime_error(std::string(what),
                       "(): could not infer output dtype. Input dtype must be "
                       "either a floating point or complex dtype. Got: ",
                       std::string(dtype_name(call.in(0)->dtype)));
}

// A gradient or value of the reduced sizes, back in keepdim form for broadcasting.
Tensor restored(Backward& b, const Tensor& t, bool keepdim) {
  if (keepdim || t->poison) return t;
  const Dims& sizes = b.input_spec(0).sizes;
  const Attribute& a = b.attr(0);
  IntList dims = a.is_int() ? IntList{a.as_int()} : a.as_ints();
  Dims keep = sizes;
  int64_t rank = static_cast<int64_t>(sizes.size());
  if (dims.empty()) {
    for (int64_t& s : keep) s = 1;
  }
  for (int64_t d : dims) {
    if (rank) keep[(d + rank) % rank] = 1;
  }
  return reshape(t, keep);
}

double reduced_count(Backward& b) {
  double whole = static_cast<double>(numel_of(b.input_spec(0).sizes));
  double left = static_cast<double>(numel_of(b.output_spec(0).sizes));
  return left == 0 ? 0 : whole / left;
}

void backward_sum(Backward& b) {
  Tensor g = restored(b, b.grad(), b.attr(1).as_bool());
  b.set(0, cast(expand(g, b.input_spec(0).sizes), b.input_spec(0).dtype));
}

void backward_mean(Backward& b) {
  Tensor g = div(restored(b, b.grad(), b.attr(1).as_bool()), reduced_count(b));
  b.set(0, cast(expand(g, b.input_spec(0).sizes), b.input_spec(0).dtype));
}

Tensor call_eq(const Tensor& a, const Tensor& b) {
  static const OpRef op("eq");
  return call(op, {a, b});
}

// Ties share the gradient evenly.
void backward_extreme(Backward& b) {
  bool keepdim = b.attr(1).as_bool();
  Tensor g = restored(b, b.grad(), keepdim);
  Tensor y = restored(b, b.output(0), keepdim);
  Tensor mask = cast(call_eq(b.input(0), y), b.input_spec(0).dtype);
  const Attribute& a = b.attr(0);
  IntList dims = a.is_int() ? IntList{a.as_int()} : a.as_ints();
  b.set(0, mul(div(mask, sum(mask, dims, true)), g));
}

void backward_var(Backward& b) {
  // d var / d x = 2 (x - mean) / (n - correction)
  bool keepdim = b.attr(2).as_bool();
  Tensor x = b.input(0);
  static const OpRef mean_op("mean");
  Tensor mean = call(mean_op, {x}, {b.attr(0), true, {}});
  double divisor = std::max(0.0, reduced_count(b) - b.attr(1).as_double());
  Tensor g = restored(b, b.grad(), keepdim);
  b.set(0, mul(mul(g, 2.0 / divisor), sub(x, mean)));
}

void backward_logsumexp(Backward& b) {
  static const OpRef exp("exp");
  bool keepdim = b.attr(1).as_bool();
  Tensor y = restored(b, b.output(0), keepdim);
  b.set(0, mul(restored(b, b.grad(), keepdim), call(exp, {sub(b.input(0), y)})));
}

void backward_prod(Backward& b) {
  // By logarithms this would fail at 0: the product of all others, from both sides.
  static const OpRef cumprod("cumprod"), flip("flip"), cat("cat"), narrow("narrow");
  bool keepdim = b.attr(1).as_bool();
  Tensor x = b.input(0);
  Tensor g = restored(b, b.grad(), keepdim);
  const Dims& sizes = b.input_spec(0).sizes;
  Tensor flat;
  int64_t dim = 0;
  bool all = b.attr(0).none();
  if (all) {
    flat = reshape(x, Dims{numel_of(sizes)});
  } else {
    flat = x;
    int64_t rank = static_cast<int64_t>(sizes.size());
    IntList dims = b.attr(0).is_int() ? IntList{b.attr(0).as_int()} : b.attr(0).as_ints();
    if (rank == 0) {
      b.set(0, g);
      return;
    }
    dim = (dims[0] + rank) % rank;
  }
  if (flat->poison || flat->numel() == 0) {
    b.set(0, flat->poison ? flat : zeros(sizes, b.input_spec(0).dtype));
    return;
  }
  int64_t n = flat->sizes[dim];
  Dims one = flat->sizes;
  one[dim] = 1;
  Tensor unit = full(one, 1, flat->dtype);
  auto before = [&](const Tensor& t) {
    Tensor head = call(narrow, {t}, {dim, int64_t{0}, n - 1});
    Tensor shifted = call_list(cat, {unit, head}, {dim})[0];
    return call(cumprod, {shifted}, {dim, {}});
  };
  Tensor after = call(flip, {before(call(flip, {flat}, {IntList{dim}}))}, {IntList{dim}});
  Tensor others = mul(before(flat), after);
  b.set(0, all ? mul(reshape(others, sizes), g) : mul(others, g));
}

absl::Status infer_dim_pair(const Call& call, TensorSpecs* outputs) {
  GW_RETURN_IF_ERROR(infer_reduce(call, outputs, call.in(0)->dtype, call.attr(1).as_bool()));
  const Tensor& x = call.in(0);
  auto dim = wrap_dim(call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  if (x->rank() && x->sizes[*dim] == 0) {
    return index_error(call.op->name, "(): Expected reduction dim ", *dim,
                       " to have non-zero size.");
  }
  outputs->push_back({DType::kInt64, (*outputs)[0].sizes, {}});
  return absl::OkStatus();
}

// Kernels that take one dim as an int.
absl::Status lower_dim(const Call& call, Task* task) {
  auto dim = wrap_dim(call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  Dims keep = call.in(0)->sizes;
  if (!keep.empty()) keep[*dim] = 1;
  for (Operand& out : task->outputs) {
    out.sizes = keep;
    out.strides = contiguous_strides(keep);
  }
  task->attributes = {*dim};
  return absl::OkStatus();
}

// values' gradient goes to the one element that was chosen.
void backward_pick(Backward& b) {
  static const OpRef scatter("scatter");
  bool keepdim = b.attr(1).as_bool();
  const Dims& sizes = b.input_spec(0).sizes;
  Tensor g = b.grad(0), index = b.output(1);
  int64_t rank = static_cast<int64_t>(sizes.size());
  int64_t dim = rank ? (b.attr(0).as_int() + rank) % rank : 0;
  if (!keepdim && rank) {
    g = unsqueeze(g, dim);
    index = unsqueeze(index, dim);
  }
  b.set(0, call(scatter, {zeros(sizes, b.input_spec(0).dtype), index, g}, {dim}));
}

absl::Status infer_arg(const Call& call, TensorSpecs* outputs) {
  const Tensor& x = call.in(0);
  bool keepdim = call.attr(1).as_bool();
  if (call.attr(0).none()) {
    if (x->numel() == 0) {
      return index_error(call.op->name,
                         "(): Expected reduction dim to be specified for "
                         "input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
    }
    outputs->push_back({DType::kInt64, keepdim ? Dims(x->rank(), 1) : Dims{}, {}});
    return absl::OkStatus();
  }
  GW_RETURN_IF_ERROR(infer_dim_pair(call, outputs));
  outputs->erase(outputs->begin());
  return absl::OkStatus();
}

Tensors compose_arg(const Call& call, const OpRef& along) {
  const Tensor& x = call.in(0);
  if (!call.attr(0).none()) return {gradwire::call(along, {x}, {call.attr(0), call.attr(1)})};
  TensorSpecs specs;
  absl::Status status = infer_arg(call, &specs);
  if (!status.ok()) return {poisoned(status)};
  Tensor flat = reshape(x, Dims{x->numel()});
  Tensor index = gradwire::call(along, {flat}, {int64_t{0}, false});
  return {reshape(index, specs[0].sizes)};
}

// torch's max() and min() of a whole tensor.
Tensors compose_whole(const Call& call, const OpRef& along) {
  if (call.in(0)->numel() == 0) {
    return {poisoned(runtime_error(call.op->name,
                                   "(): Expected reduction dim to be specified for "
                                   "input.numel() == 0. Specify the reduction dim with the 'dim' "
                                   "argument."))};
  }
  return {gradwire::call(along, {call.in(0)}, {IntList{}, false})};
}

absl::Status infer_scan(const Call& call, TensorSpecs* outputs) {
  auto dim = wrap_dim(call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  outputs->push_back({sum_dtype(call, 1), call.in(0)->sizes, {}});
  return absl::OkStatus();
}

absl::Status lower_scan(const Call& call, Task* task) {
  task->attributes = {*wrap_dim(call.attr(0).as_int(), call.in(0)->rank())};
  return absl::OkStatus();
}

Tensor reversed_cumsum(const Tensor& t, int64_t dim) {
  static const OpRef cumsum("cumsum"), flip("flip");
  Tensor back = call(flip, {t}, {IntList{dim}});
  return call(flip, {call(cumsum, {back}, {dim, {}})}, {IntList{dim}});
}

void backward_cumsum(Backward& b) {
  Tensor g = b.grad();
  if (b.input_spec(0).sizes.empty()) {
    b.set(0, cast(g, b.input_spec(0).dtype));
    return;
  }
  b.set(0, cast(reversed_cumsum(g, b.attr(0).as_int()), b.input_spec(0).dtype));
}

// Without dividing by x, which may be 0: with P the products so far,
// dx[k] = P[k - 1] S[k], where S[k] = g[k] + x[k + 1] S[k + 1].
void backward_cumprod(Backward& b) {
  static const OpRef cumprod("cumprod"), tail("scan_linear_back"), cat("cat"), narrow("narrow");
  Tensor x = cast(b.input(0), b.output_spec(0).dtype), g = b.grad();
  const Dims& sizes = b.input_spec(0).sizes;
  if (sizes.empty() || numel_of(sizes) == 0 || x->poison) {
    b.set(0, x->poison ? x : cast(g, b.input_spec(0).dtype));
    return;
  }
  auto rank = static_cast<int64_t>(sizes.size());
  int64_t dim = (b.attr(0).as_int() + rank) % rank;
  Dims one = sizes;
  one[dim] = 1;
  Tensor head = call(narrow, {x}, {dim, int64_t{0}, sizes[dim] - 1});
  Tensor shifted = call_list(cat, {full(one, 1, x->dtype), head}, {dim})[0];
  Tensor before = call(cumprod, {shifted}, {dim, {}});
  b.set(0, cast(mul(before, call(tail, {x, g}, {dim})), b.input_spec(0).dtype));
}

}  // namespace

void add_reduce_rows(Catalog& c) {
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, InferFn infer,
                 LowerFn lower, BackwardFn backward, std::string_view type_rule) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kKernel, signature, doc);
    r.infer = infer;
    r.lower = lower;
    r.backward = backward;
    r.shape_rule = "reduce";
    r.type_rule = std::string(type_rule);
    r.method = true;
    r.out = true;
    return r;
  };
  LowerFn plain = [](const Call& call, Task* task) { return lower_reduce(call, task, {}); };
  row(
      420, "sum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
      "The sum over dim, or of all elements; ints and bools give int64.",
      [](const Call& call, TensorSpecs* out) {
        return infer_reduce(call, out, sum_dtype(call, 2), call.attr(1).as_bool());
      },
      plain, backward_sum, "sum");
  row(
      421,
      "mean(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
      "The mean over dim, or of all elements.",
      [](const Call& call, TensorSpecs* out) {
        DType dtype = call.attr(2).none() ? call.in(0)->dtype : call.attr(2).as_dtype();
        GW_RETURN_IF_ERROR(float_only(call, dtype, "mean"));
        return infer_reduce(call, out, dtype, call.attr(1).as_bool());
      },
      plain, backward_mean, "same");
  auto& prod = row(
      422,
      "prod(Tensor input, int? dim=None, bool keepdim=False, *, "
      "dtype? dtype=None) -> Tensor",
      "The product over dim, or of all elements; ints and bools give int64.",
      [](const Call& call, TensorSpecs* out) {
        return infer_reduce(call, out, sum_dtype(call, 2), call.attr(1).as_bool());
      },
      plain, backward_prod, "sum");
  prod.saves_inputs = save(0);
  InferFn same = [](const Call& call, TensorSpecs* out) {
    return infer_reduce(call, out, call.in(0)->dtype, call.attr(1).as_bool());
  };
  for (auto [number, name, doc] :
       {std::tuple{uint16_t{423}, "amax", "The largest over dim; ties share the gradient."},
        std::tuple{uint16_t{424}, "amin", "The smallest over dim; ties share the gradient."}}) {
    auto& r = row(number,
                  std::string(name) +
                      "(Tensor input, int[] dim=[], bool keepdim=False) "
                      "-> Tensor",
                  doc, same, plain, backward_extreme, "same");
    r.saves_inputs = save(0);
    r.saves_outputs = save(0);
    r.check = [](const Call& call) {
      if (call.in(0)->numel() > 0 || !call.attr(0).as_ints().empty()) return absl::OkStatus();
      return runtime_error(call.op->name,
                           "(): Expected reduction dim to be specified for input.numel() == 0. "
                           "Specify the reduction dim with the 'dim' argument.");
    };
  }
  InferFn truth = [](const Call& call, TensorSpecs* out) {
    DType dtype = call.in(0)->dtype == DType::kUInt8 ? DType::kUInt8 : DType::kBool;
    return infer_reduce(call, out, dtype, call.attr(1).as_bool());
  };
  row(425, "any(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
      "Whether any element is true.", truth, plain, nullptr, "");
  row(426, "all(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
      "Whether all elements are true.", truth, plain, nullptr, "");
  auto& var = row(
      427,
      "var(Tensor input, int[]? dim=None, float? correction=1, "
      "bool keepdim=False) -> Tensor",
      "The variance over dim, divided by n - correction.",
      [](const Call& call, TensorSpecs* out) {
        if (!is_floating(call.in(0)->dtype)) {
          return runtime_error(
              "std and var only support floating point and complex "
              "dtypes");
        }
        return infer_reduce(call, out, call.in(0)->dtype, call.attr(2).as_bool());
      },
      [](const Call& call, Task* task) {
        double correction = call.attr(1).none() ? 1.0 : call.attr(1).as_double();
        return lower_reduce(call, task, {correction});
      },
      backward_var, "same");
  var.saves_inputs = save(0);
  auto& lse = row(
      428, "logsumexp_of_float(Tensor input, int[] dim, bool keepdim=False) -> Tensor",
      "log(sum(exp(input))) over dim, without overflow.",
      [](const Call& call, TensorSpecs* out) {
        GW_RETURN_IF_ERROR(float_only(call, call.in(0)->dtype, "logsumexp"));
        return infer_reduce(call, out, call.in(0)->dtype, call.attr(1).as_bool());
      },
      plain, backward_logsumexp, "same");
  lse.kernel = "logsumexp";
  lse.saves_inputs = save(0);
  lse.saves_outputs = save(0);
  row(
      429, "count_nonzero_all(Tensor input) -> Tensor", "How many elements are not zero.",
      [](const Call&, TensorSpecs* out) {
        out->push_back({DType::kInt64, {}, {}});
        return absl::OkStatus();
      },
      [](const Call&, Task* task) {
        task->attributes.clear();
        return absl::OkStatus();
      },
      nullptr, "int64")
      .kernel = "count_nonzero";
  for (auto [number, name, doc] :
       {std::tuple{uint16_t{430}, "max_dim",
                   "The largest along dim and where: the first of equals."},
        std::tuple{uint16_t{431}, "min_dim",
                   "The smallest along dim and where: the first of "
                   "equals."},
        std::tuple{uint16_t{432}, "median_dim", "The lower median along dim and where."}}) {
    auto& r = row(number,
                  std::string(name) +
                      "(Tensor input, int dim, bool keepdim=False) -> "
                      "(Tensor values, Tensor indices)",
                  doc, infer_dim_pair, lower_dim, backward_pick, "");
    r.saves_outputs = save(1);
    r.shape_rule = "";
    r.method = false;
    if (number == 432) r.kernel = "median";
  }
  for (auto [number, name, kernel] : {std::tuple{uint16_t{433}, "argmax_dim", "argmax"},
                                      std::tuple{uint16_t{434}, "argmin_dim", "argmin"}}) {
    auto& r = row(
        number,
        std::string(name) +
            "(Tensor input, int dim, bool keepdim=False) -> "
            "Tensor",
        "The index of the extreme element along dim: the first of equals.",
        [](const Call& call, TensorSpecs* out) {
          GW_RETURN_IF_ERROR(infer_dim_pair(call, out));
          out->erase(out->begin());
          return absl::OkStatus();
        },
        lower_dim, nullptr, "int64");
    r.kernel = kernel;
    r.method = false;
  }
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view shape, std::string_view type) -> OpDef& {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.shape_rule = std::string(shape);
    r.type_rule = std::string(type);
    r.method = true;
    return r;
  };
  composite(
      440, "argmax(Tensor input, int? dim=None, bool keepdim=False) -> Tensor",
      "The index of the largest element, of the flattened input without dim.",
      [](const Call& call) {
        static const OpRef along("argmax_dim");
        return compose_arg(call, along);
      },
      "", "int64");
  composite(
      441, "argmin(Tensor input, int? dim=None, bool keepdim=False) -> Tensor",
      "The index of the smallest element, of the flattened input without dim.",
      [](const Call& call) {
        static const OpRef along("argmin_dim");
        return compose_arg(call, along);
      },
      "", "int64");
  composite(
      442, "max(Tensor input) -> Tensor", "The largest element; ties share the gradient.",
      [](const Call& call) {
        static const OpRef along("amax");
        return compose_whole(call, along);
      },
      "scalar", "same");
  composite(
      443, "min(Tensor input) -> Tensor", "The smallest element; ties share the gradient.",
      [](const Call& call) {
        static const OpRef along("amin");
        return compose_whole(call, along);
      },
      "scalar", "same");
  composite(
      444,
      "std(Tensor input, int[]? dim=None, float? correction=1, bool keepdim=False) "
      "-> Tensor",
      "The standard deviation over dim: sqrt(var).",
      [](const Call& call) -> Tensors {
        static const OpRef var_op("var"), root("sqrt_of_var");
        return {gradwire::call(root, {gradwire::call(var_op, {call.in(0)}, call.attributes)})};
      },
      "reduce", "same");
  auto& cumsum = row(450, "cumsum(Tensor input, int dim, *, dtype? dtype=None) -> Tensor",
                     "Running sums along dim; ints and bools give int64.", infer_scan, lower_scan,
                     backward_cumsum, "sum");
  cumsum.shape_rule = "same";
  cumsum.in_place = true;
  auto& cumprod = row(451, "cumprod(Tensor input, int dim, *, dtype? dtype=None) -> Tensor",
                      "Running products along dim; ints and bools give int64.", infer_scan,
                      lower_scan, backward_cumprod, "sum");
  cumprod.shape_rule = "same";
  cumprod.in_place = true;
  cumprod.saves_inputs = save(0);
  c.keep_internal({"count_nonzero_all", "logsumexp_of_float"});
}

}  // namespace gradwire
