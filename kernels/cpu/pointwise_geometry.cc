#include "kernels/cpu/pointwise_geometry.h"

#include <cstring>

namespace gradwire::cpu {
namespace {

using Layout = TileOperand::Layout;

// One dense run for every operand that is not fixed: the common case, found without sorting.
bool all_dense(const TensorView* const* views, int count, int64_t numel, TileOperand* operands) {
  for (int v = 0; v < count; ++v) {
    const TensorView& view = *views[v];
    if (numel == 1 || view.contiguous()) {
      operands[v].layout = Layout::kDense;
      operands[v].strides[0] = 1;
      continue;
    }
    for (int d = 0; d < view.rank; ++d) {
      if (view.sizes[d] != 1 && view.strides[d] != 0) return false;
    }
    operands[v].layout = Layout::kFixed;
    operands[v].strides[0] = 0;
  }
  return true;
}

// True when dimension d walks outside of e: by the first operand whose strides differ.
bool outer(const TensorView* const* views, int count, int d, int e) {
  for (int v = 0; v < count; ++v) {
    int64_t sd = views[v]->strides[d], se = views[v]->strides[e];
    if (sd != se) return sd > se;
  }
  return d < e;
}

bool joins(const TensorView* const* views, int count, int d, int e, int64_t inner_size) {
  for (int v = 0; v < count; ++v) {
    if (views[v]->strides[d] != views[v]->strides[e] * inner_size) return false;
  }
  return true;
}

template <class T>
void copy_run(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, n * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    T value = *from;
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else if (to_stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * from_stride];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

template <class T, bool kGather>
void walk(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor, int64_t count,
          T* buffer) {
  int inner = space.rank - 1;
  int64_t stride = operand.strides[inner];
  Cursor at = cursor;
  T* base = reinterpret_cast<T*>(operand.data);
  for (int d = 0; d < inner; ++d) base += at.at[d] * operand.strides[d];
  while (count > 0) {
    int64_t run = space.sizes[inner] - at.at[inner];
    if (run > count) run = count;
    T* memory = base + at.at[inner] * stride;
    if constexpr (kGather) {
      copy_run<T>(buffer, 1, memory, stride, run);
    } else {
      copy_run<T>(memory, stride, buffer, 1, run);
    }
    buffer += run;
    count -= run;
    at.at[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      base += operand.strides[d];
      if (++at.at[d] < space.sizes[d]) break;
      base -= operand.strides[d] * space.sizes[d];
      at.at[d] = 0;
    }
  }
}

template <bool kGather, class Buffer>
void walk_by_size(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor,
                  int64_t count, Buffer* buffer) {
  void* b = const_cast<void*>(static_cast<const void*>(buffer));
  switch (operand.size) {
    case 1:
      return walk<uint8_t, kGather>(space, operand, cursor, count, static_cast<uint8_t*>(b));
    case 2:
      return walk<uint16_t, kGather>(space, operand, cursor, count, static_cast<uint16_t*>(b));
    case 4:
      return walk<uint32_t, kGather>(space, operand, cursor, count, static_cast<uint32_t*>(b));
    default:
      return walk<uint64_t, kGather>(space, operand, cursor, count, static_cast<uint64_t*>(b));
  }
}

template <class T>
void splat_as(void* buffer, const void* element, int64_t count) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  T* to = static_cast<T*>(buffer);
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

}  // namespace

void make_space(const TensorView* const* views, int count, IndexSpace& space,
                TileOperand* operands) {
  const TensorView& first = *views[0];
  space.numel = first.numel();
  if (all_dense(views, count, space.numel, operands)) {
    space.rank = 1;
    space.sizes[0] = space.numel;
    return;
  }
  std::array<int, kMaxRank> order;
  int rank = 0;
  for (int d = 0; d < first.rank; ++d) {
    if (first.sizes[d] == 1) continue;
    int at = rank++;
    for (; at > 0 && outer(views, count, d, order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = d;
  }
  // `last` is the original dimension whose strides the space's dimension rank-1 has.
  std::array<int, kMaxRank> last;
  space.rank = 0;
  for (int i = 0; i < rank; ++i) {
    int d = order[i];
    int64_t size = first.sizes[d];
    if (space.rank > 0 && joins(views, count, last[space.rank - 1], d, size)) {
      space.sizes[space.rank - 1] *= size;
      last[space.rank - 1] = d;
    } else {
      space.sizes[space.rank] = size;
      last[space.rank++] = d;
    }
  }
  for (int v = 0; v < count; ++v) {
    bool fixed = true, dense = true;
    int64_t adjacent = 1;
    for (int i = space.rank - 1; i >= 0; --i) {
      int64_t stride = views[v]->strides[last[i]];
      operands[v].strides[i] = stride;
      fixed &= stride == 0;
      dense &= stride == adjacent;
      adjacent *= space.sizes[i];
    }
    operands[v].layout = fixed ? Layout::kFixed : dense ? Layout::kDense : Layout::kStrided;
  }
}

void Cursor::seek(const IndexSpace& space, int64_t index) {
  for (int d = space.rank - 1; d > 0; --d) {
    at[d] = index % space.sizes[d];
    index /= space.sizes[d];
  }
  at[0] = index;
}

void Cursor::advance(const IndexSpace& space, int64_t count) {
  for (int d = space.rank - 1; d > 0; --d) {
    at[d] += count;
    int64_t size = space.sizes[d];
    if (at[d] < size) return;
    if (at[d] < 2 * size) {
      at[d] -= size;
      count = 1;
    } else {
      count = at[d] / size;
      at[d] -= count * size;
    }
  }
  at[0] += count;
}

char* run_at(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor,
             int64_t count) {
  int inner = space.rank - 1;
  if (operand.strides[inner] != 1 || cursor.at[inner] + count > space.sizes[inner]) return nullptr;
  int64_t offset = 0;
  for (int d = 0; d <= inner; ++d) offset += cursor.at[d] * operand.strides[d];
  return operand.data + offset * operand.size;
}

void gather(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor,
            int64_t count, void* buffer) {
  walk_by_size<true>(space, operand, cursor, count, buffer);
}

void scatter(const IndexSpace& space, const TileOperand& operand, const Cursor& cursor,
             int64_t count, const void* buffer) {
  walk_by_size<false>(space, operand, cursor, count, buffer);
}

int64_t period_of(const IndexSpace& space, const TileOperand& operand, int64_t most) {
  int d = 0;
  while (d < space.rank && operand.strides[d] == 0) ++d;
  if (d == 0) return 0;
  int64_t period = 1;
  for (; d < space.rank; ++d) {
    period *= space.sizes[d];
    if (period > most) return 0;
  }
  return period;
}

void splat(void* buffer, const void* element, int size, int64_t count) {
  switch (size) {
    case 1:
      return splat_as<uint8_t>(buffer, element, count);
    case 2:
      return splat_as<uint16_t>(buffer, element, count);
    case 4:
      return splat_as<uint32_t>(buffer, element, count);
    default:
      return splat_as<uint64_t>(buffer, element, count);
  }
}

}  // namespace gradwire::cpu
