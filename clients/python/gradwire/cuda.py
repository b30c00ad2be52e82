"""torch.cuda: what the session was granted."""

from __future__ import annotations

from typing import Any

from . import _device
from .wire import current


def _granted() -> list[str]:
    return [name for name in current.session().devices if name.startswith("cuda")]


def is_available() -> bool:
    """Whether the session was placed on a GPU."""
    return bool(_granted())


def device_count() -> int:
    return len(_granted())


def current_device() -> int:
    if not is_available():
        raise RuntimeError("this session has no GPU")
    return 0


def set_device(device: Any) -> None:
    _device.check(_device.device(device))


def synchronize(device: Any = None) -> None:
    """Waits until everything queued has run."""
    from . import synchronize as wait

    wait()


def empty_cache() -> None:
    """Nothing to do: the daemon shares its memory out by itself."""


def manual_seed(seed: int) -> None:
    from ._random import manual_seed as set_seed

    set_seed(seed)


manual_seed_all = manual_seed


def memory_allocated(device: Any = None) -> int:
    """Bytes that the session's tensors take."""
    return int(_memory("bytes"))


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that the session's tensors have taken."""
    return int(_memory("peak"))


def _memory(word: str) -> int:
    from . import stats

    found = stats().get("memory", {})
    return next((v for k, v in found.items() if word in k), 0)
