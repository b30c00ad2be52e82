"""Arithmetic of sizes, with torch's errors. Shapes are tuples; names go into messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Shape = tuple[int, ...]


class ShapeError(Exception):
    """A finding about shapes; `kind` is the exception that users get."""

    def __init__(self, message: str, kind: type[Exception] = RuntimeError):
        super().__init__(message)
        self.kind = kind


def numel(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def wrap(dim: int, rank: int) -> int:
    """dim in [-rank, rank) as [0, rank); rank 0 counts as 1."""
    limit = rank or 1
    if -limit <= dim < limit:
        return dim + limit if dim < 0 else dim
    raise ShapeError(
        f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], "
        f"but got {dim})",
        IndexError,
    )


def wrap_all(dims: Any, rank: int) -> list[int]:
    """Wrapped dims of a reduction; None and () mean all."""
    if dims is None:
        return list(range(rank))
    if isinstance(dims, int):
        return [wrap(dims, rank)]
    if not len(dims):
        return list(range(rank))
    found = [wrap(int(d), rank) for d in dims]
    for i, dim in enumerate(found):
        if dim in found[:i]:
            raise ShapeError(f"dim {dim} appears multiple times in the list of dims")
    return found


def broadcast(a: Shape, b: Shape) -> Shape:
    if a == b:
        return a
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    out = list(long)
    offset = len(long) - len(short)
    for i in reversed(range(len(short))):  # torch names the last dim that does not fit
        size = short[i]
        other = out[i + offset]
        if size == other or size == 1:
            continue
        if other == 1:
            out[i + offset] = size
            continue
        at = i + offset
        x = a[at - len(out) + len(a)]
        y = b[at - len(out) + len(b)]
        raise ShapeError(
            f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton "
            f"dimension {at}: shapes {list(a)} and {list(b)}"
        )
    return tuple(out)


def resolve(size: Sequence[int], count: int) -> Shape:
    """`size` with one -1 replaced so that it has `count` elements."""
    known = 1
    hole = -1
    for i, n in enumerate(size):
        if n == -1:
            if hole >= 0:
                raise ShapeError("only one dimension can be inferred")
            hole = i
        elif n < 0:
            raise ShapeError(f"invalid shape dimension {n}")
        else:
            known *= n
    text = f"shape '{list(size)}' is invalid for input of size {count}"
    if hole < 0:
        if known != count:
            raise ShapeError(text)
        return tuple(size)
    if known == 0:
        if count:
            raise ShapeError(text)
        raise ShapeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    if count % known:
        raise ShapeError(text)
    return tuple(count // known if i == hole else n for i, n in enumerate(size))


def matmul(a: Shape, b: Shape) -> Shape:
    if not a or not b:
        raise ShapeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D"
        )
    if len(a) == 1 and len(b) == 1:
        if a != b:
            raise ShapeError(
                f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the "
                "same number of elements"
            )
        return ()
    left = a if len(a) > 1 else (1, *a)
    right = b if len(b) > 1 else (*b, 1)
    if left[-1] != right[-2]:
        raise ShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({numel(left[:-1])}x{left[-1]} and "
            f"{right[-2]}x{right[-1]}): shapes {list(a)} and {list(b)}"
        )
    batch = broadcast(left[:-2], right[:-2])
    rows = left[-2:-1] if len(a) > 1 else ()
    columns = right[-1:] if len(b) > 1 else ()
    return batch + rows + columns


def linear(x: Shape, weight: Shape) -> Shape:
    if not x or x[-1] != weight[-1]:
        raise ShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({numel(x[:-1])}x{x[-1] if x else 1} and "
            f"{weight[-1]}x{weight[0] if len(weight) > 1 else 1}): input {list(x)}, weight "
            f"{list(weight)}"
        )
    return x[:-1] + weight[:-1]


def tuple_of(value: Any, count: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * count
    found = tuple(int(v) for v in value)
    return found * count if len(found) == 1 else found


def conv(
    x: Shape, weight: Shape, stride: Any, padding: Any, dilation: Any, groups: int
) -> Shape | None:
    spatial = len(weight) - 2
    if len(x) not in (spatial + 1, spatial + 2):
        raise ShapeError(
            f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to "
            f"conv{spatial}d, but got input of size: {list(x)}"
        )
    if x[-spatial - 1] != weight[1] * groups:
        raise ShapeError(
            f"Given groups={groups}, weight of size {list(weight)}, expected input{list(x)} to "
            f"have {weight[1] * groups} channels, but got {x[-spatial - 1]} channels instead"
        )
    if isinstance(padding, str):
        return None
    sizes = []
    for size, kernel, s, p, d in zip(
        x[-spatial:],
        weight[2:],
        tuple_of(stride, spatial),
        tuple_of(padding, spatial),
        tuple_of(dilation, spatial),
        strict=True,
    ):
        span = d * (kernel - 1) + 1
        if size + 2 * p < span:
            raise ShapeError(
                f"Calculated padded input size per channel: ({size + 2 * p}). Kernel size: "
                f"({span}). Kernel size can't be greater than actual input size"
            )
        sizes.append((size + 2 * p - span) // s + 1)
    return (*x[: -spatial - 1], weight[0], *sizes)


def pool(
    x: Shape, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, spatial: int
) -> Shape:
    kernels = tuple_of(kernel, spatial)
    strides = tuple_of(stride, spatial) if stride not in (None, [], ()) else kernels
    sizes = []
    for size, k, s, p, d in zip(
        x[-spatial:],
        kernels,
        strides,
        tuple_of(padding, spatial),
        tuple_of(dilation, spatial),
        strict=True,
    ):
        if p > k // 2:
            raise ShapeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        room = size + 2 * p - d * (k - 1) - 1
        n = (room + (s - 1 if ceil else 0)) // s + 1
        if ceil and (n - 1) * s >= size + p:
            n -= 1
        if n < 1:
            raise ShapeError(f"Given input size: {list(x)}. Output size is too small")
        sizes.append(n)
    return (*x[:-spatial], *sizes)


def expand(shape: Shape, size: Sequence[int]) -> Shape:
    if len(size) < len(shape):
        raise ShapeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(shape)})"
        )
    offset = len(size) - len(shape)
    out = []
    for i, n in enumerate(size):
        have = shape[i - offset] if i >= offset else None
        if n == -1:
            if have is None:
                raise ShapeError(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
            n = have
        elif have is not None and have != 1 and n != have:
            raise ShapeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at "
                f"non-singleton dimension {i}. Target sizes: {list(size)}. Tensor sizes: "
                f"{list(shape)}"
            )
        out.append(n)
    return tuple(out)


def slice_length(size: int, start: int | None, end: int | None, step: int) -> int:
    first, last, _ = slice(start, end, step).indices(size)
    return max(0, (last - first + step - 1) // step)


def cat(shapes: Sequence[Shape], dim: int) -> Shape:
    real = [s for s in shapes if s != (0,)] or list(shapes)
    first = real[0]
    if not first:
        raise ShapeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    at = wrap(dim, len(first))
    total = 0
    for i, shape in enumerate(real):
        if len(shape) != len(first):
            raise ShapeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
            )
        for d, (a, b) in enumerate(zip(first, shape, strict=True)):
            if d != at and a != b:
                raise ShapeError(
                    f"Sizes of tensors must match except in dimension {at}. Expected size {a} but "
                    f"got size {b} for tensor number {i} in the list."
                )
        total += shape[at]
    return (*first[:at], total, *first[at + 1 :])


def pieces(size: int, sections: Any) -> list[int]:
    """Sizes of split's results along one dimension."""
    if isinstance(sections, int):
        if sections < 0 or (sections == 0 and size):
            raise ShapeError(
                f"split expects split_size be non-negative, but got split_size={sections}"
            )
        if not size:
            return [0]
        return [min(sections, size - at) for at in range(0, size, sections)]
    found = [int(s) for s in sections]
    if sum(found) != size or any(s < 0 for s in found):
        raise ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size}, but got {found}"
        )
    return found


def chunks(size: int, count: int) -> list[int]:
    if count <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {count}")
    each = -(-size // count)
    return [0] * count if not each else pieces(size, each)
