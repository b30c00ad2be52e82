// Fills a tensor from a Philox stream, block by block, in parallel.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/index_types.h"
#include "kernels/cpu/philox.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {

inline constexpr int64_t kRandomBlock = 2048;   // words drawn at a time
inline constexpr int64_t kRandomGrain = 16384;  // elements of one unit of work

// The words of elements [begin, begin + n), `begin` a multiple of 4; rounds n up to whole blocks.
template <int kWords>
void draw(const KernelCall& call, int64_t begin, int64_t n, uint32_t* words) {
  constexpr int64_t kElements = 4 / kWords;
  philox_fill(call.seed, call.offset + static_cast<uint64_t>(begin / kElements),
              (n + kElements - 1) / kElements, words);
}

// Writes values[0, n) as the elements [begin, begin + n) of `out`.
template <class V>
void store_range(const TensorView& out, const Space<1>& space, int64_t begin, int64_t n,
                 const V* values) {
  dispatch_dtype(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = out.as<T>();
    const int64_t stride = space.inner_stride(0);
    for_runs(space, begin, begin + n, [&](const auto& offsets, int64_t count, int64_t linear) {
      const V* from = values + (linear - begin);
      for (int64_t i = 0; i < count; ++i) to[offsets[0] + i * stride] = convert<T>(from[i]);
    });
  });
}

// make(words, n, values) turns kWords words an element into values of type V; it may write up to
// the next multiple of 8 values. Values are converted to the output's dtype.
template <class V, int kWords, class Make>
void generate(const KernelCall& call, const TensorView& out, Context& context, Make&& make) {
  constexpr int64_t kBlock = kRandomBlock / kWords;
  const Space<1> space = space_of<1>({&out});
  bool direct = out.contiguous();
  dispatch_dtype(out.dtype,
                 [&](auto type) { direct &= std::is_same_v<typename decltype(type)::type, V>; });
  context.pool.parallel_ranges(space.numel, kRandomGrain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kRandomBlock + 64];
    alignas(64) V values[kBlock + 8];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      draw<kWords>(call, i, n, words);
      if (direct && n % 8 == 0) {
        make(words, n, out.as<V>() + i);
        continue;
      }
      make(words, n, values);
      if (direct) {
        std::memcpy(out.as<V>() + i, values, static_cast<size_t>(n) * sizeof(V));
      } else {
        store_range(out, space, i, n, values);
      }
    }
  });
}

}  // namespace gradwire::cpu
