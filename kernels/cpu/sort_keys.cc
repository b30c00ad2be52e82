#include "kernels/cpu/sort_keys.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gradwire::cpu {
namespace {

constexpr int64_t kRadixFrom = 1024;

uint8_t digit(uint64_t entry, int pass) {
  return static_cast<uint8_t>(entry >> (32 + 8 * pass));
}
uint8_t digit(const Entry64& entry, int pass) {
  return static_cast<uint8_t>(entry.key >> (8 * pass));
}

// Least significant byte first, which is stable; bytes that all entries share are skipped.
template <int kPasses, class E>
void radix_sort(E* entries, E* spare, int64_t n) {
  std::array<std::array<int64_t, 256>, kPasses> counts{};
  for (int64_t i = 0; i < n; ++i) {
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][digit(entries[i], pass)];
  }
  E* from = entries;
  E* to = spare;
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& count = counts[pass];
    if (count[digit(from[0], pass)] == n) continue;
    int64_t start = 0;
    for (int64_t& c : count) start += std::exchange(c, start);
    for (int64_t i = 0; i < n; ++i) to[count[digit(from[i], pass)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::copy(from, from + n, entries);
}

}  // namespace

void sort_entries(uint64_t* entries, uint64_t* spare, int64_t n) {
  if (n < kRadixFrom) {
    std::sort(entries, entries + n);
  } else {
    radix_sort<4>(entries, spare, n);
  }
}

void sort_entries(Entry64* entries, Entry64* spare, int64_t n) {
  if (n < kRadixFrom) {
    std::sort(entries, entries + n);
  } else {
    radix_sort<8>(entries, spare, n);
  }
}

}  // namespace gradwire::cpu
