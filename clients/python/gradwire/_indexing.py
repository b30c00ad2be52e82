"""x[key] and x[key] = value, as views and index ops.

A key is read from left to right: ints, slices, None and Ellipsis become select, slice and
unsqueeze; what is left (tensors, lists, masks) becomes one index or index_put_.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from . import _dtype, _host, _row
from ._call import call, call_
from ._row import here
from ._rows import ROWS


def _is_scalar_bool(item: Any) -> bool:
    return isinstance(item, (bool, np.bool_))


def _as_index(item: Any) -> Any:
    """A list, array or tensor of a key as an index tensor."""
    made = item if isinstance(item, _row.Tensor) else _host.as_tensor(_plain(item))
    kind = made.dtype
    if kind.category == _dtype.FLOAT:
        if made.numel() == 0 and not isinstance(item, _row.Tensor):
            return made.to(_dtype.int64)
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors{here()}")
    return made


def _plain(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return item
    if isinstance(item, range):
        return list(item)
    return item


def _expand(key: Any) -> list[Any]:
    """A key as a list of items; a short list that holds more than numbers counts as a tuple."""
    if isinstance(key, tuple):
        return list(key)
    if (
        isinstance(key, list)
        and len(key) < 32
        and any(
            isinstance(k, (slice, tuple, list, np.ndarray, _row.Tensor))
            or k is None
            or k is Ellipsis
            for k in key
        )
    ):
        return list(key)
    return [key]


def _rank_of(item: Any) -> int:
    """How many of the tensor's dims an item of a key takes."""
    if item is None or item is Ellipsis or _is_scalar_bool(item):
        return 0
    if isinstance(item, (int, slice, np.integer)):
        return 1
    if isinstance(item, _row.Tensor) and item.dtype in (_dtype.bool_, _dtype.uint8):
        return item.dim()
    if isinstance(item, np.ndarray) and item.dtype == np.bool_:
        return item.ndim
    if isinstance(item, list):
        array = np.asarray(_values(item))
        if array.dtype == np.bool_:
            return array.ndim
    return 1


def _values(item: Any) -> Any:
    if isinstance(item, _row.Tensor):
        return item.tolist()
    return [_values(i) for i in item] if isinstance(item, list) else item


def _view(x: Any, key: Any) -> tuple[Any, list[Any]]:
    """The view that the plain items of a key make, and the index tensors that are left."""
    items = _expand(key)
    if any(isinstance(item, float) or isinstance(item, np.floating) for item in items):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got float){here()}"
        )
    if any(isinstance(item, str) for item in items):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got str){here()}"
        )
    taken = sum(_rank_of(item) for item in items)
    rank = x.dim()
    if taken > rank:
        raise IndexError(f"too many indices for tensor of dimension {rank}{here()}")
    left = rank - taken
    dim = 0
    indices: list[Any] = []
    for item in items:
        if item is Ellipsis:
            dim += left
            indices += [None] * left
        elif item is None:
            x = call(ROWS["unsqueeze"], (x, dim))
            dim += 1
            indices.append(None)
        elif isinstance(item, slice):
            x = _slice(x, dim, item)
            dim += 1
            indices.append(None)
        elif _is_scalar_bool(item):
            x = call(ROWS["unsqueeze"], (x, dim))
            indices.append(_host.tensor([0] if item else [], dtype=_dtype.int64))
            dim += 1
        elif isinstance(item, (int, np.integer)):
            x = call(ROWS["select"], (x, dim, int(item)))
        else:
            index = _as_index(item)
            masks = index.dtype in (_dtype.bool_, _dtype.uint8)
            if index.dim() == 0 and not masks:  # an int, as torch reads it
                x = call(ROWS["select"], (x, dim, int(index.item())))
                continue
            taken = index.dim() if masks else 1
            _check_mask(index, x, dim)
            if index.dim() == 0:
                x = call(ROWS["unsqueeze"], (x, dim))
                index, taken = index.reshape(1), 1
            indices += [index] + [Ellipsis] * (taken - 1)
            dim += taken
    found = [i for i in indices if i is not Ellipsis]
    while found and found[-1] is None:
        found.pop()
    return x, found


def _check_mask(index: Any, x: Any, dim: int) -> None:
    if index.dtype not in (_dtype.bool_, _dtype.uint8):
        return
    shape = x._sizes()
    if dim + index.dim() > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}{here()}")
    for i, size in enumerate(index._sizes()):
        if shape[dim + i] != size:
            raise IndexError(
                f"The shape of the mask {list(index._sizes())} at index {i} does not match the "
                f"shape of the indexed tensor {list(shape)} at index {dim + i}{here()}"
            )


def _bound(value: Any) -> int | None:
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(
            f"slice indices must be integers or None or have an __index__ method{here()}"
        ) from None


def _slice(x: Any, dim: int, item: slice) -> Any:
    step = _bound(item.step)
    step = 1 if step is None else step
    if step <= 0:
        raise ValueError(f"step must be greater than zero{here()}")
    start, stop = _bound(item.start), _bound(item.stop)
    shape = x._sizes()
    if dim >= len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}{here()}")
    size = shape[dim]
    first, last, _ = slice(start, stop, step).indices(size)
    if first == 0 and last == size and step == 1:
        return x
    return call(ROWS["slice"], (x, dim, first, max(first, last), step))


def get(x: Any, key: Any) -> Any:
    """x[key]"""
    if type(key) is int:
        if not x._sizes():
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a "
                f"0-dim tensor to a number{here()}"
            )
        return call(ROWS["select"], (x, 0, key))
    taken = _host_take(x, key)
    if taken is not None:
        return taken
    viewed, indices = _view(x, key)
    if not indices:
        if viewed is not x:
            return viewed
        # A tensor of its own over the same storage, as every other view is.
        return call(ROWS["view"], (x, x._sizes())) if x.is_contiguous() else _whole(x)
    return call(ROWS["index"], (viewed, indices))


def _whole(x: Any) -> Any:
    shape = x._sizes()
    if not shape:
        return call(ROWS["view"], (x, ()))
    return call(ROWS["slice"], (x, 0, 0, shape[0], 1))


def _host_take(x: Any, key: Any) -> Any:
    """Rows of a host tensor by a host index, as a loader takes them: a copy, so no view's
    storage can part from its base's."""
    if x._id or x._requires_grad or x._host is None:
        return None
    if isinstance(key, _row.Tensor):
        if key._id or key._host is None:
            return None
        key = key._host
    elif isinstance(key, list) and all(type(k) is int for k in key) and key:
        key = np.asarray(key)
    if not isinstance(key, np.ndarray) or key.dtype.kind != "i" or not x._host.ndim:
        return None
    size = x._host.shape[0]
    if key.size and (key.min() < -size or key.max() >= size):
        bad = int(key[(key < -size) | (key >= size)].reshape(-1)[0])
        raise IndexError(f"index {bad} is out of bounds for dimension 0 with size {size}{here()}")
    return _host.host_tensor(x._host[key], x._dtype, True)


def set_(x: Any, key: Any, value: Any) -> None:
    """x[key] = value"""
    if not isinstance(value, (_row.Tensor, int, float, np.generic)):
        value = _host.tensor(value, dtype=x.dtype)
    viewed, indices = _view(x, key)
    if viewed is x and not indices:
        viewed = x
    if not indices:
        _write(x, viewed, value)
        return
    if not isinstance(value, _row.Tensor):
        value = _host.tensor(value, dtype=x.dtype)
    value = _without_leading_ones(value)
    _check_leaf(x)
    call_(ROWS["index_put_"], (viewed, value, indices, False))
    _after(x, viewed, value)


def _write(x: Any, viewed: Any, value: Any) -> None:
    _check_leaf(x)
    if isinstance(value, _row.Tensor):
        value = _without_leading_ones(value)
        _check_fits(viewed._sizes(), value._sizes())
        call_(ROWS["copy_"], (viewed, value))
    else:
        call_(ROWS["fill_"], (viewed, value.item() if hasattr(value, "item") else value))
    _after(x, viewed, value)


def _check_fits(target: tuple[int, ...], given: tuple[int, ...]) -> None:
    if len(given) > len(target):
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(given)}}}, size={list(target)}): the number of sizes "
            f"provided ({len(target)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(given)})"
        )
    lead = len(target) - len(given)
    for dim, size in enumerate(given):
        if size not in (1, target[lead + dim]):
            raise RuntimeError(
                f"The expanded size of the tensor ({target[lead + dim]}) must match the existing "
                f"size ({size}) at non-singleton dimension {lead + dim}.  Target sizes: "
                f"{list(target)}.  Tensor sizes: {list(given)}"
            )


def _without_leading_ones(value: Any) -> Any:
    shape = value._sizes()
    kept = shape
    while kept and kept[0] == 1:
        kept = kept[1:]
    return value if kept == shape else value.reshape(kept)


def _check_leaf(x: Any) -> None:
    from . import _state

    if _state.grad_enabled and x._requires_grad and x._fn is None:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place "
            f"operation.{here()}"
        )


def _after(x: Any, viewed: Any, value: Any) -> None:
    """Writing a tensor that requires a gradient makes the base part of the graph."""
    from . import _state

    if viewed is x or not _state.grad_enabled:
        return
    if getattr(value, "_requires_grad", False) or x._requires_grad:
        x._requires_grad, x._fn = True, "CopySlices"
