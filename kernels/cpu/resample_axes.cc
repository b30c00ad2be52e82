// Places and weights, by torch's rules for each mode.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/resample.h"

namespace gradwire::cpu {
namespace {

// Cubic convolution with the given `a`; bounded by |x| < 2.
template <class C>
C cubic(C x, C a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

template <class C>
C triangle(C x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : C(0);
}

template <class C>
C scale_of(int64_t in, int64_t out, bool align, double factor) {
  if (align) return out > 1 ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : C(0);
  if (factor > 0) return static_cast<C>(1.0 / factor);
  return static_cast<C>(in) / static_cast<C>(out);
}

template <class C>
void nearest(ResampleAxis<C>& axis, bool exact, double factor) {
  auto scale = scale_of<float>(axis.in, axis.out, false, factor);
  for (int64_t o = 0; o < axis.out; ++o) {
    float at = (static_cast<float>(o) + (exact ? 0.5f : 0.0f)) * scale;
    float last = static_cast<float>(axis.in - 1);
    auto place = static_cast<int64_t>(std::min(std::floor(at), last));
    axis.place.push_back(std::clamp<int64_t>(place, 0, axis.in - 1));
    axis.weight.push_back(C(1));
  }
}

template <class C>
void interpolating(ResampleAxis<C>& axis, bool is_cubic, bool align, double factor) {
  axis.taps = is_cubic ? 4 : 2;
  C scale = scale_of<C>(axis.in, axis.out, align, factor);
  for (int64_t o = 0; o < axis.out; ++o) {
    auto at = static_cast<C>(o);
    C source = align ? scale * at : scale * (at + C(0.5)) - C(0.5);
    if (!is_cubic) source = std::max(source, C(0));
    source = std::min(source, static_cast<C>(axis.in) + 1);
    auto first = static_cast<int64_t>(std::floor(source));
    if (first >= axis.in) first = axis.in - 1;
    C part = std::clamp(source - static_cast<C>(first), C(0), C(1));
    for (int64_t t = 0; t < axis.taps; ++t) {
      int64_t place = is_cubic ? first - 1 + t : first + t;
      axis.place.push_back(std::clamp<int64_t>(place, 0, axis.in - 1));
      C distance = static_cast<C>(is_cubic ? t - 1 : t) - part;
      axis.weight.push_back(is_cubic ? cubic(distance, C(-0.75)) : triangle(distance));
    }
  }
}

// Windows that grow with the scale when an axis shrinks.
template <class C>
void antialiased(ResampleAxis<C>& axis, bool is_cubic, bool align, double factor) {
  C scale = scale_of<C>(axis.in, axis.out, align, factor);
  C half = is_cubic ? C(2) : C(1);
  C support = scale >= 1 ? half * scale : half;
  C inverse = scale >= 1 ? C(1) / scale : C(1);
  support = std::min(support, static_cast<C>(axis.in) + 1);
  axis.taps = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  for (int64_t o = 0; o < axis.out; ++o) {
    C center = scale * (static_cast<C>(o) + C(0.5));
    auto begin = std::max<int64_t>(static_cast<int64_t>(center - support + C(0.5)), 0);
    auto end = std::min<int64_t>(static_cast<int64_t>(center + support + C(0.5)), axis.in);
    int64_t n = std::clamp<int64_t>(end - begin, 0, axis.taps);
    C total = 0;
    size_t row = axis.weight.size();
    for (int64_t t = 0; t < axis.taps; ++t) {
      C x = (static_cast<C>(t + begin) - center + C(0.5)) * inverse;
      C w = t >= n ? C(0) : is_cubic ? cubic(x, C(-0.5)) : triangle(x);
      total += w;
      axis.place.push_back(std::clamp<int64_t>(begin + t, 0, axis.in - 1));
      axis.weight.push_back(w);
    }
    if (total == 0) continue;
    for (int64_t t = 0; t < axis.taps; ++t) axis.weight[row + static_cast<size_t>(t)] /= total;
  }
}

}  // namespace

template <class C>
ResampleAxes<C> resample_axes(const KernelCall& call, const TensorView& in, const TensorView& out) {
  auto mode = static_cast<ResampleMode>(call.attributes[0].as_int());
  bool align = call.attributes[1].as_bool(), antialias = call.attributes[2].as_bool();
  const FloatList& scales = call.attributes[3].as_floats();
  ResampleAxes<C> axes;
  int spatial = in.rank - 2;
  for (int d = 0; d < spatial; ++d) {
    ResampleAxis<C>& axis = axes[static_cast<size_t>(3 - spatial + d)];
    axis = {in.sizes[d + 2], out.sizes[d + 2], 1, {}, {}};
    double factor = scales.empty() ? 0 : scales[static_cast<size_t>(d)];
    if (mode == ResampleMode::kNearest || mode == ResampleMode::kNearestExact) {
      nearest(axis, mode == ResampleMode::kNearestExact, factor);
    } else if (antialias) {
      antialiased(axis, mode == ResampleMode::kCubic, align, factor);
    } else {
      interpolating(axis, mode == ResampleMode::kCubic, align, factor);
    }
  }
  return axes;
}

template ResampleAxes<float> resample_axes<float>(const KernelCall&, const TensorView&,
                                                  const TensorView&);
template ResampleAxes<double> resample_axes<double>(const KernelCall&, const TensorView&,
                                                    const TensorView&);

}  // namespace gradwire::cpu
