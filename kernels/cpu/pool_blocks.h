// Planes of a tensor [N, C, ...] in blocks of channels: many channels at a time where channels lie
// side by side, one where planes do.
#pragma once

#include "kernels/cpu/dense.h"
#include "kernels/cpu/pool_windows.h"

namespace gradwire::cpu {

inline constexpr int64_t kPoolChannels = 32;

struct PoolBlocks {
  int64_t images, channels, block, per_image, work;

  // `work` counts the elements that one plane takes.
  PoolBlocks(const TensorView& view, int64_t plane_work)
      : images(view.sizes[0]), channels(view.sizes[1]), work(plane_work) {
    bool inner = view.strides[1] == 1 && view.rank > 2 && channels > 1;
    block = inner ? std::min(channels, kPoolChannels) : 1;
    per_image = channels == 0 ? 0 : (channels + block - 1) / block;
  }

  // Calls f(image, first channel, channels) for every block.
  template <class F>
  void run(ThreadPool& pool, F&& f) const {
    int64_t grain = std::max<int64_t>(1, (1 << 14) / (work * block + 1));
    pool.parallel_ranges(images * per_image, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t first = i % per_image * block;
        f(i / per_image, first, std::min(block, channels - first));
      }
    });
  }
};

inline int64_t plane_size(const PoolAxes& axes) {
  return axes[0].in * axes[1].in * axes[2].in;
}

// Calls f(a, b, c) for every output position in row-major order.
template <class F>
void for_outputs(const PoolAxes& axes, F&& f) {
  for (int64_t a = 0; a < axes[0].out; ++a) {
    for (int64_t b = 0; b < axes[1].out; ++b) {
      for (int64_t c = 0; c < axes[2].out; ++c) f(a, b, c);
    }
  }
}

// Calls f(i, j, k) for every element of the window of output (a, b, c).
template <class F>
void for_window(const PoolAxes& axes, int64_t a, int64_t b, int64_t c, F&& f) {
  for (int64_t i = axes[0].begin[a]; i < axes[0].end[a]; i += axes[0].step) {
    for (int64_t j = axes[1].begin[b]; j < axes[1].end[b]; j += axes[1].step) {
      for (int64_t k = axes[2].begin[c]; k < axes[2].end[c]; k += axes[2].step) f(i, j, k);
    }
  }
}

}  // namespace gradwire::cpu
