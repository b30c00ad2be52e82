// Iteration over the elements of several tensors of one shape, in row-major order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/tensor_view.h"

namespace gradwire::cpu {

// A shape with N sets of strides (in elements, of any sign). Dimensions of size 1 are dropped and
// neighbours that step alike in all N are merged, so the linear order never changes.
template <int N>
struct Space {
  int rank = 0;
  int64_t numel = 1;
  std::array<int64_t, kMaxRank + 1> sizes{};
  std::array<std::array<int64_t, N>, kMaxRank + 1> strides{};  // [dim][operand]

  int64_t last_size = 1;
  std::array<int64_t, N> last_strides{};

  // Appends an innermost dimension.
  void push(int64_t size, const std::array<int64_t, N>& stride) {
    numel *= size;
    if (size == 1) return;
    last_strides = stride;
    if (rank > 0) {
      bool merges = true;
      for (int k = 0; k < N; ++k) merges &= strides[rank - 1][k] == stride[k] * size;
      if (merges) {
        sizes[rank - 1] *= size;
        strides[rank - 1] = stride;
        last_size = sizes[rank - 1];
        return;
      }
    }
    sizes[rank] = size;
    strides[rank] = stride;
    last_size = size;
    ++rank;
  }

  // The innermost dimension; size 1 for a space of one element.
  int64_t inner_size() const { return last_size; }
  int64_t inner_stride(int operand) const { return last_strides[operand]; }

  // Offsets of the element with that linear index.
  std::array<int64_t, N> offsets_of(int64_t linear) const {
    std::array<int64_t, N> offsets{};
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t i = linear % sizes[d];
      linear /= sizes[d];
      for (int k = 0; k < N; ++k) offsets[k] += i * strides[d][k];
    }
    return offsets;
  }
};

// The space of views that share the sizes of the first.
template <int N>
Space<N> space_of(const std::array<const TensorView*, N>& views) {
  Space<N> space;
  for (int d = 0; d < views[0]->rank; ++d) {
    std::array<int64_t, N> stride;
    for (int k = 0; k < N; ++k) stride[k] = views[k]->strides[d];
    space.push(views[0]->sizes[d], stride);
  }
  return space;
}

// Calls f(offsets, count, linear) for each run of elements along the innermost dimension that
// covers the linear range [begin, end).
template <int N, class F>
void for_runs(const Space<N>& space, int64_t begin, int64_t end, F&& f) {
  if (begin >= end) return;
  const int last = space.rank - 1;
  if (last < 0) {
    f(std::array<int64_t, N>{}, int64_t{1}, int64_t{0});
    return;
  }
  std::array<int64_t, kMaxRank + 1> index;
  std::array<int64_t, N> offsets{};
  int64_t rest = begin;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % space.sizes[d];
    rest /= space.sizes[d];
    for (int k = 0; k < N; ++k) offsets[k] += index[d] * space.strides[d][k];
  }
  while (true) {
    const int64_t count = std::min(space.sizes[last] - index[last], end - begin);
    f(offsets, count, begin);
    begin += count;
    if (begin >= end) return;
    for (int k = 0; k < N; ++k) offsets[k] -= index[last] * space.strides[last][k];
    index[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      for (int k = 0; k < N; ++k) offsets[k] += space.strides[d][k];
      if (++index[d] < space.sizes[d]) break;
      for (int k = 0; k < N; ++k) offsets[k] -= space.sizes[d] * space.strides[d][k];
      index[d] = 0;
    }
  }
}

// Lines along one dimension of N tensors, with a space over all other dimensions of the first.
template <int N>
struct Lines {
  Space<N> outer;
  std::array<int64_t, N> lengths{};
  std::array<int64_t, N> steps{};
};

// `dim` is normalised; a 0-dim tensor counts as one line of length 1.
template <int N>
Lines<N> lines_of(const std::array<const TensorView*, N>& views, int64_t dim) {
  Lines<N> lines;
  for (int k = 0; k < N; ++k) lines.lengths[k] = 1;
  for (int d = 0; d < views[0]->rank; ++d) {
    std::array<int64_t, N> stride;
    for (int k = 0; k < N; ++k) stride[k] = views[k]->rank > d ? views[k]->strides[d] : 0;
    if (d != dim) {
      lines.outer.push(views[0]->sizes[d], stride);
      continue;
    }
    for (int k = 0; k < N; ++k) {
      lines.lengths[k] = views[k]->rank > d ? views[k]->sizes[d] : 1;
      lines.steps[k] = stride[k];
    }
  }
  return lines;
}

}  // namespace gradwire::cpu
