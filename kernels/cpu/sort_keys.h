// Elements as unsigned keys whose order is torch's: NaN above everything, -0 equal to 0.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/index_types.h"

namespace gradwire::cpu {

// 32 bits hold every dtype but float64 and int64.
template <class T>
inline constexpr bool has_key32 = sizeof(T) < 8;

template <class T>
using Key = std::conditional_t<has_key32<T>, uint32_t, uint64_t>;

template <class T>
inline constexpr Key<T> kNanKey = ~Key<T>{0};

template <class T>
Key<T> key_of(T element) {
  using K = Key<T>;
  constexpr K kSign = K{1} << (8 * sizeof(K) - 1);
  const auto v = widen(element);
  if constexpr (std::is_floating_point_v<Wide<T>>) {
    if (v != v) return kNanKey<T>;
    const K bits = std::bit_cast<K>(v + 0);  // -0 + 0 is 0
    return bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<Wide<T>>) {
    return static_cast<K>(v) ^ kSign;
  } else {
    return static_cast<K>(v);
  }
}

// A key with its position in the line: ordered by key, then by position.
struct Entry64 {
  uint64_t key;
  uint64_t position;

  bool operator<(const Entry64& o) const {
    return key != o.key ? key < o.key : position < o.position;
  }
};

// Short keys share one word with the position (lines of up to 2^32 elements).
template <class T>
using Entry = std::conditional_t<has_key32<T>, uint64_t, Entry64>;

template <class T>
Entry<T> make_entry(Key<T> key, int64_t position) {
  if constexpr (has_key32<T>) {
    return static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(position);
  } else {
    return {key, static_cast<uint64_t>(position)};
  }
}

inline int64_t position_of(uint64_t entry) {
  return static_cast<int64_t>(entry & 0xffffffffu);
}
inline int64_t position_of(const Entry64& entry) {
  return static_cast<int64_t>(entry.position);
}

// Entries of a line; with `descending` the order of keys is reversed, of positions not.
template <class T>
void make_entries(const T* line, int64_t stride, int64_t n, bool descending, Entry<T>* entries) {
  for (int64_t i = 0; i < n; ++i) {
    const Key<T> key = key_of(line[i * stride]);
    entries[i] = make_entry<T>(descending ? static_cast<Key<T>>(~key) : key, i);
  }
}

// Sorts n entries that stand in the order of their positions. `spare` has room for n entries.
void sort_entries(uint64_t* entries, uint64_t* spare, int64_t n);
void sort_entries(Entry64* entries, Entry64* spare, int64_t n);

}  // namespace gradwire::cpu
