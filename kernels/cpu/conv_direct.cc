#include "kernels/cpu/conv_direct.h"

#include <algorithm>

namespace gradwire::cpu {
namespace {

// Calls f(input place in the plane, output place, tap) for all that meet.
template <class F>
void for_meetings(const ConvShape& s, F&& f) {
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    int64_t k[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                    tap % s.kernel[2]};
    for (int64_t o = 0; o < s.out_plane(); ++o) {
      int64_t at[3] = {o / (s.out[1] * s.out[2]), o / s.out[2] % s.out[1], o % s.out[2]};
      int64_t place = 0;
      bool inside = true;
      for (size_t d = 0; d < 3; ++d) {
        int64_t i = at[d] * s.stride[d] - s.padding[d] + k[d] * s.dilation[d];
        inside = inside && i >= 0 && i < s.in[d];
        place = place * s.in[d] + i;
      }
      if (inside) f(place, o, tap);
    }
  }
}

uint64_t product(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
}

void add_to(int64_t& sum, uint64_t value) {
  sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + value);
}

}  // namespace

void conv_direct(const ConvShape& s, const int64_t* x, const int64_t* w, const int64_t* bias,
                 int64_t* y, ThreadPool& pool) {
  pool.parallel_ranges(s.images * s.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t image = i / s.out_channels, channel = i % s.out_channels;
      int64_t first = channel / s.group_out() * s.group_in();
      int64_t* to = y + i * s.out_plane();
      std::fill(to, to + s.out_plane(), bias ? bias[channel] : 0);
      for (int64_t c = 0; c < s.group_in(); ++c) {
        const int64_t* from = x + (image * s.in_channels + first + c) * s.in_plane();
        const int64_t* filter = w + (channel * s.group_in() + c) * s.taps();
        for_meetings(s, [&](int64_t in, int64_t out, int64_t tap) {
          add_to(to[out], product(from[in], filter[tap]));
        });
      }
    }
  });
}

void conv_direct_backward_input(const ConvShape& s, const int64_t* grad, const int64_t* w,
                                int64_t* dx, ThreadPool& pool) {
  pool.parallel_ranges(s.images * s.in_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t image = i / s.in_channels, channel = i % s.in_channels;
      int64_t group = channel / s.group_in(), c = channel % s.group_in();
      int64_t* to = dx + i * s.in_plane();
      std::fill(to, to + s.in_plane(), 0);
      for (int64_t o = group * s.group_out(); o < (group + 1) * s.group_out(); ++o) {
        const int64_t* from = grad + (image * s.out_channels + o) * s.out_plane();
        const int64_t* filter = w + (o * s.group_in() + c) * s.taps();
        for_meetings(s, [&](int64_t in, int64_t out, int64_t tap) {
          add_to(to[in], product(from[out], filter[tap]));
        });
      }
    }
  });
}

}  // namespace gradwire::cpu
