// Sizes and strides of tensors, with every product checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "kernels/tensor_view.h"

namespace gradwire {

// Sizes or strides; up to six dimensions without an allocation.
using Dims = absl::InlinedVector<int64_t, 6>;

// The product of sizes. Errors: negative size, more than kMaxRank dims, more than 2^62 elements.
absl::StatusOr<int64_t> checked_numel(std::span<const int64_t> sizes);
// The product of sizes already known to be good.
int64_t numel_of(std::span<const int64_t> sizes);

Dims contiguous_strides(std::span<const int64_t> sizes);
// Strides of a dense result laid out like an operand of the same sizes: the operand's order of
// dimensions is kept when it is dense (transposed, channels-last), else row-major.
Dims like_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides);
bool is_contiguous(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// Every element lies at a place of its own, without gaps, in some order of dimensions.
bool is_dense(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// Two elements may share a place (an expanded tensor).
bool may_overlap(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// 1 + the largest element offset that sizes and strides reach; 0 without elements.
int64_t extent_of(std::span<const int64_t> sizes, std::span<const int64_t> strides);

// numpy's rule. Error: torch's text, naming both sizes and the dimension.
absl::StatusOr<Dims> broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b);

// dim in [-rank, rank) as [0, rank); rank 0 counts as 1. Error: IndexError with torch's text.
absl::StatusOr<int64_t> wrap_dim(int64_t dim, int64_t rank);

// Strides of `sizes` over the same memory as (old_sizes, old_strides), if a view exists.
bool view_strides(std::span<const int64_t> old_sizes, std::span<const int64_t> old_strides,
                  std::span<const int64_t> sizes, Dims* strides);
// `sizes` with a single -1 replaced so that the product is numel. Error: torch's text.
absl::StatusOr<Dims> infer_size(std::span<const int64_t> sizes, int64_t numel);

std::string shape_text(std::span<const int64_t> sizes);  // "[2, 3]"

}  // namespace gradwire
