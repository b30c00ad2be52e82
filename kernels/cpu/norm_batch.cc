#include <cmath>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/norm_channels.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

double element_or(const TensorView& vector, int64_t i, double otherwise) {
  return vector.present() ? read_element(vector, i * vector.strides[0]) : otherwise;
}

void set_element(const TensorView& vector, int64_t i, double value) {
  if (vector.present()) write_element(vector, i * vector.strides[0], value);
}

TensorView output_or_none(const KernelCall& call, size_t i) {
  return i < call.outputs.size() ? call.outputs[i] : TensorView{};
}

double rounded(const TensorView& like, double value) {
  return like.dtype == DType::kFloat64 ? value : static_cast<double>(static_cast<float>(value));
}

template <class T>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  const TensorView &x = call.inputs[0], &weight = call.inputs[1], &bias = call.inputs[2];
  const TensorView &save_mean = call.outputs[1], &save_rstd = call.outputs[2];
  TensorView running_mean = output_or_none(call, 3), running_var = output_or_none(call, 4);
  double momentum = call.attributes[0].as_double(), eps = call.attributes[1].as_double();
  int64_t channels = x.sizes[1];
  double count = channels > 0 ? static_cast<double>(x.numel() / channels) : 0;
  Scratch scratch(static_cast<size_t>(4 * channels + 8) * sizeof(double));
  if (!scratch.data()) return scratch_error();
  double* mean = scratch.as<double>();
  double* variance = mean + channels;
  double* scale = variance + channels;
  double* shift = scale + channels;
  TensorView none;
  GW_RETURN_IF_ERROR(channel_sums<T>(ChannelSum::kValue, none, x, nullptr, mean, nullptr, pool));
  for (int64_t c = 0; c < channels; ++c) mean[c] = rounded(x, mean[c] / count);
  GW_RETURN_IF_ERROR(
      channel_sums<T>(ChannelSum::kDeviation, none, x, mean, variance, nullptr, pool));
  for (int64_t c = 0; c < channels; ++c) {
    double rstd = rounded(x, 1 / std::sqrt(variance[c] / count + eps));
    scale[c] = rstd * element_or(weight, c, 1);
    shift[c] = element_or(bias, c, 0);
    set_element(save_mean, c, mean[c]);
    set_element(save_rstd, c, rstd);
  }
  GW_RETURN_IF_ERROR(channel_affine<T>(x, mean, scale, shift, call.outputs[0], pool));
  for (int64_t c = 0; c < channels; ++c) {
    double unbiased = variance[c] / (count - 1);
    set_element(running_mean, c,
                (1 - momentum) * element_or(running_mean, c, 0) + momentum * mean[c]);
    set_element(running_var, c,
                (1 - momentum) * element_or(running_var, c, 0) + momentum * unbiased);
  }
  return absl::OkStatus();
}

// dx = w rstd (g - mean(g) - xhat mean(g xhat)), dweight = sum of g xhat, dbias = sum of g
template <class T>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  const TensorView &grad = call.inputs[0], &x = call.inputs[1], &weight = call.inputs[2];
  int64_t channels = x.sizes[1];
  double count = channels > 0 ? static_cast<double>(x.numel() / channels) : 0;
  Scratch scratch(static_cast<size_t>(6 * channels + 8) * sizeof(double));
  if (!scratch.data()) return scratch_error();
  double* mean = scratch.as<double>();
  double* sums = mean + channels;
  double* dots = sums + channels;
  double* a = dots + channels;
  double* b = a + channels;
  double* c0 = b + channels;
  for (int64_t c = 0; c < channels; ++c) mean[c] = element_or(call.inputs[3], c, 0);
  GW_RETURN_IF_ERROR(channel_sums<T>(ChannelSum::kGradient, grad, x, mean, sums, dots, pool));
  TensorView dweight = output_or_none(call, 1), dbias = output_or_none(call, 2);
  for (int64_t c = 0; c < channels; ++c) {
    double rstd = element_or(call.inputs[4], c, 1);
    a[c] = rstd * element_or(weight, c, 1);
    b[c] = a[c] * rstd * rstd * dots[c] / count;
    c0[c] = a[c] * sums[c] / count;
  }
  if (call.outputs[0].present()) {
    GW_RETURN_IF_ERROR(channel_gradient<T>(grad, x, mean, a, b, c0, call.outputs[0], pool));
  }
  for (int64_t c = 0; c < channels; ++c) {
    set_element(dweight, c, dots[c] * element_or(call.inputs[4], c, 1));
    set_element(dbias, c, sums[c]);
  }
  return absl::OkStatus();
}

absl::Status batch_norm(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(
      call.inputs[0].dtype, [&](auto tag) { status = forward<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("batch_norm", call.inputs[0].dtype);
}
GW_CPU_KERNEL("batch_norm", batch_norm);

absl::Status batch_norm_backward(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[1].dtype, [&](auto tag) {
    status = backward<decltype(tag)>(call, context.pool);
  });
  return known ? status : dtype_error("batch_norm_backward", call.inputs[1].dtype);
}
GW_CPU_KERNEL("batch_norm_backward", batch_norm_backward);

}  // namespace
}  // namespace gradwire::cpu
