"""no_grad and its relatives, as contexts and as decorators."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .. import _call, _state
from .._rows import ROWS
from ..wire import current


def _set(enabled: bool, inference: bool) -> None:
    if enabled == _state.grad_enabled and inference == _state.inference:
        return
    _state.grad_enabled, _state.inference = enabled, inference
    if current.connected():
        _call.command(ROWS["session.set_grad_mode"], (enabled, inference))


def _tell(session: Any) -> None:
    if not _state.grad_enabled or _state.inference:
        values = (_state.grad_enabled, _state.inference)
        _call.command(ROWS["session.set_grad_mode"], values)


current.on_open.append(_tell)


def is_grad_enabled() -> bool:
    return _state.grad_enabled


def is_inference_mode_enabled() -> bool:
    return _state.inference


class _restore:
    """Whatever the block does to the modes, they are as before after it."""

    def __enter__(self) -> None:
        self._before = (_state.grad_enabled, _state.inference)

    def __exit__(self, *_: Any) -> None:
        _set(*self._before)


class _Mode:
    """A grad mode for a block, or for every call of a function."""

    enabled = True
    inference = False

    def __enter__(self) -> None:
        self._before = (_state.grad_enabled, _state.inference)
        _set(self.enabled, self.inference or _state.inference)

    def __exit__(self, *_: Any) -> None:
        _set(*self._before)

    def clone(self) -> _Mode:
        made = object.__new__(type(self))
        made.enabled, made.inference = self.enabled, self.inference
        return made

    def __call__(self, function: Any) -> Any:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Any:
                inner = function(*args, **kwargs)
                while True:
                    with self.clone():
                        try:
                            value = next(inner)
                        except StopIteration:
                            return
                    yield value

            return generate

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped


class no_grad(_Mode):
    """Nothing is recorded for backward."""

    enabled = False

    def __new__(cls, function: Any = None) -> Any:
        made = object.__new__(cls)
        return made if function is None else made(function)


class enable_grad(_Mode):
    """Recording, within a block without."""

    def __new__(cls, function: Any = None) -> Any:
        made = object.__new__(cls)
        return made if function is None else made(function)


class set_grad_enabled(_Mode):
    """Recording on or off: at once, and for a block where used as a context."""

    def __init__(self, mode: bool):
        self.enabled = bool(mode)
        self._before = (_state.grad_enabled, _state.inference)
        _set(self.enabled, _state.inference)

    def __enter__(self) -> None:
        _set(self.enabled, _state.inference)

    def __call__(self, function: Any) -> Any:
        _set(*self._before)
        return super().__call__(function)


class inference_mode(_Mode):
    """no_grad, and results that can never take part in a graph."""

    def __new__(cls, mode: Any = True) -> Any:
        made = object.__new__(cls)
        if callable(mode):
            made.__init__(True)  # type: ignore[misc]
            return made(mode)
        return made

    def __init__(self, mode: bool = True):
        self.inference = bool(mode)
        self.enabled = not self.inference

    def __enter__(self) -> None:
        self._before = (_state.grad_enabled, _state.inference)
        if self.inference:
            _set(False, True)
        else:
            _set(True, False)
