"""Values on the tape of a frame (proto frame.proto)."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import Any

from .._dtype import dtype

NONE = b"\x00"
FALSE = b"\x01"
TRUE = b"\x02"
SMALL = [b"\x03" + pack("<q", i) for i in range(-16, 257)]


def integer(value: int) -> bytes:
    if -16 <= value <= 256:
        return SMALL[value + 16]
    try:
        return pack("<Bq", 3, value)
    except Exception:
        raise OverflowError(f"{value} does not fit in 64 bits") from None


def number(value: float) -> bytes:
    return pack("<Bd", 4, value)


def text(value: str) -> bytes:
    data = value.encode()
    return pack("<BI", 5, len(data)) + data


def data(value: bytes | memoryview) -> bytes:
    return b"".join((pack("<BI", 6, len(value)), value))


def integers(values: Sequence[int]) -> bytes:
    count = len(values)
    return pack(f"<BI{count}q", 8, count, *values)


def floats(values: Sequence[float]) -> bytes:
    count = len(values)
    return pack(f"<BI{count}d", 10, count, *values)


def kind(value: dtype) -> bytes:
    return bytes((9, value.number))


def scalar(value: Any) -> bytes:
    """A Python number, its type kept."""
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    if type(value) is int:
        return integer(value)
    return pack("<Bd", 4, value)


def any_value(value: Any) -> bytes:
    if value is None:
        return NONE
    if isinstance(value, (bool, int, float)):
        return scalar(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dtype):
        return kind(value)
    if isinstance(value, (bytes, memoryview)):
        return data(value)
    if isinstance(value, (list, tuple)):
        return pack("<BI", 7, len(value)) + b"".join(map(any_value, value))
    raise TypeError(f"a {type(value).__name__} cannot be sent as an attribute")
