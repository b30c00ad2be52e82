// Rows 452 to 479: running extremes and sums, differences, integrals.
#include <limits>
#include <tuple>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

int64_t wrapped(Backward& b, int slot) {
  auto rank = static_cast<int64_t>(b.input_spec(0).sizes.size());
  int64_t dim = b.attr(slot).as_int();
  return rank ? (dim % rank + rank) % rank : 0;
}

absl::Status lower_dim(const Call& call, Task* task) {
  auto dim = dim_of(call, call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  task->attributes = {*dim};
  return absl::OkStatus();
}

absl::Status infer_extreme(const Call& call, TensorSpecs* out) {
  auto dim = dim_of(call, call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  out->push_back({call.in(0)->dtype, call.in(0)->sizes, {}});
  out->push_back({DType::kInt64, call.in(0)->sizes, {}});
  return absl::OkStatus();
}

void backward_extreme(Backward& b) {
  static const OpRef scatter_add("scatter_add");
  const TensorSpec& x = b.input_spec(0);
  if (x.sizes.empty()) {
    b.set(0, b.grad(0));
    return;
  }
  b.set(0, call(scatter_add, {zeros(x.sizes, x.dtype), b.output(1), b.grad(0)}, {wrapped(b, 0)}));
}

absl::Status infer_log(const Call& call, TensorSpecs* out) {
  auto dim = dim_of(call, call.attr(0).as_int(), call.in(0)->rank());
  if (!dim.ok()) return dim.status();
  if (!is_floating(call.in(0)->dtype)) {
    return not_implemented_error("\"logcumsumexp_out_cpu\" not implemented for '",
                                 std::string(dtype_name(call.in(0)->dtype)), "'");
  }
  return infer_like_first(call, out);
}

// exp(x[i]) sum of g[k] / exp(y[k]) over k >= i, by logarithms, for g's two signs apart.
void backward_log(Backward& b) {
  static const OpRef exp("exp"), log("log"), flip("flip"), scan("logcumsumexp"), gt("gt");
  static const OpRef where("where");
  Tensor x = b.input(0), y = b.output(0), g = b.grad();
  if (b.input_spec(0).sizes.empty()) {
    b.set(0, g);
    return;
  }
  int64_t dim = wrapped(b, 0);
  auto part = [&](const Tensor& positive) {
    Tensor is = call(gt, {positive, nullptr}, {0});
    Tensor logs = call(where, {is, call(log, {positive}), nullptr},
                       {{}, -std::numeric_limits<double>::infinity()});
    Tensor back = call(flip, {sub(logs, y)}, {IntList{dim}});
    back = call(flip, {call(scan, {back}, {dim})}, {IntList{dim}});
    return call(exp, {add(back, x)});
  };
  b.set(0, sub(part(g), part(neg(g))));
}

absl::Status infer_linear(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  if (x->sizes != call.in(1)->sizes || x->dtype != call.in(1)->dtype) {
    return runtime_error("factors and addends must be alike, got ", x->text(), " and ",
                         call.in(1)->text());
  }
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return dim.status();
  return infer_like_first(call, out);
}

Tensor part_of(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  static const OpRef narrow("narrow");
  return call(narrow, {x}, {dim, start, length});
}

Tensor joined(Tensors parts, int64_t dim) {
  static const OpRef cat("cat");
  return call_list(cat, std::move(parts), {dim})[0];
}

// x moved by one place along dim, zeros before it or, with `back`, after it.
Tensor moved(const Tensor& x, int64_t dim, bool back) {
  if (x->poison) return x;
  Dims one = x->sizes;
  one[dim] = 1;
  int64_t n = x->sizes[dim];
  Tensor none = zeros(one, x->dtype);
  if (back) return joined({part_of(x, dim, 1, n - 1), none}, dim);
  return joined({none, part_of(x, dim, 0, n - 1)}, dim);
}

// s[k] = b[k] + a[k + 1] s[k + 1].
Tensor linear_back(const Tensor& a, const Tensor& b, int64_t dim) {
  static const OpRef flip("flip"), scan("scan_linear");
  if (a->poison) return a;
  Tensor factors = call(flip, {moved(a, dim, true)}, {IntList{dim}});
  Tensor addends = call(flip, {b}, {IntList{dim}});
  return call(flip, {call(scan, {factors, addends}, {dim})}, {IntList{dim}});
}

void backward_linear(Backward& b) {
  int64_t dim = wrapped(b, 0);
  Tensor down = linear_back(b.input(0), b.grad(), dim);
  b.set(0, mul(moved(b.output(0), dim, false), down));
  b.set(1, down);
}

// --- composites --------------------------------------------------------------------------------

Tensor difference(const Tensor& x, int64_t dim) {
  static const OpRef logical_xor("logical_xor");
  if (x->poison) return x;
  int64_t n = x->sizes[dim];
  if (n == 0) return x;
  Tensor after = part_of(x, dim, 1, n - 1), before = part_of(x, dim, 0, n - 1);
  if (x->dtype == DType::kBool) return call(logical_xor, {after, before});
  return sub(after, before);
}

Tensors compose_diff(const Call& call) {
  Tensor x = call.in(0);
  int64_t n = call.attr(0).as_int();
  if (x->rank() == 0) {
    return {poisoned(runtime_error("[diff] diff expects input to be at least one-dimensional"))};
  }
  if (n < 0) {
    return {poisoned(runtime_error("[diff] order must be non-negative but got ", n))};
  }
  auto dim = dim_of(call, call.attr(1).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  for (int i : {1, 2}) {
    const Tensor& extra = call.in(i);
    if (!extra) continue;
    bool fits = extra->rank() == x->rank();
    for (int k = 0; fits && k < x->rank(); ++k) fits = k == *dim || extra->sizes[k] == x->sizes[k];
    if (!fits) {
      return {poisoned(runtime_error("[diff] diff expects the shape of tensor to prepend or ",
                                     "append to match that of input except along the differencing ",
                                     "dimension, got ", extra->text(), " and ", x->text()))};
    }
  }
  if (n == 0) return {clone(x)};
  if (call.in(1) || call.in(2)) {
    Tensors parts;
    if (call.in(1)) parts.push_back(call.in(1));
    parts.push_back(x);
    if (call.in(2)) parts.push_back(call.in(2));
    x = joined(std::move(parts), *dim);
  }
  for (int64_t i = 0; i < n && !x->poison; ++i) {
    if (x->sizes[*dim] == 0) break;
    x = difference(x, *dim);
  }
  return {x};
}

// Widths times mean heights along dim.
absl::StatusOr<Tensor> strips(const Call& call, int64_t* dim) {
  const Tensor& y = call.in(0);
  const Tensor& x = call.in(1);
  auto found = dim_of(call, call.attr(1).as_int(), y->rank());
  if (!found.ok()) return found.status();
  if (y->rank() == 0) return index_error("y must have at least one dimension");
  *dim = *found;
  int64_t n = y->sizes[*dim];
  if (n < 1) n = 1;
  if (y->sizes[*dim] == 0) return y;
  Tensor heights = add(part_of(y, *dim, 1, n - 1), part_of(y, *dim, 0, n - 1));
  if (!x) return mul(mul(heights, call.attr(0).as_double()), 0.5);
  Tensor widths;
  if (x->rank() == 0) {
    return runtime_error("There must be one `x` value for each sample point");
  }
  if (x->rank() == 1) {
    if (x->sizes[0] != n) {
      return runtime_error("There must be one `x` value for each sample point");
    }
    Dims sizes(y->rank(), 1);
    sizes[*dim] = n - 1;
    widths = reshape(difference(x, 0), sizes);
  } else {
    int64_t along = *dim + x->rank() - y->rank();
    if (along < 0 || along >= x->rank() || x->sizes[along] != n) {
      return runtime_error("There must be one `x` value for each sample point");
    }
    widths = difference(x, along);
  }
  return mul(mul(heights, widths), 0.5);
}

Tensors compose_trapezoid(const Call& call) {
  int64_t dim = 0;
  auto areas = strips(call, &dim);
  if (!areas.ok()) return {poisoned(areas.status())};
  if ((*areas)->poison) return {*areas};
  return {sum(*areas, {dim + (*areas)->rank() - call.in(0)->rank()}, false)};
}

Tensors compose_cumulative(const Call& call) {
  static const OpRef cumsum("cumsum");
  int64_t dim = 0;
  auto areas = strips(call, &dim);
  if (!areas.ok()) return {poisoned(areas.status())};
  if ((*areas)->poison) return {*areas};
  return {gradwire::call(cumsum, {*areas}, {dim + (*areas)->rank() - call.in(0)->rank(), {}})};
}

// Central differences inside; edge_order 1 or 2 at both ends.
Tensors compose_gradient(const Call& call) {
  const Tensor& x = call.in(0);
  const Tensor& at = call.in(1);
  auto found = dim_of(call, call.attr(1).as_int(), x->rank());
  if (!found.ok()) return {poisoned(found.status())};
  int64_t dim = *found, order = call.attr(2).as_int();
  if (order != 1 && order != 2) {
    return {poisoned(
        runtime_error("[gradient] torch.gradient only supports edge_order=1 and edge_order=2."))};
  }
  int64_t n = x->rank() ? x->sizes[dim] : 1;
  if (x->rank() == 0 || n < order + 1) {
    return {poisoned(runtime_error("[gradient] torch.gradient expected each dimension size to be ",
                                   "at least edge_order+1"))};
  }
  if (at && (at->rank() != 1 || at->sizes[0] != n)) {
    return {
        poisoned(runtime_error("[gradient] torch.gradient expected spacing to have one ",
                               "coordinate for each element of dim ", dim, ", got ", at->text()))};
  }
  Dims row(x->rank(), 1);
  auto steps = [&](int64_t start, int64_t length) {
    row[dim] = length;
    return reshape(part_of(difference(at, 0), 0, start, length), row);
  };
  auto value = [&](int64_t start, int64_t length) { return part_of(x, dim, start, length); };
  double h = call.attr(0).as_double();
  Tensors parts;
  Tensor first, last;
  if (order == 1) {
    first = sub(value(1, 1), value(0, 1));
    last = sub(value(n - 1, 1), value(n - 2, 1));
    first = at ? div(first, steps(0, 1)) : div(first, h);
    last = at ? div(last, steps(n - 2, 1)) : div(last, h);
  } else if (at) {
    auto edge = [&](const Tensor& near, const Tensor& far, const Tensor& a, const Tensor& b,
                    const Tensor& c, bool front) {
      // The parabola's slope at the end whose neighbouring steps are `near` and `far`.
      Tensor both = add(near, far);
      Tensor outer = div(add(mul(near, 2), far), mul(near, both));
      Tensor middle = div(both, mul(near, far));
      Tensor inner = div(near, mul(far, both));
      Tensor slope = add(sub(mul(outer, a), mul(middle, b)), mul(inner, c));
      return front ? neg(slope) : slope;
    };
    first = edge(steps(0, 1), steps(1, 1), value(0, 1), value(1, 1), value(2, 1), true);
    last = edge(steps(n - 2, 1), steps(n - 3, 1), value(n - 1, 1), value(n - 2, 1), value(n - 3, 1),
                false);
  } else {
    first = div(sub(sub(mul(value(1, 1), 2), mul(value(0, 1), 1.5)), mul(value(2, 1), 0.5)), h);
    last = div(
        add(sub(mul(value(n - 1, 1), 1.5), mul(value(n - 2, 1), 2)), mul(value(n - 3, 1), 0.5)), h);
  }
  parts.push_back(first);
  if (n > 2) {
    if (at) {
      Tensor before = steps(0, n - 2), after = steps(1, n - 2);
      Tensor both = add(before, after);
      Tensor a = neg(div(after, mul(before, both)));
      Tensor b = div(sub(after, before), mul(before, after));
      Tensor c = div(before, mul(after, both));
      parts.push_back(
          add(add(mul(a, value(0, n - 2)), mul(b, value(1, n - 2))), mul(c, value(2, n - 2))));
    } else {
      parts.push_back(div(sub(value(2, n - 2), value(0, n - 2)), 2 * h));
    }
  }
  parts.push_back(last);
  return {joined(std::move(parts), dim)};
}

}  // namespace

void add_scan_rows(Catalog& c) {
  for (auto [number, name, doc] :
       {std::tuple{uint16_t{452}, "cummax",
                   "Running maxima along dim and where they are; nan wins."},
        std::tuple{uint16_t{453}, "cummin",
                   "Running minima along dim and where they are; nan wins."}}) {
    auto& row = c.add(
        number, OpKind::kKernel,
        std::string(name) + "(Tensor input, int dim) -> (Tensor values, Tensor indices)", doc);
    row.infer = infer_extreme;
    row.lower = lower_dim;
    row.backward = backward_extreme;
    row.saves_outputs = save(1);
    row.shape_rule = row.type_rule = "same";
    row.method = row.out = true;
  }
  auto& log = c.add(454, OpKind::kKernel, "logcumsumexp(Tensor input, int dim) -> Tensor",
                    "Logarithms of running sums of exp(input) along dim.");
  log.infer = infer_log;
  log.lower = lower_dim;
  log.backward = backward_log;
  log.saves_inputs = log.saves_outputs = save(0);
  log.shape_rule = log.type_rule = "same";
  log.method = log.out = true;
  auto& linear =
      c.add(455, OpKind::kKernel, "scan_linear(Tensor factors, Tensor addends, int dim) -> Tensor",
            "s[i] = addends[i] + factors[i] * s[i - 1] along dim.");
  linear.infer = infer_linear;
  linear.lower = lower_dim;
  linear.backward = backward_linear;
  linear.saves_inputs = linear.saves_outputs = save(0);
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn compose) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = compose;
    row.method = true;
    return row;
  };
  composite(456, "scan_linear_back(Tensor factors, Tensor addends, int dim) -> Tensor",
            "s[i] = addends[i] + factors[i + 1] * s[i + 1] along dim.",
            [](const Call& call) -> Tensors {
              auto dim = dim_of(call, call.attr(0).as_int(), call.in(0)->rank());
              if (!dim.ok()) return {poisoned(dim.status())};
              return {linear_back(call.in(0), call.in(1), *dim)};
            });
  composite(457,
            "diff(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, "
            "Tensor? append=None) -> Tensor",
            "The n-th differences of neighbours along dim.", compose_diff)
      .out = true;
  composite(458, "trapezoid(Tensor y, Tensor? x=None, float dx=1, int dim=-1) -> Tensor",
            "The integral of y along dim by trapezoids, over x or in steps of dx.",
            compose_trapezoid);
  composite(459, "trapz(Tensor y, Tensor? x=None, float dx=1, int dim=-1) -> Tensor", "trapezoid.",
            compose_trapezoid);
  composite(460, "cumulative_trapezoid(Tensor y, Tensor? x=None, float dx=1, int dim=-1) -> Tensor",
            "Running integrals of y along dim by trapezoids.", compose_cumulative);
  composite(461,
            "gradient_along(Tensor input, Tensor? coordinates=None, float spacing=1, int dim=-1, "
            "int edge_order=1) -> Tensor",
            "The derivative of samples along dim by differences.", compose_gradient)
      .method = false;
  c.keep_internal({"scan_linear", "scan_linear_back"});
}

}  // namespace gradwire
