"""Bytes of stream messages, written by hand: a message per op would cost ten times as much."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ..v1 import frame_pb2


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(key: int, payload: bytes) -> bytes:
    return bytes((key,)) + varint(len(payload)) + payload


def request(
    first: int,
    heads: Iterable[int],
    ids: Iterable[int],
    tape: bytes,
    sites: Iterable[tuple[int, str]],
    acknowledged: int,
) -> bytes:
    """A StreamRequest that holds one Frame."""
    parts = [b"\x08", varint(first)]
    packed = array("Q", heads).tobytes()
    if packed:
        parts.append(_field(0x12, packed))
    packed = array("Q", ids).tobytes()
    if packed:
        parts.append(_field(0x1A, packed))
    if tape:
        parts += (b"\x22", varint(len(tape)), tape)
    for number, text in sites:
        entry = frame_pb2.Site(id=number, text=text).SerializeToString()
        parts.append(_field(0x2A, entry))
    if acknowledged:
        parts += (b"\x30", varint(acknowledged))
    body = b"".join(parts)
    return b"".join((b"\x12", varint(len(body)), body))


def head(op: int, form: int, has_tape: bool, inputs: int, outputs: int) -> int:
    """A head word without its site."""
    return op | form << 16 | has_tape << 20 | inputs << 24 | outputs << 36
