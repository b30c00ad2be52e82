"""Element types, with torch's names and promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

BOOL, INT, FLOAT = 0, 1, 2  # categories, in order of promotion


class dtype:
    """The element type of a tensor. Compared by identity; the numbers are wire values."""

    __slots__ = ("name", "number", "itemsize", "category", "numpy", "is_signed")

    def __init__(self, name: str, number: int, itemsize: int, category: int, numpy: Any):
        self.name = name
        self.number = number
        self.itemsize = itemsize
        self.category = category
        self.numpy = np.dtype(numpy)  # of the bytes held by a client; bfloat16 as uint16
        self.is_signed = name not in ("uint8", "bool")

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        return False

    def to_numpy(self) -> np.dtype:
        return self.numpy

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (by_name, (self.name,))


float32 = dtype("float32", 1, 4, FLOAT, "<f4")
float64 = dtype("float64", 2, 8, FLOAT, "<f8")
float16 = dtype("float16", 3, 2, FLOAT, "<f2")
bfloat16 = dtype("bfloat16", 4, 2, FLOAT, "<u2")
int64 = dtype("int64", 5, 8, INT, "<i8")
int32 = dtype("int32", 6, 4, INT, "<i4")
int16 = dtype("int16", 7, 2, INT, "<i2")
int8 = dtype("int8", 8, 1, INT, "i1")
uint8 = dtype("uint8", 9, 1, INT, "u1")
bool_ = dtype("bool", 10, 1, BOOL, "?")

ALL = [float32, float64, float16, bfloat16, int64, int32, int16, int8, uint8, bool_]
BY_NUMBER: list[dtype] = [float32, *ALL]  # entry 0 is never used
_BY_NAME = {d.name: d for d in ALL}
_BY_NUMPY = {d.numpy.newbyteorder("="): d for d in ALL if d is not bfloat16}


def by_name(name: str) -> dtype:
    return _BY_NAME[name]


def from_numpy_dtype(kind: np.dtype) -> dtype:
    found = _BY_NUMPY.get(kind.newbyteorder("="))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{kind}. The only supported types are: "
            "float64, float32, float16, int64, int32, int16, int8, uint8, and bool."
        )
    return found


def of(value: Any) -> dtype:
    """A dtype from whatever users write where torch takes one."""
    if isinstance(value, dtype):
        return value
    if value is float:
        return float64
    if value is int:
        return int64
    if value is bool:
        return bool_
    if isinstance(value, str) and value.removeprefix("torch.") in _BY_NAME:
        return _BY_NAME[value.removeprefix("torch.")]
    raise TypeError(f"dtype must be a torch.dtype, not {type(value).__name__}")


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.category != b.category:
        return a if a.category > b.category else b
    if a.category == FLOAT:
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if a.itemsize > b.itemsize else b
    if uint8 in (a, b):
        other = b if a is uint8 else a
        return int16 if other is int8 else other
    return a if a.itemsize > b.itemsize else b


_TABLE = [[_promote(a, b) for b in BY_NUMBER] for a in BY_NUMBER]


def promote(a: dtype, b: dtype) -> dtype:
    """The common dtype of two tensors with dims."""
    return a if a is b else _TABLE[a.number][b.number]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether an in-place op may write a result of `from_` into `to`."""
    return from_.category <= to.category


class finfo:
    """Limits of a floating point dtype."""

    def __init__(self, type: dtype | None = None):
        from . import _state

        kind = _state.default_dtype if type is None else type
        if not kind.is_floating_point:
            raise TypeError(f"torch.finfo() requires a floating point input type, not {kind}")
        self.dtype = kind.name
        self.bits = kind.itemsize * 8
        if kind is bfloat16:
            self.eps = 2.0**-7
            self.max = (2.0 - 2.0**-7) * 2.0**127
            self.tiny = 2.0**-126
            self.resolution = 0.01
        else:
            info = np.finfo(kind.numpy)
            self.eps = float(info.eps)
            self.max = float(info.max)
            self.tiny = float(info.tiny)
            self.resolution = float(info.resolution)
        self.min = -self.max
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type: dtype):
        if type.category != INT:
            raise TypeError(
                f"torch.iinfo() requires an integer input type, not {type}. Use torch.finfo."
            )
        info = np.iinfo(type.numpy)
        self.min = int(info.min)
        self.max = int(info.max)
        self.bits = info.bits
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
