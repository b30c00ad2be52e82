// Rows 1156 to 1161: power-average pooling and the inverse of max pooling.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/ops/call.h"
#include "engine/ops/spatial.h"

namespace gradwire {
namespace {

// sign(m) relu(|m|) scaled to the window's sum of powers, to the power 1 / p.
template <int kSpatial>
Tensors compose_lp_pool(const Call& call) {
  static const OpRef pow("pow"), sign("sign"), abs("abs"), relu("relu");
  static const OpRef average(kSpatial == 1   ? "nn.functional.avg_pool1d"
                             : kSpatial == 2 ? "nn.functional.avg_pool2d"
                                             : "nn.functional.avg_pool3d");
  double p = call.attr(0).as_double();
  auto kernel = spread(call.attr(1), kSpatial, "kernel_size");
  if (!kernel.ok()) return {poisoned(kernel.status())};
  double window = 1;
  for (int64_t k : *kernel) window *= static_cast<double>(k);
  Tensor powers = with_number(pow, call.in(0), p);
  Tensor mean =
      gradwire::call(average, {powers}, {*kernel, call.attr(2), IntList{0}, call.attr(3)});
  Tensor positive =
      mul(gradwire::call(sign, {mean}), gradwire::call(relu, {gradwire::call(abs, {mean})}));
  return {with_number(pow, mul(positive, window), 1.0 / p)};
}

// The sizes before pooling: as asked within a stride of the usual ones.
absl::StatusOr<Dims> unpooled_sizes(const Call& call, int spatial) {
  const Tensor& x = call.in(0);
  auto kernel = spread(call.attr(0), spatial, "kernel_size");
  bool own = call.attr(1).none() || call.attr(1).as_ints().empty();
  auto stride = spread(own ? call.attr(0) : call.attr(1), spatial, "stride");
  auto padding = spread(call.attr(2), spatial, "padding");
  for (auto* list : {&kernel, &stride, &padding}) {
    if (!list->ok()) return list->status();
  }
  IntList asked = call.attr(3).as_ints();
  if (static_cast<int>(asked.size()) == spatial + 2) asked.erase(asked.begin(), asked.begin() + 2);
  if (!asked.empty() && static_cast<int>(asked.size()) != spatial) {
    return value_error("output_size should be a sequence containing ", spatial, " or ", spatial + 2,
                       " elements, but it has a length of '", call.attr(3).as_ints().size(), "'");
  }
  size_t lead = static_cast<size_t>(x->rank() - spatial);
  Dims sizes(x->sizes.begin(), x->sizes.begin() + static_cast<int64_t>(lead));
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int d = 0; d < spatial; ++d) {
    int64_t n = x->sizes[lead + d], k = (*kernel)[d], s = (*stride)[d], p = (*padding)[d];
    if (n <= 0 || k <= 0 || s <= 0 || p < 0) {
      return runtime_error("[", call.op->name,
                           "] Expected a non-empty input, positive kernel_size and stride and "
                           "non-negative padding");
    }
    if (std::max({n, k, s, p}) > kMost) {
      return runtime_error("[", call.op->name, "] sizes and settings must be below 2^30");
    }
    int64_t usual = (n - 1) * s + k - 2 * p;
    if (!asked.empty() && (asked[d] <= usual - s || asked[d] >= usual + s)) {
      return value_error("invalid output_size: dim ", d, " must be between ", usual - s, " and ",
                         usual + s, ", got ", asked[d]);
    }
    sizes.push_back(asked.empty() ? usual : asked[d]);
    if (sizes.back() <= 0) {
      return runtime_error("[", call.op->name, "] the output would have size ", sizes.back());
    }
  }
  auto numel = checked_numel(sizes);
  if (!numel.ok()) return numel.status();
  return sizes;
}

template <int kSpatial>
Tensors compose_unpool(const Call& call) {
  static const OpRef scatter("scatter");
  const Tensor &x = call.in(0), &indices = call.in(1);
  if (indices->dtype != DType::kInt64) {
    return {poisoned(runtime_error("elements in indices should be type int64 but got: ",
                                   std::string(dtype_name(indices->dtype))))};
  }
  if (x->rank() != kSpatial + 1 && x->rank() != kSpatial + 2) {
    return {
        poisoned(runtime_error("Input to max_unpooling", kSpatial, "d should be a ", kSpatial + 1,
                               "d or ", kSpatial + 2, "d Tensor, but got ", x->text()))};
  }
  if (x->sizes != indices->sizes) {
    return {poisoned(runtime_error(
        "Expected shape of indices to be same as that of the input tensor (", shape_text(x->sizes),
        ") but got indices tensor with shape: ", shape_text(indices->sizes)))};
  }
  auto sizes = unpooled_sizes(call, kSpatial);
  if (!sizes.ok()) return {poisoned(sizes.status())};
  auto lead = sizes->end() - kSpatial;
  Dims planes(sizes->begin(), lead), flat = planes;
  int64_t plane = 1;
  for (auto it = lead; it != sizes->end(); ++it) plane *= *it;
  planes.push_back(plane);
  int64_t inputs = 1;
  for (int d = x->rank() - kSpatial; d < x->rank(); ++d) inputs *= x->sizes[d];
  flat.push_back(inputs);
  Tensor placed = gradwire::call(
      scatter, {zeros(planes, x->dtype), reshape(indices, flat), reshape(x, flat)}, {-1});
  return {reshape(placed, *sizes)};
}

}  // namespace

void add_unpool_rows(Catalog& c) {
  struct Family {
    uint16_t lp, unpool;
    const char* dims;
    ComposeFn lp_fn, unpool_fn;
  };
  const Family families[] = {{1156, 1159, "1d", compose_lp_pool<1>, compose_unpool<1>},
                             {1157, 1160, "2d", compose_lp_pool<2>, compose_unpool<2>},
                             {1158, 1161, "3d", compose_lp_pool<3>, compose_unpool<3>}};
  for (const Family& f : families) {
    OpDef& lp = c.add(f.lp, OpKind::kComposite,
                      absl::StrCat("nn.functional.lp_pool", f.dims,
                                   "(Tensor input, float norm_type, int[] kernel_size, "
                                   "int[]? stride=None, bool ceil_mode=False) -> Tensor"),
                      "(sum of x ** norm_type over each window) ** (1 / norm_type).");
    lp.compose = f.lp_fn;
    OpDef& unpool =
        c.add(f.unpool, OpKind::kComposite,
              absl::StrCat("nn.functional.max_unpool", f.dims,
                           "(Tensor input, Tensor indices, int[] kernel_size, int[]? stride=None, "
                           "int[] padding=[0], int[]? output_size=None) -> Tensor"),
              "Every value at its index in a plane of zeros of the size before pooling.");
    unpool.compose = f.unpool_fn;
    unpool.type_rule = "same";
  }
}

}  // namespace gradwire
