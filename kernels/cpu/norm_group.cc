#include <atomic>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/norm_rows.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {
namespace {

constexpr int64_t kGrainElements = 1 << 14;

int64_t padded(int64_t n) {
  return (n + 15) / 16 * 16;
}

// x [N, C, ...] as N * G rows of C/G channels of `plane` elements.
struct Groups {
  int64_t images = 0, channels = 0, groups = 1, per_group = 0, plane = 1;

  Groups(const TensorView& x, int64_t g) : images(x.sizes[0]), channels(x.sizes[1]), groups(g) {
    per_group = channels / groups;
    for (int d = 2; d < x.rank; ++d) plane *= x.sizes[d];
  }
  int64_t length() const { return per_group * plane; }
  int64_t grain() const { return std::max<int64_t>(1, kGrainElements / (length() + 1)); }
};

struct GroupMap {
  IndexMap inner;
  int64_t image_stride = 0, group_stride = 0;

  GroupMap(const TensorView& v, const Groups& g) {
    if (!v.present()) return;
    inner.add(g.per_group, v.strides[1]);
    for (int d = 2; d < v.rank; ++d) inner.add(v.sizes[d], v.strides[d]);
    image_stride = v.strides[0];
    group_stride = g.per_group * v.strides[1];
  }
  int64_t offset(int64_t n, int64_t g) const { return n * image_stride + g * group_stride; }
};

int64_t offset_in(const TensorView& table, int64_t n, int64_t g) {
  return n * table.strides[0] + g * table.strides[1];
}

template <class T>
absl::Status forward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView& x = call.inputs[0];
  const TensorView &y = call.outputs[0], &mean = call.outputs[1], &rstd = call.outputs[2];
  Groups groups(x, call.attributes[0].as_int());
  double eps = call.attributes[1].as_double();
  GroupMap from(x, groups), to(y, groups);
  DenseInput<C> weight(call.inputs[1], pool), bias(call.inputs[2], pool);
  if (!weight.ok() || !bias.ok()) return scratch_error();
  int64_t n = groups.length();
  std::atomic<bool> failed = false;
  pool.parallel_ranges(
      groups.images * groups.groups, groups.grain(), [&](int64_t begin, int64_t end) {
        Scratch scratch(static_cast<size_t>(2 * padded(n) + 16) * sizeof(C));
        C* buffer = scratch.as<C>();
        if (!buffer) {
          failed = true;
          return;
        }
        for (int64_t r = begin; r < end; ++r) {
          int64_t image = r / groups.groups, group = r % groups.groups;
          const C* row =
              read_row(x.as<const T>() + from.offset(image, group), from.inner, n, buffer);
          RowStatistics<C> s = row_statistics(row, n, eps);
          write_element(mean, offset_in(mean, image, group), s.mean);
          write_element(rstd, offset_in(rstd, image, group), s.rstd);
          if (n == 0) continue;
          T* at = y.as<T>() + to.offset(image, group);
          C* out = row_target(at, to.inner, n, buffer + padded(n));
          for (int64_t c = 0; c < groups.per_group; ++c) {
            int64_t channel = group * groups.per_group + c;
            C scale = s.rstd * (weight.data() ? weight.data()[channel] : C(1));
            row_affine(row + c * groups.plane, out + c * groups.plane, groups.plane, s.mean, scale,
                       bias.data() ? bias.data()[channel] : C(0));
          }
          write_row(out, buffer + padded(n), n, at, to.inner);
        }
      });
  return failed ? scratch_error() : absl::OkStatus();
}

template <class T>
absl::Status backward(const KernelCall& call, ThreadPool& pool) {
  using C = ComputeOf<T>;
  const TensorView &grad = call.inputs[0], &x = call.inputs[1];
  const TensorView &mean = call.inputs[3], &rstd = call.inputs[4];
  const TensorView& dx = call.outputs[0];
  Groups groups(x, mean.sizes[1]);
  GroupMap grads(grad, groups), from(x, groups), to(dx, groups);
  DenseInput<C> weight(call.inputs[2], pool);
  DenseOutput<C> dweight(call.outputs[1], pool), dbias(call.outputs[2], pool);
  int64_t n = groups.length();
  // Per image and channel: sum of g xhat, sum of g.
  int64_t parts = groups.images * groups.channels;
  Scratch partial(static_cast<size_t>(2 * parts + 16) * sizeof(C));
  if (!weight.ok() || !dweight.ok() || !dbias.ok() || !partial.data()) return scratch_error();
  C* dots = partial.as<C>();
  C* sums = dots + parts;
  std::atomic<bool> failed = false;
  pool.parallel_ranges(
      groups.images * groups.groups, groups.grain(), [&](int64_t begin, int64_t end) {
        Scratch scratch(static_cast<size_t>(3 * padded(n) + 16) * sizeof(C));
        C* buffer = scratch.as<C>();
        if (!buffer) {
          failed = true;
          return;
        }
        for (int64_t r = begin; r < end; ++r) {
          int64_t image = r / groups.groups, group = r % groups.groups;
          const C* g =
              read_row(grad.as<const T>() + grads.offset(image, group), grads.inner, n, buffer);
          const C* row = read_row(x.as<const T>() + from.offset(image, group), from.inner, n,
                                  buffer + padded(n));
          C m = static_cast<C>(read_element(mean, offset_in(mean, image, group)));
          C k = static_cast<C>(read_element(rstd, offset_in(rstd, image, group)));
          C total = 0, dot = 0;
          int64_t first = image * groups.channels + group * groups.per_group;
          for (int64_t c = 0; c < groups.per_group; ++c) {
            C w = weight.data() ? weight.data()[group * groups.per_group + c] : C(1);
            int64_t at = c * groups.plane;
            sums[first + c] = row_sum(g + at, groups.plane);
            dots[first + c] = row_centered_dot(g + at, row + at, groups.plane, m) * k;
            total += w * sums[first + c];
            dot += w * dots[first + c];
          }
          if (n == 0 || !dx.present()) continue;
          T* at = dx.as<T>() + to.offset(image, group);
          C* out = row_target(at, to.inner, n, buffer + 2 * padded(n));
          C b = k * k * dot / static_cast<C>(n), c0 = k * total / static_cast<C>(n);
          for (int64_t c = 0; c < groups.per_group; ++c) {
            C w = weight.data() ? weight.data()[group * groups.per_group + c] : C(1);
            int64_t p = c * groups.plane;
            row_gradient(g + p, row + p, out + p, groups.plane, m, k * w, b, c0);
          }
          write_row(out, buffer + 2 * padded(n), n, at, to.inner);
        }
      });
  if (failed) return scratch_error();
  for (int64_t c = 0; c < groups.channels; ++c) {
    C dot = 0, sum = 0;
    for (int64_t i = 0; i < groups.images; ++i) {
      dot += dots[i * groups.channels + c];
      sum += sums[i * groups.channels + c];
    }
    if (dweight.data()) dweight.data()[c] = dot;
    if (dbias.data()) dbias.data()[c] = sum;
  }
  dweight.store();
  dbias.store();
  return absl::OkStatus();
}

absl::Status group_norm(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(
      call.inputs[0].dtype, [&](auto tag) { status = forward<decltype(tag)>(call, context.pool); });
  return known ? status : dtype_error("group_norm", call.inputs[0].dtype);
}
GW_CPU_KERNEL("group_norm", group_norm);

absl::Status group_norm_backward(const KernelCall& call, Context& context) {
  absl::Status status;
  bool known = visit_floating(call.inputs[1].dtype, [&](auto tag) {
    status = backward<decltype(tag)>(call, context.pool);
  });
  return known ? status : dtype_error("group_norm_backward", call.inputs[1].dtype);
}
GW_CPU_KERNEL("group_norm_backward", group_norm_backward);

}  // namespace
}  // namespace gradwire::cpu
