// Rows 1100 and 1111 to 1116: places, lookups by place, repetition of entries.
#include <algorithm>

#include "engine/ops/call.h"

namespace gradwire {
namespace {

const OpRef kSelect("index_select"), kNarrow("narrow");

Tensors compose_take(const Call& call) {
  const Tensor& x = call.in(0);
  const Tensor& index = call.in(1);
  if (index->dtype != DType::kInt64) {
    return {poisoned(runtime_error("take(): Expected a long tensor for index, but got ",
                                   std::string(dtype_name(index->dtype))))};
  }
  if (x->numel() == 0 && index->numel() != 0) {
    return {poisoned(index_error("take(): tried to take from an empty tensor"))};
  }
  static const OpRef at("index_at");
  return {call_list(at, {reshape(x, Dims{x->numel()}), index}, {IntList{0}, int64_t{0}})[0]};
}

Tensors compose_take_along_dim(const Call& call) {
  static const OpRef gather("gather");
  Tensor x = call.in(0), index = call.in(1);
  if (index->dtype != DType::kInt64) {
    return {
        poisoned(runtime_error("torch.take_along_dim(): dtype of indices should be Long but got ",
                               std::string(dtype_name(index->dtype))))};
  }
  if (call.attr(0).none()) {
    x = reshape(x, Dims{x->numel()});
    index = reshape(index, Dims{index->numel()});
    return {gradwire::call(gather, {x, index}, {0})};
  }
  if (x->rank() != index->rank()) {
    return {poisoned(runtime_error(
        "torch.take_along_dim(): input and indices should have the same number of dimensions, "
        "but got ",
        x->rank(), " dimensions for input, and ", index->rank(), " dimensions for indices"))};
  }
  auto dim = dim_of(call, call.attr(0).as_int(), x->rank());
  if (!dim.ok()) return {poisoned(dim.status())};
  if (x->rank() == 0) return {gradwire::call(gather, {x, index}, {0})};
  // Every dimension but dim is broadcast.
  Dims from = x->sizes, to = index->sizes;
  from[*dim] = to[*dim] = 1;
  auto both = broadcast_shapes(from, to);
  if (!both.ok()) return {poisoned(both.status())};
  Dims whole = *both, places = *both;
  whole[*dim] = x->sizes[*dim];
  if (x->sizes[*dim] > 0) {  // entries count around the end
    static const OpRef remainder("remainder");
    index = with_number(remainder, index, x->sizes[*dim]);
  }
  places[*dim] = index->sizes[*dim];
  return {gradwire::call(gather, {expand(x, whole), expand(index, places)}, {*dim})};
}

// --- places --------------------------------------------------------------------------------------

Tensors count_true(const Call& call) {
  static const OpRef count("count_nonzero");
  return {gradwire::call(count, {call.in(0)})};
}

Tensor places(const Call& call) {
  static const OpRef nonzero("nonzero_of_count");
  return gradwire::call(nonzero, {call.in(0)}, {call.values.empty() ? 0 : call.values[0]});
}

Tensors compose_argwhere(const Call& call) {
  return {places(call)};
}

Tensors compose_nonzero_static(const Call& call) {
  int64_t size = call.attr(0).as_int();
  if (size < 0) {
    return {poisoned(runtime_error("nonzero_static: 'size' must be an non-negative integer"))};
  }
  Tensor found = places(call);
  if (found->poison) return {found};
  int64_t count = found->sizes[0];
  if (size <= count) return {clone(gradwire::call(kNarrow, {found}, {0, 0, size}))};
  static const OpRef cat("cat"), full_op("full");
  Tensor rest = gradwire::call(
      full_op, {}, {IntList{size - count, found->sizes[1]}, call.attr(1), DType::kInt64});
  return {call_list(cat, {found, rest}, {0})[0]};
}

Tensors compose_unravel_index(const Call& call) {
  static const OpRef quotient("floor_divide"), rest("remainder");
  const Tensor& indices = call.in(0);
  const IntList& shape = call.attr(0).as_ints();
  if (!is_integral(indices->dtype)) {
    return {poisoned(type_error("expected 'indices' to be integer dtype, but got ",
                                std::string(dtype_name(indices->dtype))))};
  }
  for (int64_t size : shape) {
    if (size < 0) {
      return {poisoned(
          value_error("'shape' cannot have negative values, but got ", shape_text(shape)))};
    }
  }
  Tensors out(shape.size());
  int64_t step = 1;
  bool covered = false;  // the step is beyond any index
  Tensor wide = cast(indices, DType::kInt64);
  for (size_t i = shape.size(); i-- > 0;) {
    Tensor at = covered ? zeros(indices->sizes, DType::kInt64) : with_number(quotient, wide, step);
    out[i] = with_number(rest, at, shape[i]);
    covered = covered || __builtin_mul_overflow(step, shape[i], &step);
  }
  return out;
}

// --- one_hot -------------------------------------------------------------------------------------

Tensors measure_one_hot(const Call& call) {
  static const OpRef low("amin"), high("amax");
  const Tensor& x = call.in(0);
  if (x->dtype != DType::kInt64 || x->numel() == 0) return {};
  return {gradwire::call(low, {x}), gradwire::call(high, {x})};
}

Tensors compose_one_hot(const Call& call) {
  const Tensor& x = call.in(0);
  int64_t classes = call.attr(0).as_int();
  if (x->dtype != DType::kInt64) {
    return {
        poisoned(runtime_error("one_hot is only applicable to index tensor of type LongTensor."))};
  }
  if (x->numel() == 0 && classes <= 0) {
    return {poisoned(runtime_error("Can not infer total number of classes from empty tensor."))};
  }
  if (x->numel() != 0) {
    if (call.values.size() != 2) {
      return {poisoned(runtime_error("[one_hot] can only be used in a command of its own"))};
    }
    if (call.values[0] < 0) {
      return {poisoned(runtime_error("Class values must be non-negative."))};
    }
    if (classes == -1) {
      if (call.values[1] == INT64_MAX) return {poisoned(runtime_error("[one_hot] too many"))};
      classes = call.values[1] + 1;
    } else if (classes <= call.values[1]) {
      return {poisoned(runtime_error("Class values must be smaller than num_classes."))};
    }
  }
  static const OpRef scatter("scatter_at_value");
  Dims sizes = x->sizes;
  sizes.push_back(classes);
  Tensor block = zeros(sizes, DType::kInt64);
  if (block->poison || x->numel() == 0) return {block};
  return {gradwire::call(scatter, {block, unsqueeze(x, -1)}, {int64_t{-1}, int64_t{1}})};
}

// --- repeat_interleave ---------------------------------------------------------------------------

bool counts(const Tensor& t) {
  return t && (t->dtype == DType::kInt64 || t->dtype == DType::kInt32) && t->rank() <= 1;
}

// The sum of the repeats and the smallest.
Tensors measure_repeats(const Call& call) {
  static const OpRef low("amin");
  const Tensor& repeats = call.in(1);
  if (!counts(repeats) || repeats->numel() == 0) return {};
  Tensor wide = cast(repeats, DType::kInt64);
  return {sum(wide, {}, false), gradwire::call(low, {wide})};
}

Tensor interleaved(const Tensor& x, int64_t dim, int64_t times) {
  if (times < 0) return poisoned(runtime_error("Repeats must be non-negative"));
  Dims shown = x->sizes, sizes = x->sizes;
  shown.insert(shown.begin() + dim + 1, times);
  if (__builtin_mul_overflow(sizes[dim], times, &sizes[dim])) {
    return poisoned(runtime_error("[repeat_interleave] ", x->sizes[dim], " times ", times,
                                  " is more than a tensor can hold"));
  }
  Tensor wide = expand(unsqueeze(x, dim + 1), shown);
  if (wide->poison) return wide;
  Tensor out = reshape(wide, sizes);
  // Where merging needs no copy it is still x's memory.
  return !out->poison && out->storage == x->storage ? clone(out) : out;
}

Tensors compose_repeat_interleave(const Call& call) {
  Tensor x = call.in(0);
  const Tensor& repeats = call.in(1);
  int64_t dim = 0;
  if (call.attr(1).none() || x->rank() == 0) {
    if (!call.attr(1).none()) {
      auto wrapped = dim_of(call, call.attr(1).as_int(), 0);
      if (!wrapped.ok()) return {poisoned(wrapped.status())};
    }
    x = reshape(x, Dims{x->numel()});
  } else {
    auto wrapped = dim_of(call, call.attr(1).as_int(), x->rank());
    if (!wrapped.ok()) return {poisoned(wrapped.status())};
    dim = *wrapped;
  }
  const Attribute& expected = call.attr(2);
  auto checked = [&](int64_t total) {
    if (expected.none() || expected.as_int() == total) return absl::OkStatus();
    return runtime_error("allocated size does not match required size [repeat_interleave: ",
                         expected.as_int(), " for ", total, "]");
  };
  if (!repeats) {
    if (!call.attr(0).is_int()) {
      return {
          poisoned(type_error("repeat_interleave(): argument 'repeats' must be Tensor or int"))};
    }
    Tensor out = interleaved(x, dim, call.attr(0).as_int());
    if (out->poison) return {out};
    absl::Status status = checked(out->sizes[dim]);
    return {status.ok() ? out : poisoned(status)};
  }
  if (repeats->rank() > 1) {
    return {poisoned(runtime_error("repeats must be 0-dim or 1-dim tensor"))};
  }
  if (!counts(repeats)) {
    return {poisoned(not_implemented_error("\"repeat_interleave\" not implemented for '",
                                           std::string(dtype_name(repeats->dtype)), "'"))};
  }
  int64_t size = x->sizes[dim];
  if (repeats->numel() != 1 && repeats->numel() != size) {
    return {poisoned(runtime_error(
        "repeats must have the same size as input along dim, but got repeats.size(0) = ",
        repeats->numel(), " and input.size(", dim, ") = ", size))};
  }
  if (repeats->numel() == 0) return {clone(x)};
  if (call.values.size() != 2) {
    return {
        poisoned(runtime_error("[repeat_interleave] a tensor of repeats can only be used in a "
                               "command of its own"))};
  }
  if (call.values[1] < 0) return {poisoned(runtime_error("repeats can not be negative"))};
  int64_t total = call.values[0];
  if (repeats->numel() == 1 && size != 1) {
    Tensor out = interleaved(x, dim, total);
    if (out->poison) return {out};
    absl::Status status = checked(out->sizes[dim]);
    return {status.ok() ? out : poisoned(status)};
  }
  absl::Status status = checked(total);
  if (status.ok()) status = checked_numel(Dims{total, 8}).status();
  if (status.ok() && total == INT64_MAX) status = runtime_error("repeats are too large");
  if (!status.ok()) return {poisoned(status)};
  // The entry of place i is the number of entries whose repeats end at or before i.
  static const OpRef cumsum("cumsum"), add_at("scatter_add");
  Tensor ends = gradwire::call(cumsum, {reshape(cast(repeats, DType::kInt64), Dims{size})}, {0});
  Tensor marks = gradwire::call(
      add_at, {zeros(Dims{total + 1}, DType::kInt64), ends, full(Dims{size}, 1, DType::kInt64)},
      {0});
  Tensor entries = gradwire::call(kNarrow, {gradwire::call(cumsum, {marks}, {0})}, {0, 0, total});
  return {gradwire::call(kSelect, {x, entries}, {dim})};
}

}  // namespace

void add_lookup_rows(Catalog& c) {
  auto composite = [&](uint16_t number, std::string_view signature, std::string_view doc,
                       ComposeFn fn, std::string_view type_rule) -> OpDef& {
    OpDef& row = c.add(number, OpKind::kComposite, signature, doc);
    row.compose = fn;
    row.type_rule = std::string(type_rule);
    row.method = true;
    return row;
  };
  composite(1111, "take(Tensor input, Tensor index) -> Tensor",
            "The elements of input, seen as one vector, at the places index.", compose_take, "same")
      .out = true;
  composite(1112, "take_along_dim(Tensor input, Tensor indices, int? dim=None) -> Tensor",
            "gather with all other dimensions broadcast; without dim of input as one vector.",
            compose_take_along_dim, "same")
      .out = true;
  composite(1113, "argwhere(Tensor input) -> Tensor",
            "The places of the elements that are not zero, one a row.", compose_argwhere, "int64")
      .measure = count_true;
  auto& fixed =
      composite(1114, "nonzero_static(Tensor input, *, int size, int fill_value=-1) -> Tensor",
                "The first size places of the elements that are not zero, then rows of "
                "fill_value.",
                compose_nonzero_static, "int64");
  fixed.measure = count_true;
  fixed.out = true;
  composite(1115, "unravel_index(Tensor indices, int[] shape) -> Tensor[]",
            "For every dimension of shape the coordinate of each flat index.",
            compose_unravel_index, "int64")
      .shape_rule = "unravel_index";
  auto& one_hot =
      composite(1116, "nn.functional.one_hot(Tensor input, int num_classes=-1) -> Tensor",
                "1 at the class of each element along a new last dimension, else 0; "
                "-1 stands for the largest class and one.",
                compose_one_hot, "int64");
  one_hot.measure = measure_one_hot;
  one_hot.method = false;
  composite(1100,
            "repeat_interleave(Tensor input, Operand repeats, int? dim=None, *, "
            "int? output_size=None) -> Tensor",
            "Every entry of dim repeated by its own number; without dim of input as one vector.",
            compose_repeat_interleave, "same")
      .measure = measure_repeats;
}

}  // namespace gradwire
