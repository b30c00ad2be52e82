#include "engine/core/shape.h"

#include <algorithm>
#include <numeric>

#include "kernels/error.h"

namespace gradwire {

absl::StatusOr<int64_t> checked_numel(std::span<const int64_t> sizes) {
  if (sizes.size() > static_cast<size_t>(kMaxRank)) {
    return runtime_error("a tensor has at most ", kMaxRank, " dimensions, got ", sizes.size());
  }
  int64_t n = 1;
  bool zero = false;
  for (int64_t s : sizes) {
    if (s < 0) {
      return runtime_error("Trying to create tensor with negative dimension ", s, ": ",
                           shape_text(sizes));
    }
    if (s == 0) {
      zero = true;
      continue;
    }
    if (__builtin_mul_overflow(n, s, &n) || n > (int64_t{1} << 58)) {
      return runtime_error("a tensor of sizes ", shape_text(sizes), " has too many elements");
    }
  }
  return zero ? 0 : n;
}

int64_t numel_of(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

Dims contiguous_strides(std::span<const int64_t> sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

bool is_contiguous(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

namespace {

// Dimensions from the largest stride to the smallest, those of size 1 last; equals keep their
// order.
Dims order_by_stride(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Dims order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    if (sizes[a] == 1 || sizes[b] == 1) return sizes[a] != 1 && sizes[b] == 1;
    return strides[a] > strides[b];
  });
  return order;
}

}  // namespace

bool is_dense(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  for (int64_t s : sizes) {
    if (s == 0) return true;
  }
  Dims live;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) live.push_back(static_cast<int64_t>(i));
  }
  std::sort(live.begin(), live.end(),
            [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (int64_t d : live) {
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

Dims like_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (is_contiguous(sizes, strides) || !is_dense(sizes, strides)) return contiguous_strides(sizes);
  return Dims(strides.begin(), strides.end());
}

bool may_overlap(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return false;
  Dims order = order_by_stride(sizes, strides);
  int64_t reach = 0;  // largest offset within the dimensions seen so far
  for (size_t k = order.size(); k-- > 0;) {
    int64_t d = order[k];
    if (sizes[d] == 0) return false;
    if (sizes[d] == 1) continue;
    if (strides[d] <= reach) return true;
    reach += strides[d] * (sizes[d] - 1);
  }
  return false;
}

int64_t extent_of(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

absl::StatusOr<Dims> broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b) {
  size_t rank = std::max(a.size(), b.size());
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return runtime_error("The size of tensor a (", x, ") must match the size of tensor b (", y,
                           ") at non-singleton dimension ", rank - 1 - i, " (shapes ",
                           shape_text(a), " and ", shape_text(b), ")");
    }
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

absl::StatusOr<int64_t> wrap_dim(int64_t dim, int64_t rank) {
  int64_t r = std::max<int64_t>(rank, 1);
  if (dim < -r || dim >= r) {
    return index_error("Dimension out of range (expected to be in range of [", -r, ", ", r - 1,
                       "], but got ", dim, ")");
  }
  return dim < 0 ? dim + r : dim;
}

bool view_strides(std::span<const int64_t> old_sizes, std::span<const int64_t> old_strides,
                  std::span<const int64_t> sizes, Dims* strides) {
  int64_t numel = numel_of(old_sizes);
  if (numel != numel_of(sizes)) return false;
  strides->assign(sizes.size(), 0);
  if (numel == 0) {
    *strides = contiguous_strides(sizes);
    return true;
  }
  // Walk both shapes from the right; each maximal chunk of old dimensions that is contiguous
  // within itself must be cut exactly by new dimensions.
  int64_t view_dim = static_cast<int64_t>(sizes.size()) - 1;
  int64_t base = old_strides.empty() ? 1 : old_strides.back();
  int64_t chunk_numel = 1, view_numel = 1;
  for (int64_t d = static_cast<int64_t>(old_sizes.size()) - 1; d >= 0; --d) {
    chunk_numel *= old_sizes[d];
    bool chunk_ends = d == 0 || (old_sizes[d - 1] != 1 && old_strides[d - 1] != chunk_numel * base);
    if (!chunk_ends) continue;
    while (view_dim >= 0 && (view_numel < chunk_numel || sizes[view_dim] == 1)) {
      (*strides)[view_dim] = view_numel * base;
      view_numel *= sizes[view_dim];
      --view_dim;
    }
    if (view_numel != chunk_numel) return false;
    if (d > 0) {
      base = old_strides[d - 1];
      chunk_numel = 1;
      view_numel = 1;
    }
  }
  if (old_sizes.empty()) {
    for (int64_t& s : *strides) s = 1;
    return true;
  }
  return view_dim < 0;
}

absl::StatusOr<Dims> infer_size(std::span<const int64_t> sizes, int64_t numel) {
  Dims out(sizes.begin(), sizes.end());
  int64_t known = 1;
  int infer = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (infer >= 0) return runtime_error("only one dimension can be inferred");
      infer = static_cast<int>(i);
    } else if (sizes[i] < 0) {
      return runtime_error("invalid shape dimension ", sizes[i]);
    } else if (__builtin_mul_overflow(known, sizes[i], &known)) {
      return runtime_error("shape '", shape_text(sizes), "' has too many elements");
    }
  }
  if (infer >= 0) {
    if (known == 0 && numel == 0) {
      return runtime_error("cannot reshape tensor of 0 elements into shape ", shape_text(sizes),
                           " because the unspecified dimension size -1 can be any value and is "
                           "ambiguous");
    }
    if (known > 0 && numel % known == 0) {
      out[infer] = numel / known;
      return out;
    }
  } else if (known == numel) {
    return out;
  }
  return runtime_error("shape '", shape_text(sizes), "' is invalid for input of size ", numel);
}

std::string shape_text(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) {
    absl::StrAppend(&text, i ? ", " : "", sizes[i]);
  }
  return text + "]";
}

}  // namespace gradwire
