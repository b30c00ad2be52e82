// How many Philox counters a random kernel consumes, the same in every backend: the engine
// reserves them at dispatch, so order and threads do not change the numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace gradwire {

// Element i, in row-major order, uses word i % 4 of counter offset + i / 4, or, where it needs 64
// bits, words 2 * (i % 2) and 2 * (i % 2) + 1 of counter offset + i / 2. `numel` counts the
// output's elements; for multinomial, the larger of the output's and the probabilities'. The 64-bit
// count is an upper bound that holds for every dtype. 0 for a kernel that draws nothing.
constexpr uint64_t philox_counters(std::string_view kernel, int64_t numel) {
  const uint64_t n = numel < 0 ? 0 : static_cast<uint64_t>(numel);
  if (kernel == "bernoulli" || kernel == "bernoulli_tensor" || kernel == "dropout") {
    return n / 4 + (n % 4 != 0);
  }
  if (kernel == "uniform" || kernel == "normal" || kernel == "exponential" || kernel == "randint" ||
      kernel == "randperm" || kernel == "multinomial") {
    return n / 2 + n % 2;
  }
  return 0;
}

}  // namespace gradwire
