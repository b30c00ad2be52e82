"""Backward passes. The graph is the daemon's; these are small commands to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _call, _row, _state
from .._row import described, here
from .._rows import ROWS
from ..wire import current
from . import callbacks


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, _row.Tensor):
        return [value]
    return list(value)


def _check_roots(tensors: list[Any], cotangents: list[Any]) -> list[Any]:
    if len(cotangents) not in (0, len(tensors)):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(cotangents)} gradients{here()}")
    given = cotangents or [None] * len(tensors)
    for i, (tensor, cotangent) in enumerate(zip(tensors, given, strict=True)):
        if not isinstance(tensor, _row.Tensor):
            raise TypeError(f"backward() takes tensors, not {type(tensor).__name__}{here()}")
        if not tensor._requires_grad:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn "
                f"({described(tensor)}: nothing it was computed from had requires_grad=True, or it "
                f"was computed under no_grad){here()}"
            )
        if cotangent is None:
            if tensor.numel() != 1:
                raise RuntimeError(
                    "grad can be implicitly created only for scalar outputs "
                    f"(got {described(tensor)}: pass a gradient of that shape, or reduce it first)"
                    f"{here()}"
                )
        elif cotangent._sizes() != tensor._sizes():
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {cotangent.shape} and "
                f"output[{i}] has a shape of {tensor.shape}.{here()}"
            )
    return given


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of the sum of `tensors` to the leaves they depend on."""
    roots = _as_list(tensors)
    given = _check_roots(roots, _as_list(grad_tensors))
    if inputs is not None and not len(_as_list(inputs)):
        raise RuntimeError(f"`inputs` argument to `backward()` cannot be empty.{here()}")
    values = (roots, given, _as_list(inputs), retain_graph, create_graph)
    if callbacks.live or _state.anomaly:
        waiter = _call.ask(ROWS["session.backward_watched"], values)
        callbacks.finish(current.session(), waiter, create_graph)
    else:
        _call.command(ROWS["session.backward"], values)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` by `inputs`; no .grad is touched."""
    if is_grads_batched:
        raise NotImplementedError(
            "autograd.grad(is_grads_batched=True) needs vmap, which is not supported: call grad "
            f"once for each gradient{here()}"
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    roots, leaves = _as_list(outputs), _as_list(inputs)
    given = _check_roots(roots, _as_list(grad_outputs))
    for leaf in leaves:
        if not leaf._requires_grad:
            raise RuntimeError(f"One of the differentiated Tensors does not require grad{here()}")
    unused = bool(allow_unused) or materialize_grads
    session = current.session()
    news = [session.new_id() for _ in leaves]
    values = (roots, leaves, given, retain_graph, create_graph, unused)
    waiter = _call.ask(ROWS["session.autograd_grad"], values, news)
    made = _receive(news, callbacks.finish(session, waiter, create_graph))
    if materialize_grads:
        from .._create import zeros_like

        made = [zeros_like(leaf) if g is None else g for g, leaf in zip(made, leaves, strict=True)]
    return tuple(made)


def _receive(news: Sequence[int], reply: Any) -> list[Any]:
    from .._tensor import new

    made: list[Any] = []
    for id, meta in zip(news, reply.metas.metas, strict=True):
        if not meta.defined:
            made.append(None)
            continue
        tensor = new(id, None, None, False, None)
        tensor._learn(meta)
        made.append(tensor)
    return made


def gradients(tensors: Sequence[Any]) -> list[Any]:
    """.grad of several tensors: asked for together, waited for once."""
    session = current.session()
    asked: list[Any] = []
    for tensor in tensors:
        if not tensor._id:
            asked.append(None)
            continue
        id = session.new_id()
        asked.append((id, _call.ask(ROWS["session.grad"], (tensor,), (id,))))
    found: list[Any] = []
    for entry in asked:
        if entry is None:
            found.append(None)
        else:
            found += _receive([entry[0]], session.wait(entry[1]))
    return found
