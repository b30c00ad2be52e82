"""Seeds and generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _call
from ._rows import ROWS
from .wire import current
from .wire.session import released


class Generator:
    """A random generator of the client's own, for loaders and for ops that are given one."""

    def __init__(self, device: Any = "cpu"):
        from ._device import device as kind

        self.device = kind(device)
        self.manual_seed(int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1))

    def manual_seed(self, seed: int) -> Generator:
        self._seed = int(seed)
        self.numpy = np.random.default_rng(self._seed & (1 << 64) - 1)
        return self

    def initial_seed(self) -> int:
        return self._seed

    def seed(self) -> int:
        fresh = int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1)
        self.manual_seed(fresh)
        return fresh

    def get_state(self) -> Any:
        return self.numpy.bit_generator.state

    def set_state(self, state: Any) -> Generator:
        self.numpy.bit_generator.state = state
        return self


host_generator = Generator()
_seeded: int | None = None


def manual_seed(seed: int) -> Generator:
    """Seeds the slot's random numbers in the daemon and the loaders' order here."""
    global _seeded
    _seeded = int(seed)
    host_generator.manual_seed(_seeded)
    if current.connected():
        _send(current.session())
    return host_generator


def seed() -> int:
    fresh = host_generator.seed()
    manual_seed(fresh)
    return fresh


def initial_seed() -> int:
    return host_generator.initial_seed()


def _send(session: Any) -> None:
    """Tells the session a seed that it has not been told."""
    global _seeded
    if _seeded is not None:
        value = _seeded & (1 << 64) - 1
        value = value - (1 << 64) if value >> 63 else value
        _seeded = None
        _call.command(ROWS["session.manual_seed"], (value,))


current.on_open.append(_send)


class _Mark:
    """A state that the daemon keeps."""

    def __init__(self) -> None:
        self.id = current.session().new_id()

    def __del__(self) -> None:
        released.append(self.id)


def _save_mark() -> _Mark:
    mark = _Mark()
    _call.command(ROWS["session.random_save"], (mark.id,))
    return mark


def _restore_mark(mark: _Mark) -> None:
    _call.command(ROWS["session.random_restore"], (mark.id,))


def get_rng_state() -> Any:
    """The state of the slot's generator, as a tensor of bytes."""
    return _call.call(ROWS["session.random_state"], ())


def set_rng_state(new_state: Any) -> None:
    words = np.frombuffer(new_state.numpy().tobytes(), np.int64)
    if words.size != 2:
        raise RuntimeError("RNG state is wrong size")
    _call.command(ROWS["session.set_random_state"], (int(words[0]), int(words[1])))
