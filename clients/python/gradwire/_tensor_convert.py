"""Tensor methods that change dtype or place, and those that bring values here."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _call, _device, _dtype, _row
from ._dtype import dtype
from ._rows import ROWS


def _cast(name: str, kind: dtype) -> Any:
    def method(self: Any, memory_format: Any = None) -> Any:
        return self.to(kind)

    method.__name__ = name
    method.__doc__ = f"This tensor as {kind.name}."
    return method


def _channels_last(x: Any) -> Any:
    """The same values with the channels of an image innermost in memory."""
    rank = x.dim()
    if rank not in (4, 5):
        raise RuntimeError(
            f"required rank {4 if rank < 5 else 5} tensor to use channels_last format"
        )
    inner = [*range(2, rank)]
    moved = _call.call(ROWS["permute"], (x, [0, *inner, 1]))
    laid = _call.call(ROWS["contiguous"], (moved,))
    return _call.call(ROWS["permute"], (laid, [0, rank - 1, *range(1, rank - 1)]))


def _wants_channels_last(memory_format: Any) -> Any:
    return memory_format is not None and "channels_last" in str(memory_format)


class Convert:
    """to(), numpy() and their relatives."""

    float = _cast("float", _dtype.float32)
    double = _cast("double", _dtype.float64)
    half = _cast("half", _dtype.float16)
    bfloat16 = _cast("bfloat16", _dtype.bfloat16)
    long = _cast("long", _dtype.int64)
    int = _cast("int", _dtype.int32)
    short = _cast("short", _dtype.int16)
    char = _cast("char", _dtype.int8)
    byte = _cast("byte", _dtype.uint8)
    bool = _cast("bool", _dtype.bool_)

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: Any = False,
        copy: Any = False,
        memory_format: Any = None,
    ) -> Any:
        """This tensor in another dtype or on another device; itself where nothing changes."""
        for value in args:
            if isinstance(value, _dtype.dtype) or value in (float, int, bool):
                dtype = value
            elif isinstance(value, _row.Tensor):
                dtype, device = value.dtype, value.device
            elif isinstance(value, (str, _device.device)):
                device = value
            elif value is not None and not isinstance(value, (int, float)):
                raise TypeError(f"to() received an invalid argument: {type(value).__name__}")
        _device.check(device)
        if _wants_channels_last(memory_format) and not self.is_contiguous(memory_format):  # type: ignore[attr-defined]
            return _channels_last(self).to(dtype=dtype, device=device)
        kind = None if dtype is None else _dtype.of(dtype)
        if kind is None or kind is self.dtype:  # type: ignore[attr-defined]
            return self.clone() if copy else self  # type: ignore[attr-defined]
        if not self._id and not self._requires_grad:  # type: ignore[attr-defined]
            from . import _host

            values = _host.convert(self._host, self._dtype, kind)  # type: ignore[attr-defined]
            return _host.host_tensor(values, kind, True)
        return _call.call(ROWS["to"], (self, kind))

    def cpu(self, memory_format: Any = None) -> Any:
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: Any = False) -> Any:
        return self.to("cuda" if device is None else _device.device(device))

    def pin_memory(self, device: Any = None) -> Any:
        return self

    def is_pinned(self) -> Any:
        return False

    def type(self, dtype: Any = None, non_blocking: Any = False) -> Any:
        if dtype is None:
            name = _row.scalar_name(self.dtype)  # type: ignore[attr-defined]
            return f"torch.{name}Tensor"
        if isinstance(dtype, str) and dtype.endswith("Tensor"):
            word = dtype.rpartition(".")[2].removesuffix("Tensor")
            dtype = next(k for k, v in _row._SCALAR_NAMES.items() if v == word)
        return self.to(getattr(dtype, "dtype", dtype))

    def type_as(self, other: Any) -> Any:
        return self.to(other.dtype)

    def contiguous(self, memory_format: Any = None) -> Any:
        """This tensor row-major; itself where it is already."""
        if _wants_channels_last(memory_format):
            return self.to(memory_format=memory_format)
        if not self._id:  # type: ignore[attr-defined]
            return self
        return _call.call(ROWS["contiguous"], (self,))

    def clone(self, *, memory_format: Any = None) -> Any:
        """A copy in storage of its own, that gradients flow through."""
        if _wants_channels_last(memory_format):
            return _channels_last(self)
        return _call.call(ROWS["clone"], (self,))

    def copy_(self, src: Any, non_blocking: Any = False) -> Any:
        """Writes `src`, broadcast and cast, into this tensor."""
        if not isinstance(src, _row.Tensor):
            from . import _host

            src = _host.as_tensor(src)
        return _call.call_(ROWS["copy_"], (self, src))

    def numpy(self, *, force: Any = False) -> np.ndarray:
        """The values as an array: a copy of what is in the daemon, a host tensor's own memory."""
        from . import _host

        if self._requires_grad and not force:  # type: ignore[attr-defined]
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        values = _host.read([self])[0]
        if self._dtype is _dtype.bfloat16:  # type: ignore[attr-defined]
            raise TypeError("Got unsupported ScalarType BFloat16")
        return values

    def data_ptr(self) -> Any:
        return self._id or id(self._host)  # type: ignore[attr-defined]
