"""Values between this process and the daemon: host tensors, uploads, reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _call, _device, _dtype, _row, _state
from ._dtype import dtype
from ._rows import ROWS
from .wire import current


def host_tensor(values: np.ndarray, kind: dtype, owned: bool) -> Any:
    """A tensor whose values stay here until an op needs them. `owned`: nobody else writes them."""
    from ._tensor import new

    made = new(0, values.shape, kind, False, None)
    made._host = values
    made._host_owned = owned
    return made


def upload(tensor: Any) -> int:
    """Gives a host tensor an id: small ones ride in the stream, large ones beside it."""
    values = tensor._host
    if values is None:
        raise RuntimeError("this tensor has no values: its session was closed")
    session = current.session()
    contiguous = np.ascontiguousarray(values, dtype=tensor._dtype.numpy)
    id = session.new_id()
    shape = tuple(values.shape)
    if contiguous.nbytes <= session.inline_bytes:
        data = (contiguous.tobytes(), tensor._dtype, shape, tensor._inference)
        _call.command(ROWS["session.constant"], data, (id,))
    else:
        owned = tensor._host_owned or contiguous is not values
        transfer = current.transfers().upload(contiguous, owned)
        named = (transfer, tensor._dtype, shape, tensor._inference)
        _call.command(ROWS["session.upload"], named, (id,))
    tensor._id = id
    tensor._host = None
    if tensor._requires_grad:
        _call.command(ROWS["session.requires_grad_"], ([tensor], True))
    return id


def read(tensors: Sequence[Any]) -> list[np.ndarray]:
    """The values of tensors, in one round trip. bfloat16 comes as its bits in uint16."""
    remote = [t for t in tensors if t._id or t._host is None]
    found: dict[int, np.ndarray] = {}
    if remote:
        waiter = _call.ask(ROWS["session.read"], (remote,))
        reply = current.session().wait(waiter)
        for tensor, value in zip(remote, reply.values.values, strict=True):
            found[id(tensor)] = _decode(tensor, value)
    return [found[id(t)] if id(t) in found else t._host for t in tensors]


def _decode(tensor: Any, value: Any) -> np.ndarray:
    meta = value.meta
    kind = _dtype.BY_NUMBER[meta.dtype]
    shape = tuple(meta.shape)
    tensor._shape, tensor._dtype = shape, kind
    if value.transfer:
        data: Any = current.transfers().download(value.transfer, value.bytes)
    else:
        data = bytearray(value.data)
    return np.frombuffer(data, kind.numpy).reshape(shape)


def widen(bits: np.ndarray) -> np.ndarray:
    """float32 of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow(values: np.ndarray) -> np.ndarray:
    """bfloat16 bits of floats, rounded to nearest even."""
    wide = np.array(values, np.float32, order="C")
    bits = wide.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded).astype(np.uint16)


def convert(values: np.ndarray, have: dtype, want: dtype) -> np.ndarray:
    """Host values in another dtype, in memory of their own."""
    if have is _dtype.bfloat16:
        values = widen(values) if want is not have else values
    if want is _dtype.bfloat16:
        return values.copy() if have is want else narrow(values)
    with np.errstate(all="ignore"):
        return np.array(values, dtype=want.numpy, order="C")


def _is_nested_tensor(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and len(data):
        data = data[0]
    return isinstance(data, _row.Tensor)


def _from_data(data: Any, kind: dtype | None) -> Any:
    """A host tensor with a copy of `data`."""
    if isinstance(data, _row.Tensor):
        values = read([data])[0]
        have = data.dtype
    elif isinstance(data, np.ndarray) or isinstance(data, np.generic):
        values = np.asarray(data)
        have = _dtype.from_numpy_dtype(values.dtype)
    else:
        if _is_nested_tensor(data):
            data = _plain(data)
        elif hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
            return _from_data(np.asarray(data), kind)
        values, have, usual = _from_python(data)
        kind = kind or usual
    return host_tensor(convert(values, have, kind or have), kind or have, True)


def _plain(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    return data.tolist() if isinstance(data, _row.Tensor) else data


def _from_python(data: Any) -> tuple[np.ndarray, dtype, dtype]:
    """Values, their dtype, and the dtype of a tensor that is made of them."""
    try:
        values = np.array(data)
    except ValueError:
        raise ValueError(
            "expected sequence of equal length at every dimension: the nested list is ragged"
        ) from None
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long") from None
    kind = values.dtype.kind
    leaf = data
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf = leaf[0]
    if isinstance(leaf, (np.ndarray, np.generic)) and kind in "biuf":
        have = _dtype.from_numpy_dtype(values.dtype)
        return values, have, have
    if kind == "b":
        return values, _dtype.bool_, _dtype.bool_
    if kind in "iu":
        if kind == "u" and values.dtype.itemsize == 8:
            raise RuntimeError("Overflow when unpacking long")
        return values.astype(np.int64), _dtype.int64, _dtype.int64
    if kind == "f":
        return values, _dtype.float64, _state.default_dtype
    if kind == "O" and isinstance(data, (list, tuple)):
        raise TypeError(f"not a sequence: new(): data must be numbers, got {type(data[0])}")
    if kind == "c":
        raise NotImplementedError("complex tensors are not supported")
    if kind in "US":
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A tensor with a copy of `data`: a number, nested lists, an array or a tensor."""
    _device.check(device)
    if isinstance(data, _row.Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
            "rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    made = _from_data(data, None if dtype is None else _dtype.of(dtype))
    if requires_grad:
        made.requires_grad_(True)
    return made


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """`data` as a tensor, shared where possible."""
    _device.check(device)
    kind = None if dtype is None else _dtype.of(dtype)
    if isinstance(data, _row.Tensor):
        return data if kind is None or kind is data.dtype else data.to(kind)
    if isinstance(data, np.ndarray) and kind in (None, _BY_ARRAY(data)):
        return from_numpy(data)
    return _from_data(data, kind)


def _BY_ARRAY(data: np.ndarray) -> dtype:
    return _dtype.from_numpy_dtype(data.dtype)


def from_numpy(ndarray: np.ndarray) -> Any:
    """A tensor that shares the array's memory until its first use in an op."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return host_tensor(ndarray, _BY_ARRAY(ndarray), False)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    return tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype, device)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0) -> Any:
    kind = _dtype.of(dtype)
    return host_tensor(np.frombuffer(buffer, kind.numpy, count, offset), kind, False)


def legacy_new(self: Any, values: tuple[Any, ...], kind: dtype) -> None:
    """torch.Tensor(...): sizes, or data in the given dtype."""
    if len(values) == 1 and not isinstance(values[0], int):
        made = _from_data(values[0], kind)
        self._host, self._host_owned = made._host, True
    else:
        shape = tuple(int(v) for v in values) if values else (0,)
        self._host, self._host_owned = np.zeros(shape, kind.numpy), True
    self._shape, self._dtype = self._host.shape, kind


def legacy_type(name: str, kind: dtype) -> type:
    """torch.FloatTensor and its like: callables that tensors of the dtype are instances of."""

    class Meta(type):
        def __call__(cls, *values: Any) -> Any:
            made = object.__new__(_row.Tensor)
            legacy_new(made, values, kind)
            return made

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, _row.Tensor) and value.dtype is kind

    return Meta(name, (), {"dtype": kind, "__module__": "torch"})
