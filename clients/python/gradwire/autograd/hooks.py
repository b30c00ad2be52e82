"""Hooks of tensors and of nodes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .. import _call, _row
from .._rows import ROWS
from ..wire import current
from . import callbacks


class RemovableHandle:
    """Takes a hook away again."""

    def __init__(self, id: int):
        self.id = id
        self._session = weakref.ref(current.session())

    def remove(self) -> None:
        session = self._session()
        if callbacks.live.pop(self.id, None) is not None and session is current._session:
            _call.command(ROWS["session.remove_hook"], (self.id,))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def _checked(result: Any) -> Any:
    if not isinstance(result, _row.Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    return result


def register_hook(tensor: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Runs `hook(grad)` when the tensor's gradient is whole; what it returns takes its place."""
    if not tensor._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")

    def code(_: int, first: list[Any], __: list[Any]) -> list[Any]:
        result = hook(first[0])
        if result is None:
            return []
        if _checked(result)._sizes() != first[0]._sizes():
            name = getattr(hook, "__name__", "<unknown>")
            raise RuntimeError(f"hook '{name}' has changed the size of value")
        return [result]

    id = callbacks.add(code)
    _call.command(ROWS["session.tensor_hook"], (tensor, id, False))
    return RemovableHandle(id)


def register_post_accumulate_grad_hook(tensor: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Runs `hook(tensor)` after the leaf's .grad has been written."""
    if not tensor._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if tensor._fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    known = weakref.ref(tensor)

    def code(_: int, first: list[Any], __: list[Any]) -> list[Any]:
        leaf = known()
        hook(first[0] if leaf is None else leaf)
        return []

    id = callbacks.add(code)
    _call.command(ROWS["session.tensor_hook"], (tensor, id, True))
    return RemovableHandle(id)


def register_node_hook(node: int, hook: Callable[..., Any], before: bool) -> RemovableHandle:
    def code(_: int, first: list[Any], second: list[Any]) -> list[Any]:
        result = hook(tuple(first)) if before else hook(tuple(first), tuple(second))
        if result is None:
            return []
        if isinstance(result, _row.Tensor):
            result = (result,)
        return [value if value is None else _checked(value) for value in result]

    id = callbacks.add(code)
    _call.command(ROWS["session.node_hook"], (node, id, before))
    return RemovableHandle(id)
