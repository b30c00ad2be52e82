// Rows 435 to 449: counts, medians, quantiles and what ignores nan; 543 to 569: histograms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

Tensors failed(const absl::Status& status, int n = 1) {
  return Tensors(n, poisoned(status));
}

Tensor is_nan(const Tensor& x) {
  static const OpRef op("isnan");
  return call(op, {x});
}

Tensor filled(const Tensor& x, const Tensor& mask, double value) {
  static const OpRef op("masked_fill");
  return call(op, {x, mask, nullptr}, {value});
}

Tensors compose_count(const Call& call) {
  static const OpRef all("count_nonzero_all"), ne("ne"), sum_op("sum");
  const Attribute& dims = call.attr(0);
  if (dims.none() || dims.as_ints().empty()) return {gradwire::call(all, {call.in(0)})};
  Tensor mask = gradwire::call(ne, {call.in(0), nullptr}, {0});
  return {gradwire::call(sum_op, {mask}, {dims, false, {}})};
}

Tensors compose_nansum(const Call& call) {
  static const OpRef sum_op("sum");
  Tensor x = call.in(0);
  if (is_floating(x->dtype)) x = filled(x, is_nan(x), 0);
  return {gradwire::call(sum_op, {x}, call.attributes)};
}

Tensors compose_nanmean(const Call& call) {
  static const OpRef sum_op("sum"), logical_not("logical_not");
  const Tensor& x = call.in(0);
  if (!is_floating(x->dtype)) {
    return failed(runtime_error("nanmean(): expected input to have floating point or complex ",
                                "dtype but got ", std::string(dtype_name(x->dtype)), " [nanmean]"));
  }
  Tensor mask = is_nan(x);
  Tensor total = gradwire::call(sum_op, {filled(x, mask, 0)}, call.attributes);
  Tensor numbers = gradwire::call(logical_not, {mask});
  return {div(total, gradwire::call(sum_op, {numbers}, {call.attr(0), call.attr(1), {}}))};
}

Tensors compose_logsumexp(const Call& call) {
  static const OpRef op("logsumexp_of_float");
  Tensor x = call.in(0);
  if (!is_floating(x->dtype)) x = cast(x, Slot::current().default_float);
  return {gradwire::call(op, {x}, call.attributes)};
}

absl::Status check_aminmax(const Call& call) {
  for (const Tensor& out : call.outs) {
    if (out->poison || out->dtype == call.in(0)->dtype) continue;
    return runtime_error("Expected out tensor to have dtype ",
                         std::string(dtype_name(call.in(0)->dtype)), ", but got ",
                         std::string(dtype_name(out->dtype)), " instead [aminmax]");
  }
  return absl::OkStatus();
}

Tensors compose_aminmax(const Call& call) {
  static const OpRef amin("amin"), amax("amax");
  const Tensor& x = call.in(0);
  AttributeList attributes{IntList{}, call.attr(1)};
  if (call.attr(0).none()) {
    if (x->numel() == 0) {
      return failed(runtime_error("aminmax(): cannot compute aminmax over an empty dimension as ",
                                  "the operation has no identity. [aminmax]"),
                    2);
    }
  } else {
    auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
    if (!dim.ok()) return failed(dim.status(), 2);
    attributes[0] = IntList{*dim};
  }
  return {gradwire::call(amin, {x}, attributes), gradwire::call(amax, {x}, attributes)};
}

// The median of all elements; equals of it share the gradient.
Tensors compose_median(const Call& call, const OpRef& along) {
  static const OpRef eq("eq"), logical_or("logical_or"), where("where"), amax("amax");
  static const OpRef logical_and("logical_and");
  const Tensor& x = call.in(0);
  if (x->numel() == 0) {
    return {full(Dims{}, is_floating(x->dtype) ? std::numeric_limits<double>::quiet_NaN() : 0,
                 x->dtype)};
  }
  Tensor value;
  {
    GradMode off(false);
    value = call_many(along, {reshape(x, Dims{x->numel()})}, {0, false})[0];
    if (value->poison) return {value};
  }
  if (!x->requires_grad() || !Slot::current().grad_enabled) return {value};
  Tensor chosen = gradwire::call(
      logical_or,
      {gradwire::call(eq, {x, value}), gradwire::call(logical_and, {is_nan(x), is_nan(value)})});
  Tensor others = full(Dims{}, -std::numeric_limits<double>::infinity(), x->dtype);
  return {gradwire::call(amax, {gradwire::call(where, {chosen, x, others})}, {IntList{}, false})};
}

// --- quantiles ---------------------------------------------------------------------------------

absl::Status check_quantile(const Call& call, const Tensor& q) {
  const Tensor& x = call.in(0);
  const std::string name = call.op->name;
  if (x->numel() == 0) return runtime_error(name, "() input tensor must be non-empty");
  if (q && q->rank() > 1) {
    return runtime_error(name, "() q must be a scalar or 1D tensor");
  }
  if (x->dtype != DType::kFloat32 && x->dtype != DType::kFloat64) {
    return runtime_error(name, "() input tensor must be either float or double dtype");
  }
  if (q && q->dtype != x->dtype) {
    return runtime_error(name, "() q tensor must be same dtype as the input tensor");
  }
  double number = call.attr(0).as_double();
  if (!q && !(number >= 0 && number <= 1)) {
    return runtime_error(name, "() q must be in the range [0, 1] but got ", number);
  }
  const std::string& how = call.attr(3).as_string();
  for (const char* known : {"linear", "lower", "higher", "midpoint", "nearest"}) {
    if (how == known) return absl::OkStatus();
  }
  return runtime_error(name, "() interpolation must be one of linear, lower, higher, midpoint or ",
                       "nearest, but got ", how);
}

Tensors compose_quantile(const Call& call) {
  static const OpRef sort("sort"), gather("gather"), clamp_min("clamp_min"), floor("floor");
  static const OpRef ceil("ceil"), round("round"), lerp("lerp");
  static const OpRef logical_not("logical_not"), any("any"), where("where");
  Tensor x = call.in(0);
  Tensor q = call.in(1);
  absl::Status status = check_quantile(call, q);
  if (!status.ok()) return failed(status);
  bool ignore = call.op->name == "nanquantile";
  bool whole = call.attr(1).none(), keepdim = call.attr(2).as_bool();
  auto found = whole ? absl::StatusOr<int64_t>(0) : dim_of(call, call.attr(1).as_int(), x->rank());
  if (!found.ok()) return failed(found.status());
  const std::string& how = call.attr(3).as_string();

  // The result's sizes without q's dim.
  Dims kept = x->sizes;
  if (whole) {
    kept = keepdim ? Dims(x->rank(), 1) : Dims{};
    x = reshape(x, Dims{x->numel()});
  } else if (!kept.empty()) {
    if (keepdim) {
      kept[*found] = 1;
    } else {
      kept.erase(kept.begin() + *found);
    }
  }
  if (x->poison) return {x};
  if (x->rank() == 0) x = reshape(x, Dims{1});
  int64_t last = x->rank() - 1;
  int64_t dim = whole ? 0 : *found;
  // Lines along the last dim.
  x = transpose(x, dim, last);
  Tensor sorted = call_many(sort, {x}, {last, false, false})[0];
  if (sorted->poison) return {sorted};
  int64_t n = sorted->sizes[last];
  Dims rank_sizes = sorted->sizes;
  rank_sizes[last] = 1;
  Tensor q1 = q ? reshape(q, Dims{q->numel()}) : full(Dims{1}, call.attr(0).as_double(), x->dtype);
  if (q1->poison) return {q1};
  int64_t count = q1->sizes[0];
  Tensor nans = is_nan(sorted);
  Tensor ranks;
  if (ignore) {
    Tensor numbers = sum(gradwire::call(logical_not, {nans}), {last}, true);
    numbers = cast(numbers, x->dtype);
    ranks =
        gradwire::call(clamp_min, {mul(q1, sub(numbers, full(Dims{}, 1, x->dtype))), nullptr}, {0});
  } else {
    Dims sizes = rank_sizes;
    sizes[last] = count;
    ranks = expand(mul(q1, static_cast<double>(n - 1)), sizes);
    // A line with a nan gives nan: its last element is one.
    Tensor bad = gradwire::call(any, {nans}, {IntList{last}, true});
    ranks = gradwire::call(where, {bad, nullptr, ranks}, {static_cast<double>(n - 1), {}});
  }
  if (how == "lower") ranks = gradwire::call(floor, {ranks});
  if (how == "higher") ranks = gradwire::call(ceil, {ranks});
  if (how == "nearest") ranks = gradwire::call(round, {ranks});
  Tensor below = cast(ranks, DType::kInt64);
  Tensor values = gradwire::call(gather, {sorted, below}, {last});
  if (how == "linear" || how == "midpoint") {
    Tensor above = cast(gradwire::call(ceil, {ranks}), DType::kInt64);
    Tensor upper = gradwire::call(gather, {sorted, above}, {last});
    Tensor weight =
        how == "midpoint" ? full(Dims{}, 0.5, x->dtype) : sub(ranks, cast(below, x->dtype));
    values = gradwire::call(lerp, {values, upper, weight}, {{}});
  }
  if (values->poison) return {values};
  // q's dim to the front, the line's dim (of size 1) back where it was.
  values = transpose(unsqueeze(values, 0), 0, last + 1);
  values = transpose(values, dim + 1, last + 1);
  Dims sizes;
  if (q && q->rank() == 1) sizes.push_back(count);
  sizes.insert(sizes.end(), kept.begin(), kept.end());
  return {reshape(values, sizes)};
}

// --- counts ------------------------------------------------------------------------------------

Tensors measure_bincount(const Call& call) {
  static const OpRef amin("amin"), amax("amax");
  const Tensor& x = call.in(0);
  if (x->rank() != 1 || x->numel() == 0 || is_floating(x->dtype) || x->dtype == DType::kBool) {
    return {};
  }
  Tensor wide = cast(x, DType::kInt64);
  return {gradwire::call(amin, {wide}, {IntList{}, false}),
          gradwire::call(amax, {wide}, {IntList{}, false})};
}

Tensors compose_bincount(const Call& call) {
  static const OpRef scatter_add("scatter_add");
  const Tensor& x = call.in(0);
  const Tensor& weights = call.in(1);
  int64_t size = call.attr(0).as_int();
  if (size < 0) return failed(runtime_error("[bincount] minlength should be >= 0"));
  if (is_floating(x->dtype) || x->dtype == DType::kBool) {
    return failed(not_implemented_error("\"bincount_cpu\" not implemented for '",
                                        std::string(dtype_name(x->dtype)), "'"));
  }
  DType dtype = !weights                            ? DType::kInt64
                : weights->dtype == DType::kFloat32 ? DType::kFloat32
                                                    : DType::kFloat64;
  if (x->rank() == 1 && x->numel() == 0) return {zeros(Dims{size}, dtype)};
  if (x->rank() != 1 || (weights && weights->sizes != x->sizes)) {
    return failed(runtime_error("[bincount] bincount only supports 1-d non-negative integral ",
                                "inputs, and input and weights should have the same length"));
  }
  if (call.values.size() < 2) {
    return failed(runtime_error("[bincount] can only be used in a command of its own"));
  }
  if (call.values[0] < 0) {
    return failed(
        runtime_error("[bincount] bincount only supports 1-d non-negative integral inputs."));
  }
  if (call.values[1] >= (int64_t{1} << 40)) {
    return failed(runtime_error("[bincount] the largest value ", call.values[1], " is too large"));
  }
  size = std::max(size, call.values[1] + 1);
  GradMode off(false);
  Tensor add = weights ? cast(weights, dtype) : full(x->sizes, 1, dtype);
  return {
      gradwire::call(scatter_add, {zeros(Dims{size}, dtype), cast(x, DType::kInt64), add}, {0})};
}

}  // namespace

void add_statistics_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn compose, std::string_view shape, std::string_view type) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = compose;
    row.shape_rule = std::string(shape);
    row.type_rule = std::string(type);
    row.method = true;
    return row;
  };
  composite(435, "count_nonzero(Tensor input, int[]? dim=None) -> Tensor",
            "How many elements are not zero, over dim or in all.", compose_count, "", "int64");
  composite(436,
            "nansum(Tensor input, int[]? dim=None, bool keepdim=False, *, "
            "dtype? dtype=None) -> Tensor",
            "The sum over dim of the elements that are not nan.", compose_nansum, "reduce", "sum")
      .out = true;
  composite(437,
            "nanmean(Tensor input, int[]? dim=None, bool keepdim=False, *, "
            "dtype? dtype=None) -> Tensor",
            "The mean over dim of the elements that are not nan.", compose_nanmean, "reduce", "")
      .out = true;
  composite(438, "logsumexp(Tensor input, int[] dim, bool keepdim=False) -> Tensor",
            "log(sum(exp(input))) over dim, without overflow; ints give the default float.",
            compose_logsumexp, "reduce", "promote_float")
      .out = true;
  auto& aminmax = composite(
      439,
      "aminmax(Tensor input, *, int? dim=None, bool keepdim=False) -> "
      "(Tensor min, Tensor max)",
      "The smallest and the largest element, along dim or of all; ties share the gradient.",
      compose_aminmax, "", "");
  aminmax.out = true;
  aminmax.check = check_aminmax;
  composite(
      445, "median(Tensor input) -> Tensor", "The lower median of all elements; nan when one is.",
      [](const Call& call) {
        static const OpRef along("median_dim");
        return compose_median(call, along);
      },
      "scalar", "same");
  composite(
      446, "nanmedian(Tensor input) -> Tensor",
      "The lower median of the elements that are not nan.",
      [](const Call& call) {
        static const OpRef along("nanmedian_dim");
        return compose_median(call, along);
      },
      "scalar", "same");
  for (auto [number, name] :
       {std::pair{uint16_t{447}, "quantile"}, std::pair{uint16_t{448}, "nanquantile"}}) {
    composite(number,
              std::string(name) +
                  "(Tensor input, Operand q, int? dim=None, bool keepdim=False, *, "
                  "str interpolation='linear') -> Tensor",
              "The q-th quantiles along dim, or of all elements; q's dim comes first.",
              compose_quantile, "", "same")
        .out = true;
  }
  composite(543, "bincount(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor",
            "How often each value from 0 on occurs, or the sum of its weights.", compose_bincount,
            "", "")
      .measure = measure_bincount;
}

}  // namespace gradwire
