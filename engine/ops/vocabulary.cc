// The op vocabulary of compositions and gradients (call.h).
#include "engine/ops/call.h"

namespace gradwire {

Tensor add(const Tensor& a, const Tensor& b) {
  static const OpRef op("add");
  return call(op, {a, b}, {{}, {}, 1});
}
Tensor sub(const Tensor& a, const Tensor& b) {
  static const OpRef op("sub");
  return call(op, {a, b}, {{}, {}, 1});
}
Tensor mul(const Tensor& a, const Tensor& b) {
  static const OpRef op("mul");
  return call(op, {a, b});
}
Tensor mul(const Tensor& a, double b) {
  static const OpRef op("mul");
  return with_number(op, a, b);
}
Tensor div(const Tensor& a, const Tensor& b) {
  static const OpRef op("true_divide");
  return call(op, {a, b});
}
Tensor div(const Tensor& a, double b) {
  static const OpRef op("true_divide");
  return with_number(op, a, b);
}
Tensor neg(const Tensor& a) {
  static const OpRef op("neg");
  return call(op, {a});
}
Tensor reshape(const Tensor& a, std::span<const int64_t> sizes) {
  static const OpRef op("reshape");
  return call(op, {a}, {IntList(sizes.begin(), sizes.end())});
}
Tensor transpose(const Tensor& a, int64_t dim0, int64_t dim1) {
  static const OpRef op("transpose");
  return call(op, {a}, {dim0, dim1});
}
Tensor permute(const Tensor& a, IntList dims) {
  static const OpRef op("permute");
  return call(op, {a}, {std::move(dims)});
}
Tensor unsqueeze(const Tensor& a, int64_t dim) {
  static const OpRef op("unsqueeze");
  return call(op, {a}, {dim});
}
Tensor squeeze(const Tensor& a, int64_t dim) {
  static const OpRef op("squeeze");
  return call(op, {a}, {IntList{dim}});
}
Tensor expand(const Tensor& a, std::span<const int64_t> sizes) {
  static const OpRef op("expand");
  return call(op, {a}, {IntList(sizes.begin(), sizes.end())});
}
Tensor sum(const Tensor& a, IntList dims, bool keepdim) {
  static const OpRef op("sum");
  return call(op, {a}, {std::move(dims), keepdim});
}
Tensor cast(const Tensor& a, DType dtype) {
  if (a->dtype == dtype || a->poison) return a;
  static const OpRef op("to");
  return call(op, {a}, {dtype});
}
Tensor contiguous(const Tensor& a) {
  if (a->poison || a->contiguous()) return a;
  static const OpRef op("contiguous");
  return call(op, {a});
}
Tensor clone(const Tensor& a) {
  static const OpRef op("clone");
  return call(op, {a});
}
Tensor zeros(std::span<const int64_t> sizes, DType dtype) {
  return full(sizes, 0, dtype);
}
Tensor full(std::span<const int64_t> sizes, double value, DType dtype) {
  static const OpRef op("full");
  return call(op, {}, {IntList(sizes.begin(), sizes.end()), value, dtype});
}
Tensor matmul(const Tensor& a, const Tensor& b) {
  static const OpRef op("matmul");
  return call(op, {a, b});
}

Tensor sum_to(const Tensor& grad, std::span<const int64_t> sizes) {
  if (grad->poison || std::span<const int64_t>(grad->sizes).size() == sizes.size()) {
    if (grad->poison) return grad;
    bool same = true;
    for (size_t i = 0; i < sizes.size(); ++i) same = same && grad->sizes[i] == sizes[i];
    if (same) return grad;
  }
  size_t lead = grad->sizes.size() - sizes.size();
  IntList dims;
  for (size_t i = 0; i < grad->sizes.size(); ++i) {
    if (i < lead || (sizes[i - lead] == 1 && grad->sizes[i] != 1)) {
      dims.push_back(static_cast<int64_t>(i));
    }
  }
  Tensor summed = dims.empty() ? grad : sum(grad, dims, true);
  return lead ? reshape(summed, sizes) : summed;
}

}  // namespace gradwire
