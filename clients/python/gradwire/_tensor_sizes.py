"""Sizes as users write them."""

from __future__ import annotations

from typing import Any


def sizes(values: tuple[Any, ...]) -> Any:
    """The sizes of `f(2, 3)` and of `f((2, 3))` alike."""
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        return tuple(values[0])
    return values
