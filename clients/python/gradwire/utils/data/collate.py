"""Batches from samples. Host tensors are stacked here, those in the daemon there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import _dtype, _host, _ops, _row


def _stack(batch: Sequence[Any]) -> Any:
    if all(not t._id and t._host is not None and not t._requires_grad for t in batch):
        kind = batch[0]._dtype
        if all(t._dtype is kind for t in batch):
            try:
                return _host.host_tensor(np.stack([t._host for t in batch]), kind, True)
            except ValueError:
                sizes = {tuple(t._host.shape) for t in batch}
                raise RuntimeError(
                    f"stack expects each tensor to be equal size, but got {sorted(sizes)}"
                ) from None
    return _ops.stack(batch)


def default_collate(batch: Sequence[Any]) -> Any:
    """Tensors, arrays, numbers, and mappings and sequences of them, with a batch dim in front."""
    first = batch[0]
    if isinstance(first, _row.Tensor):
        return _stack(batch)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return _host.from_numpy(np.stack([np.asarray(b) for b in batch]))
    if isinstance(first, bool):
        return _host.tensor(list(batch))
    if isinstance(first, float):
        return _host.tensor(list(batch), dtype=_dtype.float64)
    if isinstance(first, int):
        return _host.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([b[key] for b in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(part) for part in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(b) != len(first) for b in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(part) for part in zip(*batch, strict=True)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )


def default_convert(data: Any) -> Any:
    """Arrays as tensors; all else as it is."""
    if isinstance(data, np.ndarray):
        return _host.from_numpy(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [default_convert(value) for value in data]
    return data
