"""Calling rows: a command in the stream, and outputs with what can be known of them."""

from __future__ import annotations

from collections.abc import Sequence
from sys import _getframe
from typing import Any

from . import _dtype, _state
from ._row import Row, described, fail, scalar_name
from .wire import current, frame

Tensor: Any = None  # these three are set by _row.bind
_new: Any = None
_upload: Any = None


def call(row: Row, values: Sequence[Any], out: Any = None) -> Any:
    """Runs the op; returns its outputs with what can be known of them."""
    session = current._session or current.connect()
    if _state.default_dtype is not _dtype.float32 and row.type_rule in _DEFAULTING:
        values = _to_default(row, values)
    if row.plain:
        ids: list[int] = []
        needs = False
        attributes = None
        for value in values:
            if isinstance(value, Tensor):
                ids.append(value._id or _upload(value))
                if value._requires_grad:
                    needs = True
            else:
                ids, attributes, needs = row.encode(values)
                break
    else:
        ids, attributes, needs = row.encode(values)
    shape = row.shape(values)
    kind = row.type(values)
    needs = needs and row.differentiable and _state.grad_enabled
    line = session.sites.find(_getframe(1))
    if out is not None:
        return _call_out(row, ids, attributes, shape, kind, needs, line, out)
    if row.output_count == 1:
        new = session.new_id()
        count = len(ids)
        ids.append(new)
        head = row.head1[count] if count < 8 else frame.head(row.number, 0, False, count, 1)
        if attributes is not None:
            head |= 1 << 20
        session.emit(head | line << 48, ids, attributes)
        return _new(new, shape, kind, needs, row.grad_fn)
    return _call_many(row, values, ids, attributes, shape, kind, needs, line)


# Rules by which integers become the default dtype, which the daemon takes to be float32.
_DEFAULTING = ("promote", "promote_float", "true_div")


def _to_default(row: Row, values: Sequence[Any]) -> Sequence[Any]:
    """The values with an integer tensor cast, where the result has the default dtype."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    if row.type(values) is not _state.default_dtype or not tensors:
        return values
    if any(t.dtype.category == _dtype.FLOAT for t in tensors):
        return values
    cast = tensors[0].to(_state.default_dtype)
    return [cast if v is tensors[0] else v for v in values]


def _ask_shape(row: Row, values: Sequence[Any]) -> Any:
    """The shapes of outputs whose number depends on a shape that is not known here yet."""
    for value in values:
        if isinstance(value, Tensor):
            value._sizes()
    return row.shape(values)


def _call_many(
    row: Row,
    values: Sequence[Any],
    ids: list[int],
    attributes: Any,
    shape: Any,
    kind: Any,
    needs: bool,
    line: int,
) -> Any:
    session = current.session()
    count = row.output_count
    if count is None:
        if shape is None:
            shape = _ask_shape(row, values)
        if shape is None:
            fail(NotImplementedError, row.name, "this client cannot tell how many results it has")
        count = len(shape)
    shapes = shape if isinstance(shape, list) else [shape] * count
    kinds = kind if isinstance(kind, list) else [kind] * count
    news = [session.new_id() for _ in range(count)]
    head = frame.head(row.number, 0, attributes is not None, len(ids), count)
    session.emit(head | line << 48, ids + news, attributes)
    made = [
        _new(new, s, k, needs and (k is None or k.is_floating_point), row.grad_fn)
        for new, s, k in zip(news, shapes, kinds, strict=True)
    ]
    if row.result is not None:
        return row.result(*made)
    return tuple(made) if count else None


def _call_out(
    row: Row,
    ids: list[int],
    attributes: Any,
    shape: Any,
    kind: Any,
    needs: bool,
    line: int,
    out: Any,
) -> Any:
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    session = current.session()
    for tensor in outs:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"{row.name}(): argument 'out' must be Tensor, not {type(tensor).__name__}"
            )
        if (needs or tensor._requires_grad) and _state.grad_enabled:
            fail(
                RuntimeError,
                row.name,
                "functions with out=... arguments don't support automatic differentiation, but "
                "one of the arguments requires grad.",
            )
    targets = [t._id or _upload(t) for t in outs]
    head = frame.head(row.number, 2, attributes is not None, len(ids), len(targets))
    session.emit(head | line << 48, ids + targets, attributes)
    shapes = shape if isinstance(shape, list) else [shape] * len(outs)
    for tensor, s in zip(outs, shapes, strict=True):
        tensor._shape = s
        tensor._strides = None
    return out


def call_(row: Row, values: Sequence[Any]) -> Any:
    """Runs the op in place on its first argument."""
    session = current._session or current.connect()
    target = values[0]
    if not isinstance(target, Tensor):
        row._wrong(0, target, "Tensor")
    ids, attributes, needs = row.encode(values)
    if _state.grad_enabled and target._requires_grad and target._fn is None:
        fail(
            RuntimeError,
            row.name + "_",
            "a leaf Variable that requires grad is being used in an in-place operation. "
            f"({described(target)}: write under no_grad(), or to a clone())",
        )
    if target._inference and not _state.inference and target.is_inference():
        fail(
            RuntimeError,
            row.name + "_",
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
            "a clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details.",
        )
    if row.shape_rule == "broadcast":
        shape = row.shape(values)
        if shape is not None and target._shape is not None and shape != target._shape:
            fail(
                RuntimeError,
                row.name + "_",
                f"output with shape {list(target._shape)} doesn't match the broadcast shape "
                f"{list(shape)}",
            )
        kind = row.type(values)
        if kind is not None and target._dtype is not None and row.type_rule != "bool":
            if not _dtype.can_cast(kind, target._dtype):
                fail(
                    RuntimeError,
                    row.name + "_",
                    f"result type {scalar_name(kind)} can't be cast to the desired output type "
                    f"{scalar_name(target._dtype)}",
                )
    head = frame.head(row.number, 1, attributes is not None, len(ids), 0)
    line = session.sites.find(_getframe(1))
    session.emit(head | line << 48, ids, attributes)
    _state.writes += 1
    if needs and row.differentiable and _state.grad_enabled:
        target._requires_grad = True
        target._fn = row.grad_fn
    if row.shape_rule not in ("broadcast", "same"):
        target._shape = None
    target._strides = None
    return target


def command(row: Row, values: Sequence[Any], outputs: Sequence[int] = ()) -> None:
    """Emits a session command without a reply."""
    session = current._session or current.connect()
    ids, attributes, _ = row.encode(values)
    head = frame.head(row.number, 0, attributes is not None, len(ids), len(outputs))
    line = session.sites.find(_getframe(1))
    session.emit(head | line << 48, [*ids, *outputs], attributes)


def ask(row: Row, values: Sequence[Any], outputs: Sequence[int] = ()) -> Any:
    """Emits a session command that has a reply; returns the waiter."""
    session = current._session or current.connect()
    ids, attributes, _ = row.encode(values)
    head = frame.head(row.number, 0, attributes is not None, len(ids), len(outputs))
    line = session.sites.find(_getframe(1))
    return session.ask(head | line << 48, [*ids, *outputs], attributes)
