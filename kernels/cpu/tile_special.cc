#include "kernels/cpu/tile_special.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

namespace gradwire::cpu::special {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Bernoulli numbers B(2k) for k = 1, 2, ...
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,      -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,   7.0 / 6,       -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330, 854513.0 / 138};

// Hurwitz's zeta by Euler-Maclaurin: the sum over k >= 0 of (q + k)^-s, for s > 1 and q > 0.
double zeta_positive(double s, double q) {
  if (s > 1000) return std::pow(q, -s);
  double sum = 0;
  while (q < 12 + s / 2) {
    sum += std::pow(q, -s);
    q += 1;
  }
  double term = std::pow(q, -s);
  sum += q * term / (s - 1) + term / 2;
  double factor = s * term / q;  // s (s+1) ... (s+2k-2) q^(-s-2k+1)
  double factorial = 2;          // (2k)!
  int k = 1;
  for (double bernoulli : kBernoulli) {
    sum += bernoulli / factorial * factor;
    factor *= (s + 2 * k - 1) * (s + 2 * k) / (q * q);
    factorial *= (2.0 * k + 1) * (2.0 * k + 2);
    ++k;
  }
  return sum;
}

// For whole s. The terms below zero are the difference of two sums above zero.
double zeta(double s, double q) {
  double floor = std::floor(q);
  if (q <= 0 && q == floor) return kInfinity;
  if (q > 0) return zeta_positive(s, q);
  double fraction = q - floor;
  double below = zeta_positive(s, 1 - fraction) - zeta_positive(s, 1 - q);
  return zeta_positive(s, fraction) + (std::fmod(s, 2) == 0 ? below : -below);
}

}  // namespace

// Giles' approximation, then Newton's steps against erf or, near the ends, the logarithm of erfc.
double erfinv(double x) {
  double size = std::fabs(x);
  if (!(size <= 1)) return kNan;
  if (size == 1) return std::copysign(kInfinity, x);
  double w = -std::log1p(-size * size);
  double y;
  if (w < 5) {
    w -= 2.5;
    y = 2.81022636e-08;
    for (double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                     -0.00417768164, 0.246640727, 1.50140941}) {
      y = c + y * w;
    }
    y *= size;
  } else {
    y = std::sqrt(w - 0.5 * std::log(kPi * w));
  }
  bool tail = size > 0.5;
  double target = tail ? std::log(1 - size) : size;
  for (int i = 0; i < 4; ++i) {
    double slope = 2 / std::sqrt(kPi) * std::exp(-y * y);
    double rest = tail ? std::erfc(y) : 0;
    y += tail ? (std::log(rest) - target) * rest / slope : (target - std::erf(y)) / slope;
  }
  return std::copysign(y, x);
}

double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x == kInfinity) return x;
  double sum = 0;
  if (x < 0) {
    double whole;
    double fraction = std::modf(x, &whole);
    if (fraction == 0 || !(x > -kInfinity)) return kNan;
    sum = -kPi / std::tan(kPi * fraction);
    x = 1 - x;
  }
  while (x < 12) {
    sum -= 1 / x;
    x += 1;
  }
  double square = 1 / (x * x);
  double power = square;
  double tail = 0;
  int k = 1;
  for (double bernoulli : kBernoulli) {
    tail += bernoulli / (2 * k) * power;
    power *= square;
    ++k;
  }
  return sum + std::log(x) - 0.5 / x - tail;
}

double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (!(n > 0) || n != std::floor(n) || std::isnan(x)) return kNan;
  if (x == kInfinity) return 0;
  if (x == -kInfinity) return kNan;
  double sign = std::fmod(n, 2) == 1 ? 1 : -1;
  return sign * std::exp(std::lgamma(n + 1)) * zeta(n + 1, x);
}

}  // namespace gradwire::cpu::special
