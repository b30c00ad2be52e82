"""torch.autograd.Function: an op whose gradient is this process's code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _call, _row, _state
from .._rows import ROWS
from . import callbacks
from .modes import is_grad_enabled, no_grad

_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling "
    "backward."
)


class FunctionCtx:
    """What forward() keeps for backward()."""

    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] | None = None
        self._dirty: tuple[Any, ...] = ()
        self._fixed: tuple[Any, ...] = ()
        self._saved: tuple[Any, ...] | None = None
        self._made = False

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors; backward finds them in `saved_tensors`, checked for in-place changes."""
        for i, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, _row.Tensor):
                raise TypeError(
                    "save_for_backward can only save variables, but argument "
                    f"{i} is of type {type(tensor).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Kept for forward-mode derivatives, which are not supported."""

    def mark_dirty(self, *args: Any) -> None:
        """These inputs were written in place; they must be outputs too."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """These outputs get no gradient."""
        self._fixed = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not come are zeros (the default) or None."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is not None:
            return self._saved
        if not self._made:
            return self._to_save or ()
        raise RuntimeError(_FREED)

    saved_variables = saved_tensors


class Function:
    """Subclass with static `forward` and `backward`, and call `apply`."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        ctx = FunctionCtx()
        tensor = _row.Tensor
        ctx.needs_input_grad = tuple(isinstance(a, tensor) and a._requires_grad for a in args)
        recording = _state.grad_enabled and any(ctx.needs_input_grad)
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        single = not isinstance(output, tuple)
        outputs: list[Any] = [output] if single else list(output)
        if single and not isinstance(output, tensor):
            raise TypeError(
                f"{cls.__name__}.forward: expected to return a Tensor or a tuple, but got "
                f"{type(output).__name__}"
            )
        _record(cls, ctx, args, outputs, recording)
        return outputs[0] if single else tuple(outputs)


def _among(value: Any, values: Sequence[Any]) -> bool:
    return any(value is v for v in values)


def _record(
    cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], outputs: list[Any], on: bool
) -> None:
    """Makes the outputs those of a node. Changes the list where an output is an input."""
    tensor = _row.Tensor
    for written in ctx._dirty:
        if not _among(written, outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        if on and written._requires_grad and written._fn is None:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
    differentiable: list[int] = []
    dirty: list[int] = []
    made: list[Any] = []
    for i, output in enumerate(outputs):
        if not isinstance(output, tensor):
            continue
        fixed = _among(output, ctx._fixed)
        if _among(output, ctx._dirty):
            dirty.append(len(made))
        elif _among(output, args):
            with no_grad():
                fresh = output.detach() if fixed or not on else output.view_as(output)
            saved = ctx._to_save or ()
            ctx._to_save = tuple(fresh if s is output and not fixed else s for s in saved)
            outputs[i] = output = fresh
        if not fixed and output.is_floating_point():
            differentiable.append(len(made))
        made.append(output)
    if not on:
        ctx._to_save, ctx._dirty, ctx._fixed, ctx._made = None, (), (), True
        return
    name = cls.__name__ + "Backward"
    code = callbacks.add(_code(cls, ctx, args, [isinstance(o, tensor) for o in outputs], name))
    inputs = [a if isinstance(a, tensor) else None for a in args]
    _call.command(
        ROWS["session.function"],
        (
            inputs,
            made,
            ctx._to_save or (),
            code,
            name,
            differentiable,
            dirty,
            ctx.materialize_grads,
        ),
    )
    for i in differentiable:
        made[i]._requires_grad, made[i]._fn = True, name
    # The daemon keeps what was saved: the context must not hold its own outputs.
    ctx._to_save, ctx._dirty, ctx._fixed, ctx._made = None, (), (), True


def _code(
    cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], kinds: list[bool], name: str
) -> callbacks.Code:
    places = [isinstance(a, _row.Tensor) for a in args]
    run = cls.backward if cls.backward is not Function.backward else cls.vjp

    def code(_: int, gradients: list[Any], saved: list[Any]) -> list[Any]:
        given = iter(gradients)
        ctx._saved = tuple(saved)
        try:
            results = run(ctx, *[next(given) if kind else None for kind in kinds])
        finally:
            ctx._saved = None
        results = list(results) if isinstance(results, tuple) else [results]
        while len(results) > len(places) and results[-1] is None:
            results.pop()
        if len(results) != len(places):
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected "
                f"{len(places)}, got {len(results)})"
            )
        for i, (result, place) in enumerate(zip(results, places, strict=True)):
            if result is None:
                continue
            if not isinstance(result, _row.Tensor):
                raise TypeError(f"expected Variable or None (got {type(result).__name__})")
            if not place:
                raise RuntimeError(
                    f"function {name} returned a gradient different from None at position "
                    f"{i + 1}, but the corresponding forward input was not a Variable"
                )
        return results

    return code


class _NoSecond(Function):
    @staticmethod
    def forward(ctx: Any, *values: Any) -> Any:
        return tuple(v.detach() if isinstance(v, _row.Tensor) else v for v in values)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """For a backward() that cannot be differentiated: a second derivative is then an error."""

    @functools.wraps(function)
    def wrapped(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            outputs = function(ctx, *gradients)
        if not is_grad_enabled():
            return outputs
        if not any(isinstance(g, _row.Tensor) and g._requires_grad for g in gradients):
            return outputs
        many = isinstance(outputs, tuple)
        fakes = []
        for output in outputs if many else (outputs,):
            if isinstance(output, _row.Tensor):
                output = output.detach().requires_grad_()
            fakes.append(output)
        marked = _NoSecond.apply(*fakes)
        return marked if many else marked[0]

    return wrapped
