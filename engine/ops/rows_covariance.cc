// Rows 874, 875 and 891: covariances.
#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

absl::Status check_weights(const char* name, const Tensor& w, int64_t observations, bool floating) {
  if (w->rank() > 1) {
    return runtime_error("cov(): expected ", name, " to have one or fewer dimensions but got ",
                         name, " with ", w->rank(), " dimensions");
  }
  if (floating != is_floating(w->dtype) || w->dtype == DType::kBool) {
    return runtime_error("cov(): expected ", name, " to have ",
                         floating ? "floating point" : "integral", " dtype but got ", name,
                         " with ", std::string(dtype_name(w->dtype)), " dtype");
  }
  if (w->numel() != observations) {
    return runtime_error("cov(): expected ", name, " to have the same numel as there are ",
                         "observations in the input but got ", w->numel(), " != ", observations);
  }
  return absl::OkStatus();
}

Tensor checked(const Tensor& w, const char* refused, std::string text) {
  static const OpRef op("checked_weights");
  return call(op, {w}, {refused, std::move(text)});
}

Tensor covariance(const Tensor& input, int64_t correction, const Tensor& fweights,
                  const Tensor& aweights) {
  static const OpRef sub_op("sub"), rsub("rsub"), clamp("clamp_min"), squeeze_op("squeeze");
  Tensor in = input->rank() < 2 ? reshape(input, Dims{1, input->numel()}) : input;
  if (in->poison) return in;
  int64_t observations = in->sizes[1];
  Tensor w, aw;
  if (fweights) w = checked(fweights, "negative", "cov(): fweights cannot be negative");
  if (aweights) {
    aw = checked(aweights, "negative", "cov(): aweights cannot be negative");
    w = w ? mul(w, aw) : aw;
  }
  Tensor total = full({}, static_cast<double>(observations), DType::kInt64);
  if (w) {
    total = checked(sum(w, {}, false), "zero", "cov(): weights sum to zero, can't be normalized");
  }
  Tensor mean = div(sum(w ? mul(in, w) : in, {1}, false), total);
  Tensor factor;
  if (aw && correction != 0) {
    Tensor share = div(sum(mul(w, aw), {}, false), total);
    factor = sub(total, mul(share, static_cast<double>(correction)));
  } else {
    factor = with_number(sub_op, total, correction, 1);
  }
  factor = call(clamp, {factor, nullptr}, {0});
  Tensor centered = sub(in, unsqueeze(mean, 1));
  Tensor weighted = w ? mul(centered, w) : centered;
  if (centered->poison || weighted->poison) return centered->poison ? centered : weighted;
  if (weighted->dtype != centered->dtype) centered = cast(centered, weighted->dtype);
  Tensor c = div(matmul(centered, transpose(weighted, 0, 1)), factor);
  return call(squeeze_op, {c}, {{}});
}

absl::Status check_cov(const Call& call) {
  const Tensor& x = call.in(0);
  if (x->rank() > 2) {
    return runtime_error(call.op->name, "(): expected input to have two or fewer dimensions but ",
                         "got an input with ", x->rank(), " dimensions");
  }
  if (x->dtype == DType::kBool) {
    return runtime_error(call.op->name, "(): bool dtype is not supported for input");
  }
  return absl::OkStatus();
}

Tensors compose_cov(const Call& call) {
  absl::Status status = check_cov(call);
  if (!status.ok()) return fail(call, status);
  const Tensor& x = call.in(0);
  int64_t observations = x->rank() < 2 ? x->numel() : x->sizes[1];
  if (call.in(1)) status = check_weights("fweights", call.in(1), observations, false);
  if (status.ok() && call.in(2)) {
    status = check_weights("aweights", call.in(2), observations, true);
  }
  if (!status.ok()) return fail(call, status);
  return {covariance(x, call.attr(0).as_int(), call.in(1), call.in(2))};
}

Tensors compose_corrcoef(const Call& call) {
  static const OpRef sqrt("sqrt"), low("clamp_min"), high("clamp_max");
  absl::Status status = check_cov(call);
  if (!status.ok()) return fail(call, status);
  Tensor c = covariance(call.in(0), 1, nullptr, nullptr);
  if (c->poison) return {c};
  if (c->rank() == 0) return {div(c, c)};
  Tensor deviation = gradwire::call(sqrt, {diagonal_of(c)});
  c = div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0));
  c = gradwire::call(low, {c, nullptr}, {-1});
  return {gradwire::call(high, {c, nullptr}, {1})};
}

}  // namespace

void add_covariance_rows(Catalog& c) {
  auto row = [&](uint16_t number, std::string_view signature, std::string_view doc, ComposeFn fn,
                 std::string_view types) {
    OpDef& r = c.add(number, OpKind::kComposite, signature, doc);
    r.compose = fn;
    r.type_rule = std::string(types);
    r.method = true;
  };
  row(874,
      "cov(Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
      "Tensor",
      "The covariances of the rows of input [variables, observations].", compose_cov,
      "promote_float");
  row(875, "corrcoef(Tensor input) -> Tensor", "The correlations of the rows of input.",
      compose_corrcoef, "promote_float");
  auto& weights =
      c.add(891, OpKind::kKernel, "checked_weights(Tensor input, str refused, str text) -> Tensor",
            "input, or an error where an element is negative or zero.");
  weights.infer = infer_like_first;
  weights.backward = [](Backward& b) { b.set(0, b.grad()); };
  weights.checks = true;
  c.keep_internal({"checked_weights"});
}

}  // namespace gradwire
