// Rows 1162 to 1165: padding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/ops/call.h"
#include "engine/ops/formula.h"

namespace gradwire {
namespace {

enum Mode : int64_t { kConstant = 0, kReflect = 1, kReplicate = 2, kCircular = 3 };
constexpr int64_t kMost = int64_t{1} << 40;

// pad_nd: attributes mode, before, after (by dimension), value.
// Strides of a dense result whose dimensions keep the order that x's have in memory.
Dims strides_like(const Tensor& x, const Dims& sizes) {
  IntList order = layout_of(x);
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = step;
    step *= std::max<int64_t>(sizes[order[k]], 1);
  }
  return strides;
}

absl::Status infer_pad(const Call& call, TensorSpecs* out) {
  const Tensor& x = call.in(0);
  const IntList &before = call.attr(1).as_ints(), &after = call.attr(2).as_ints();
  Dims sizes = x->sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    sizes[d] += before[d] + after[d];
    if (sizes[d] < 0) {
      return runtime_error(
          "The input size ", x->sizes[d], ", plus negative padding ", before[d], " and ", after[d],
          " resulted in a negative output size, which is invalid. Check dimension ", d,
          " of your input.");
    }
  }
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  out->push_back({x->dtype, sizes, strides_like(x, sizes)});
  return absl::OkStatus();
}

// A whole number that the dtype holds, as a C cast of one in range.
Attribute fill_value(const Attribute& value, DType dtype) {
  if (is_floating(dtype)) return value.as_double();
  if (dtype == DType::kBool) return static_cast<int64_t>(value.as_double() != 0);
  if (!value.is_float()) return value.as_int();
  double v = value.as_double();
  return std::abs(v) < 9e18 ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
}

absl::Status lower_pad(const Call& call, Task* task) {
  Attribute fill = fill_value(call.attr(3), call.in(0)->dtype);
  if (!is_floating(call.in(0)->dtype) && call.in(0)->dtype != DType::kInt64) {
    auto low = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint64_t>(fill.as_int())));
    switch (call.in(0)->dtype) {
      case DType::kInt16:
        low = static_cast<int16_t>(low);
        break;
      case DType::kInt8:
        low = static_cast<int8_t>(low);
        break;
      case DType::kUInt8:
        low = static_cast<uint8_t>(low);
        break;
      default:
        break;
    }
    fill = low;
  }
  task->attributes = {call.attr(0), call.attr(1), fill};
  return absl::OkStatus();
}

IntList negated(const Attribute& a) {
  IntList list = a.as_ints();
  for (int64_t& n : list) n = -n;
  return list;
}

void backward_pad(Backward& b) {
  static const OpRef pad("pad_nd"), back("pad_nd_backward");
  if (b.attr(0).as_int() == kConstant) {
    b.set(0, call(pad, {b.grad()}, {kConstant, negated(b.attr(1)), negated(b.attr(2)), 0.0}));
    return;
  }
  const Dims& sizes = b.input_spec(0).sizes;
  b.set(0, call(back, {b.grad()},
                {b.attr(0), b.attr(1), b.attr(2), IntList(sizes.begin(), sizes.end())}));
}

absl::Status infer_pad_backward(const Call& call, TensorSpecs* out) {
  const IntList& sizes = call.attr(3).as_ints();
  out->push_back({call.in(0)->dtype, Dims(sizes.begin(), sizes.end()), {}});
  return absl::OkStatus();
}

absl::Status lower_pad_backward(const Call& call, Task* task) {
  task->attributes = {call.attr(0), call.attr(1)};
  return absl::OkStatus();
}

void backward_pad_backward(Backward& b) {
  static const OpRef pad("pad_nd");
  b.set(0, call(pad, {b.grad()}, {b.attr(0), b.attr(1), b.attr(2), 0.0}));
}

absl::Status check_edges(const Call& call, int64_t mode, const IntList& before,
                         const IntList& after) {
  const Tensor& x = call.in(0);
  size_t pairs = call.attr(0).as_ints().size() / 2;
  size_t rank = x->sizes.size();
  bool supported = rank >= 2 && rank <= 5 && (pairs + 1 == rank || pairs + 2 == rank);
  if (!supported) {
    return not_implemented_error(
        "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, got ",
        x->text(), " and padding of ", pairs, " dimensions");
  }
  for (size_t d = rank - pairs; d < rank; ++d) {
    int64_t n = x->sizes[d], most = std::max(before[d], after[d]);
    if (mode == kReflect && most >= n) {
      return runtime_error(
          "Argument #4: Padding size should be less than the corresponding input dimension, but "
          "got: padding (",
          before[d], ", ", after[d], ") at dimension ", d, " of input ", shape_text(x->sizes));
    }
    if (mode == kCircular && most > n) {
      return runtime_error("Padding value causes wrapping around more than once.");
    }
    if (mode == kReplicate && n == 0) {
      return runtime_error("Expected an input with non-zero dimensions to pad, got ",
                           shape_text(x->sizes));
    }
    if (n + before[d] + after[d] < (mode == kCircular ? 0 : 1)) {
      return runtime_error("input (", n, ") is too small: padding (", before[d], ", ", after[d],
                           ") at dimension ", d, " leaves ", n + before[d] + after[d]);
    }
  }
  return absl::OkStatus();
}

// Amounts by dimension from torch's list, which begins with the last one.
absl::Status amounts_of(const Call& call, IntList* before, IntList* after) {
  const IntList& pad = call.attr(0).as_ints();
  size_t rank = call.in(0)->sizes.size();
  if (pad.size() % 2) return runtime_error("Padding length must be divisible by 2");
  if (pad.size() > 2 * rank) {
    return runtime_error(
        "Padding length should be less than or equal to two times the input "
        "dimension but got padding length ",
        pad.size(), " and input of dimension ", rank);
  }
  before->assign(rank, 0);
  after->assign(rank, 0);
  for (size_t i = 0; i < pad.size(); ++i) {
    if (pad[i] > kMost || pad[i] < -kMost) {
      return runtime_error("[", call.op->name, "] padding ", pad[i], " is too large");
    }
    (i % 2 ? *after : *before)[rank - 1 - i / 2] = pad[i];
  }
  return absl::OkStatus();
}

Tensors pad_by(const Call& call, int64_t mode, const Attribute& value) {
  static const OpRef pad("pad_nd");
  IntList before, after;
  absl::Status status = amounts_of(call, &before, &after);
  if (status.ok() && mode != kConstant) status = check_edges(call, mode, before, after);
  if (!status.ok()) return {poisoned(status)};
  Tensor x = call.in(0);
  if (before.empty()) return {clone(x)};
  if (mode == kCircular) {
    // What is cut away does not come back at the other side.
    IntList cut_before = before, cut_after = after;
    bool cuts = false;
    for (size_t d = 0; d < before.size(); ++d) {
      cut_before[d] = std::min<int64_t>(before[d], 0);
      cut_after[d] = std::min<int64_t>(after[d], 0);
      before[d] -= cut_before[d];
      after[d] -= cut_after[d];
      cuts = cuts || cut_before[d] || cut_after[d];
    }
    if (cuts) {
      x = gradwire::call(pad, {x}, {kConstant, cut_before, cut_after, 0.0});
    }
  }
  return {gradwire::call(pad, {x}, {mode, before, after, value})};
}

Tensors compose_pad(const Call& call) {
  const std::string& mode = call.attr(1).as_string();
  const Attribute& value = call.attr(2);
  if (mode == "constant") return pad_by(call, kConstant, value.none() ? Attribute(0.0) : value);
  if (value.is_number() && value.as_double() != 0) {
    return {poisoned(value_error("Padding mode \"", mode, "\" doesn't take in value argument"))};
  }
  if (mode == "reflect") return pad_by(call, kReflect, 0.0);
  if (mode == "replicate") return pad_by(call, kReplicate, 0.0);
  if (mode == "circular") return pad_by(call, kCircular, 0.0);
  return {poisoned(not_implemented_error("Unrecognised padding mode ", mode))};
}

}  // namespace

void add_pad_rows(Catalog& c) {
  OpDef& pad = c.add(1162, OpKind::kKernel,
                     "pad_nd(Tensor input, int mode, int[] before, int[] after, Scalar value) "
                     "-> Tensor",
                     "Padding (or, where negative, cutting) at both ends of every dimension.");
  pad.infer = infer_pad;
  pad.lower = lower_pad;
  pad.backward = backward_pad;
  OpDef& back = c.add(1163, OpKind::kKernel,
                      "pad_nd_backward(Tensor grad, int mode, int[] before, int[] after, "
                      "int[] sizes) -> Tensor",
                      "The gradient of pad_nd's input for the modes that repeat elements.");
  back.infer = infer_pad_backward;
  back.lower = lower_pad_backward;
  back.backward = backward_pad_backward;
  OpDef& row = c.add(1164, OpKind::kComposite,
                     "nn.functional.pad(Tensor input, int[] pad, str mode='constant', "
                     "Scalar? value=None) -> Tensor",
                     "input with pad[2i] elements before and pad[2i + 1] after the i-th dimension "
                     "from the last: a constant, or reflect, replicate or circular.");
  row.compose = compose_pad;
  row.type_rule = "same";
  OpDef& constant = c.add(1165, OpKind::kComposite,
                          "constant_pad_nd(Tensor input, int[] pad, Scalar value=0) -> Tensor",
                          "nn.functional.pad in its constant mode.");
  constant.compose = [](const Call& call) { return pad_by(call, kConstant, call.attr(1)); };
  constant.type_rule = "same";
  c.keep_internal({"pad_nd", "pad_nd_backward"});
}

}  // namespace gradwire
