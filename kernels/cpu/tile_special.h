// Special functions the C library lacks, in double. Safe from any thread.
#pragma once

namespace gradwire::cpu::special {

// Inverse of erf on (-1, 1); infinite at the ends, NaN outside.
double erfinv(double x);
// ln |gamma(x)|; infinite at 0, -1, -2, ...
double lgamma(double x);
// d/dx ln gamma(x); -inf at +0, inf at -0, NaN at -1, -2, ...
double digamma(double x);
// The n-th derivative of digamma, n a whole number >= 0; infinite at 0, -1, -2, ... for n >= 1.
double polygamma(double n, double x);

}  // namespace gradwire::cpu::special
