"""Random state: torch.random."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ._random import (
    _restore_mark,
    _save_mark,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **options: Any) -> Iterator[None]:
    """A block after which random numbers go on as if it had not been."""
    if not enabled:
        yield
        return
    mark = _save_mark()
    try:
        yield
    finally:
        _restore_mark(mark)
