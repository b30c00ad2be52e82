#include "kernels/cpu/pointwise_transpose.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace gradwire::cpu {
namespace {

// A block is as wide as a cache line, so that each line is read once and written once even when
// the strides map all of them to one set of the cache.
template <class T>
constexpr int64_t kLine = 64 / sizeof(T);

constexpr int64_t kPartBytes = 256 << 10;

// to[r * to_stride + c] = from[c * from_stride + r], rows r and columns c.
template <class T>
void block_any(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  T local[kLine<T> * kLine<T>];
  for (int64_t c = 0; c < columns; ++c) {
    std::memcpy(local + c * kLine<T>, from + c * from_stride, rows * sizeof(T));
  }
  for (int64_t r = 0; r < rows; ++r) {
    T line[kLine<T>];
    for (int64_t c = 0; c < columns; ++c) line[c] = local[c * kLine<T> + r];
    std::memcpy(to + r * to_stride, line, columns * sizeof(T));
  }
}

void eight_by_eight(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  __m256 v[8], t[8];
  for (int i = 0; i < 8; ++i) {
    v[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(from + i * from_stride));
  }
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    float* low = reinterpret_cast<float*>(to + i * to_stride);
    float* high = reinterpret_cast<float*>(to + (i + 4) * to_stride);
    _mm256_storeu_ps(low, _mm256_permute2f128_ps(v[i], v[i + 4], 0x20));
    _mm256_storeu_ps(high, _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  }
}

template <class T>
void block(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
           int64_t columns) {
  if constexpr (sizeof(T) == 4) {
    if (rows == kLine<T> && columns == kLine<T>) {
      uint32_t local[256];
      for (int c = 0; c < 16; c += 8) {
        eight_by_eight(from + c * from_stride, from_stride, local + c, 16);
        eight_by_eight(from + c * from_stride + 8, from_stride, local + c + 128, 16);
      }
      for (int r = 0; r < 16; ++r) std::memcpy(to + r * to_stride, local + r * 16, 64);
      return;
    }
  }
  block_any(from, from_stride, to, to_stride, rows, columns);
}

template <class T>
void copy(const IndexSpace& space, const TileOperand& from, const TileOperand& to, int along,
          ThreadPool& pool) {
  int inner = space.rank - 1;
  int64_t rows = space.sizes[along], columns = space.sizes[inner];
  int64_t from_stride = from.strides[inner], to_stride = to.strides[along];
  int64_t strips = (rows - 1) / kLine<T> + 1;
  int64_t outer = space.numel / (rows * columns);
  int64_t strip_bytes = columns * 64;
  int64_t grain = std::max<int64_t>(1, kPartBytes / strip_bytes);
  pool.parallel_ranges(outer * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      int64_t rest = s / strips;
      int64_t from_at = 0, to_at = 0;
      for (int d = inner - 1; d >= 0; --d) {
        if (d == along) continue;
        int64_t at = rest % space.sizes[d];
        rest /= space.sizes[d];
        from_at += at * from.strides[d];
        to_at += at * to.strides[d];
      }
      int64_t r = s % strips * kLine<T>;
      const T* source = reinterpret_cast<const T*>(from.data) + from_at + r;
      T* target = reinterpret_cast<T*>(to.data) + to_at + r * to_stride;
      int64_t height = std::min(rows - r, kLine<T>);
      for (int64_t c = 0; c < columns; c += kLine<T>) {
        block<T>(source + c * from_stride, from_stride, target + c, to_stride, height,
                 std::min(columns - c, kLine<T>));
      }
    }
  });
}

// The dimension other than the innermost along which the operand is dense, or -1.
int dense_dimension(const IndexSpace& space, const TileOperand& operand) {
  int d = space.rank - 2;
  while (d >= 0 && operand.strides[d] != 1) --d;
  return d;
}

}  // namespace

bool transposed(const IndexSpace& space, const TileOperand& operand) {
  int inner = space.rank - 1;
  if (inner < 1 || operand.strides[inner] <= 1 || space.sizes[inner] < 8) return false;
  int along = dense_dimension(space, operand);
  return along >= 0 && space.sizes[along] >= 8;
}

bool transpose_copy(const IndexSpace& space, const TileOperand& from, const TileOperand& to,
                    ThreadPool& pool) {
  if (!transposed(space, from) || to.strides[space.rank - 1] != 1) return false;
  int along = dense_dimension(space, from);
  switch (to.size) {
    case 1:
      copy<uint8_t>(space, from, to, along, pool);
      break;
    case 2:
      copy<uint16_t>(space, from, to, along, pool);
      break;
    case 4:
      copy<uint32_t>(space, from, to, along, pool);
      break;
    default:
      copy<uint64_t>(space, from, to, along, pool);
      break;
  }
  return true;
}

}  // namespace gradwire::cpu
