"""Hooks of modules."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_hook_numbers = itertools.count()


class RemovableHandle:
    """Takes a hook away again."""

    def __init__(self, hooks: dict[int, Any]):
        self._hooks = hooks
        self.id = next(_hook_numbers)

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


class Hooked:
    """What registers hooks. The hooks run in Module."""

    _forward_pre_hooks: Any
    _forward_hooks: Any
    _hooks_with_kwargs: set[int]
    _load_state_dict_pre_hooks: Any
    _state_dict_hooks: Any

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        return self._add_hook(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        return self._add_hook(self._forward_hooks, hook, prepend, with_kwargs)

    def _add_hook(self, hooks: Any, hook: Any, prepend: bool, with_kwargs: bool) -> Any:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        if with_kwargs:
            self._hooks_with_kwargs.add(handle.id)
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._add_hook(self._load_state_dict_pre_hooks, hook, False, False)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._add_hook(self._state_dict_hooks, hook, False, False)
