"""torch.Size: a tuple of sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Size(tuple):
    """The sizes of a tensor's dimensions."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()) -> Size:
        return tuple.__new__(cls, sizes)

    def numel(self) -> int:
        total = 1
        for size in self:
            total *= size
        return total

    def __getitem__(self, key: Any) -> Any:
        part = tuple.__getitem__(self, key)
        return Size(part) if isinstance(key, slice) else part

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))
