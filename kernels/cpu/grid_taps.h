// Where a sampling grid points: the inputs that one output of grid_sample reads, their weights and
// the weights' derivatives by the coordinates. All by torch's rules.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace gradwire::cpu {

enum class GridMode : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
enum class GridPadding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

struct GridRule {
  GridMode mode = GridMode::kLinear;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;
  bool planar = true;  // images of two dimensions
};

// A coordinate and its derivative by the grid's value.
template <class C>
struct GridPoint {
  C at = 0, slope = 0;
};

// The nearest value that T holds: torch's coordinates have the dtype of the grid.
template <class T, class C>
C rounded(C x) {
  return static_cast<C>(static_cast<T>(x));
}

// From [-1, 1] to positions in [0, size), rounded to T after every operation.
template <class T, class C>
GridPoint<C> unnormalize(C x, int64_t size, const GridRule& rule) {
  auto n = static_cast<C>(size);
  auto r = [](C value) { return rounded<T>(value); };
  if (rule.planar) {
    if (rule.align_corners) return {r(r(x + 1) * r((n - 1) / 2)), (n - 1) / 2};
    return {r(r(r(x + 1) * r(n / 2)) - C(0.5)), n / 2};
  }
  if (rule.align_corners) return {r(r(r(x + 1) / 2) * (n - 1)), (n - 1) / 2};
  return {r(r(r(r(x + 1) * n) - 1) / 2), n / 2};
}

template <class C>
GridPoint<C> clip(GridPoint<C> p, int64_t size) {
  auto last = static_cast<C>(size - 1);
  if (!(p.at > 0)) return {0, 0};
  if (p.at >= last) return {last, 0};
  return p;
}

// Reflects between low / 2 and high / 2.
template <class C>
GridPoint<C> reflect(GridPoint<C> p, int64_t low, int64_t high) {
  if (low == high) return {0, 0};
  C least = static_cast<C>(low) / 2, span = static_cast<C>(high - low) / 2;
  C sign = 1, x = p.at - least;
  if (x < 0) {
    sign = -1;
    x = -x;
  }
  C extra = std::fmod(x, span);
  bool even = std::fmod(std::floor(x / span), C(2)) == 0;
  return even ? GridPoint<C>{extra + least, p.slope * sign}
              : GridPoint<C>{span - extra + least, -p.slope * sign};
}

template <class C>
GridPoint<C> settle(GridPoint<C> p, int64_t size, const GridRule& rule) {
  if (rule.padding == GridPadding::kReflection) {
    p = rule.align_corners ? reflect(p, 0, 2 * (size - 1)) : reflect(p, -1, 2 * size - 1);
  }
  if (rule.padding != GridPadding::kZeros) p = clip(p, size);
  // Beyond what an index holds is outside.
  if (!std::isfinite(p.at) || std::abs(p.at) > C(2147483646)) p.at = -100;
  return p;
}

// The taps along one axis; place -1 is outside.
template <class C>
struct GridAxis {
  int taps = 1;
  std::array<int64_t, 4> place{};
  std::array<C, 4> weight{}, slope{};
};

// Coefficients of the cubic convolution at distances up to 1 and up to 2, rounded to T as well.
template <class T, class C>
C cubic_near(C x, C a) {
  auto r = [](C value) { return rounded<T>(value); };
  return r(r(r(r(r((a + 2) * x) - (a + 3)) * x) * x) + 1);
}
template <class T, class C>
C cubic_far(C x, C a) {
  auto r = [](C value) { return rounded<T>(value); };
  return r(r(r(r(r(r(a * x) - 5 * a) * x) + 8 * a) * x) - 4 * a);
}

template <class T, class C>
C slope_near(C x, C a) {
  auto r = [](C value) { return rounded<T>(value); };
  return r(r(r(3 * (a + 2) * x) - 2 * (a + 3)) * x);
}
template <class T, class C>
C slope_far(C x, C a) {
  auto r = [](C value) { return rounded<T>(value); };
  return r(r(r(r(3 * a * x) - 10 * a) * x) + 8 * a);
}

template <class T, class C>
GridAxis<C> cubic_axis(C x, int64_t size, const GridRule& rule) {
  GridAxis<C> axis;
  axis.taps = 4;
  GridPoint<C> p = unnormalize<T>(x, size, rule);
  if (!std::isfinite(p.at) || std::abs(p.at) > C(2147483646)) p.at = -100;
  C base = std::floor(p.at), t = p.at - base, a = C(-0.75);
  C x0 = rounded<T>(t + 1), x1 = t, x2 = rounded<T>(1 - t), x3 = rounded<T>(2 - t);
  axis.weight = {cubic_far<T>(x0, a), cubic_near<T>(x1, a), cubic_near<T>(x2, a),
                 cubic_far<T>(x3, a)};
  // Derivatives by t.
  axis.slope = {slope_far<T>(x0, a), slope_near<T>(x1, a), -slope_near<T>(x2, a),
                -slope_far<T>(x3, a)};
  for (int i = 0; i < 4; ++i) {
    axis.slope[static_cast<size_t>(i)] *= p.slope;
    GridPoint<C> q = settle<C>({base - 1 + static_cast<C>(i), 1}, size, rule);
    auto place = static_cast<int64_t>(q.at);
    axis.place[static_cast<size_t>(i)] = place >= 0 && place < size ? place : -1;
  }
  return axis;
}

template <class T, class C>
GridAxis<C> grid_axis(C x, int64_t size, const GridRule& rule) {
  if (rule.mode == GridMode::kCubic) return cubic_axis<T>(x, size, rule);
  GridAxis<C> axis;
  GridPoint<C> p = settle(unnormalize<T>(x, size, rule), size, rule);
  auto inside = [size](C at) {
    auto place = static_cast<int64_t>(at);
    return place >= 0 && place < size ? place : -1;
  };
  if (rule.mode == GridMode::kNearest) {
    axis.place[0] = inside(std::nearbyint(p.at));
    axis.weight[0] = 1;
    return axis;
  }
  C base = std::floor(p.at);
  axis.taps = 2;
  axis.place = {inside(base), inside(base + 1)};
  axis.weight = {base + 1 - p.at, p.at - base};
  axis.slope = {-p.slope, p.slope};
  return axis;
}

}  // namespace gradwire::cpu
