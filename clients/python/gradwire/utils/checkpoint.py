"""Trading compute for memory: regions whose intermediate values are computed again in backward."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .. import _call, _row, _state
from .._random import _restore_mark, _save_mark
from .._rows import ROWS
from ..autograd import Function, backward, callbacks, enable_grad, no_grad


class CheckpointError(RuntimeError):
    """The second pass through a region was not like the first."""


def noop_context_fn() -> tuple[Any, Any]:
    return contextlib.nullcontext(), contextlib.nullcontext()


def _unspecified(name: str) -> bool:
    warnings.warn(
        f"{name}: the use_reentrant parameter should be passed explicitly. Starting in PyTorch "
        "2.9, calling checkpoint without use_reentrant will raise an exception. "
        "use_reentrant=False is recommended, but if you need to preserve the current default "
        "behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
        "differences between the two variants.",
        stacklevel=4,
    )
    return True


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args), whose intermediate values are computed again when backward needs them.

    The random state of the first pass is used again unless `preserve_rng_state=False`.
    """
    preserve = bool(kwargs.pop("preserve_rng_state", True))
    if use_reentrant is None:
        use_reentrant = _unspecified("torch.utils.checkpoint")
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        tensors = [a for a in args if isinstance(a, _row.Tensor)]
        if _state.grad_enabled and not any(t.requires_grad for t in tensors):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
            )
        return CheckpointFunction.apply(function, preserve, *args)
    return _without_reentry(function, preserve, context_fn, args, kwargs)


class CheckpointFunction(Function):
    """The reentrant form: a Function whose backward runs another backward."""

    @staticmethod
    def forward(ctx: Any, run: Any, preserve: bool, *args: Any) -> Any:
        ctx.run, ctx.mark = run, _save_mark() if preserve else None
        ctx.args = [None if isinstance(a, _row.Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, _row.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        args = list(ctx.args)
        for place, saved in zip(ctx.places, ctx.saved_tensors, strict=True):
            fresh = saved.detach()
            fresh.requires_grad_(saved.requires_grad)
            args[place] = fresh
        before = None
        if ctx.mark is not None:
            before = _save_mark()
            _restore_mark(ctx.mark)
        with enable_grad():
            outputs = ctx.run(*args)
        if before is not None:
            _restore_mark(before)
        if isinstance(outputs, _row.Tensor):
            outputs = (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, gradients, strict=True)
            if isinstance(o, _row.Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([o for o, _ in pairs], [g for _, g in pairs])
        grads = [a.grad if isinstance(a, _row.Tensor) and a.requires_grad else None for a in args]
        return (None, None, *grads)


def _without_reentry(
    function: Any, preserve: bool, context_fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The daemon counts what the region saves, and asks for a second pass when it needs it."""
    first, second = context_fn()
    if not _state.grad_enabled:
        with first:
            return function(*args, **kwargs)

    def again(callback: int, _: list[Any], __: list[Any]) -> list[Any]:
        _call.command(ROWS["session.checkpoint_again"], (callback,))
        try:
            with enable_grad(), second:
                function(*args, **kwargs)
        finally:
            _call.command(ROWS["session.checkpoint_end"], ())
        return []

    _call.command(ROWS["session.checkpoint_begin"], (callbacks.add(again), preserve))
    try:
        with first:
            return function(*args, **kwargs)
    finally:
        _call.command(ROWS["session.checkpoint_end"], ())


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """A chain of functions in `segments` parts, each of them but the last checkpointed."""
    if use_reentrant is None:
        use_reentrant = _unspecified("torch.utils.checkpoint.checkpoint_sequential")
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    chain = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(chain) // segments

    def part(steps: Iterable[Any]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps:
                value = step(value)
            return value

        return run

    start = 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(
            part(chain[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    start = size * (segments - 1)
    return part(chain[start:])(input)
