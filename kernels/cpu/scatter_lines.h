// The loop of all scattering kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cpu/index_space.h"
#include "kernels/cpu/registry.h"

namespace gradwire::cpu {

// Calls combine(self[...][index[...]][...], src[...]) for every element of `index` (int64, already
// checked). Elements of one line along `dim` come in order on one thread, so duplicates are
// deterministic. Without `src` the second argument is src_value.
template <class T, class S, class Combine>
void scatter_lines(const TensorView& self, const TensorView& index, const TensorView* src,
                   S src_value, int64_t dim, Context& context, Combine&& combine) {
  TensorView none = index;
  none.strides.fill(0);
  const Lines<3> lines = lines_of<3>({&index, &self, src ? src : &none}, dim);
  const int64_t length = lines.lengths[0];
  if (length == 0) return;
  const auto step = lines.steps;
  const auto across = lines.outer.last_strides;
  const int64_t* entries = index.as<int64_t>();
  T* target = self.as<T>();
  const S* source = src ? src->as<S>() : &src_value;
  const bool rows = across[1] < step[1];
  context.pool.parallel_ranges(
      lines.outer.numel, std::max<int64_t>(1, 32768 / length), [&](int64_t begin, int64_t end) {
        for_runs(lines.outer, begin, end, [&](const auto& at, int64_t count, int64_t) {
          const int64_t* e = entries + at[0];
          T* to = target + at[1];
          const S* from = source + at[2];
          if (rows && across[0] == 0) {
            for (int64_t j = 0; j < length; ++j) {
              T* row = to + e[j * step[0]] * step[1];
              const S* values = from + j * step[2];
              for (int64_t i = 0; i < count; ++i)
                combine(row[i * across[1]], values[i * across[2]]);
            }
          } else if (rows) {
            for (int64_t j = 0; j < length; ++j) {
              for (int64_t i = 0; i < count; ++i) {
                combine(to[i * across[1] + e[j * step[0] + i * across[0]] * step[1]],
                        from[j * step[2] + i * across[2]]);
              }
            }
          } else {
            for (int64_t i = 0; i < count; ++i) {
              for (int64_t j = 0; j < length; ++j) {
                combine(to[i * across[1] + e[j * step[0] + i * across[0]] * step[1]],
                        from[j * step[2] + i * across[2]]);
              }
            }
          }
        });
      });
}

}  // namespace gradwire::cpu
