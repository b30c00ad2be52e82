"""Jacobians, Hessians and their products with vectors, from repeated backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _row
from .backward import grad as _grad
from .modes import enable_grad


def _as_tuple(value: Any, name: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    many = isinstance(value, (tuple, list))
    values = tuple(value) if many else (value,)
    for i, item in enumerate(values):
        if not isinstance(item, _row.Tensor):
            place = f"Value at index {i} in the {name}" if many else name
            raise TypeError(
                f"The {place} of {function} must be either a Tensor or a tuple of Tensors but the "
                f"value has type {type(item)}."
                if many
                else f"The {name} of {function} must be either a Tensor or a tuple of Tensors but "
                f"{place} has type {type(item)}."
            )
    return many, values


def _prepared(inputs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """Tensors of their own to differentiate by, in the caller's graph where it asks for one."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
                     for x in inputs)  # fmt: skip
    return tuple(x.detach().requires_grad_() for x in inputs)


def _shaped(many: bool, values: Any) -> Any:
    return tuple(values) if many else values[0]


def _done(values: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    return values if create_graph else tuple(v.detach() for v in values)


def _zeros(x: Any) -> Any:
    from .._create import zeros_like

    return zeros_like(x)


def _check_strict(outputs: tuple[Any, ...], strict: bool, what: str) -> None:
    for i, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs "
                f"must be computed in a differentiable manner from the input when running in "
                f"strict mode. [{what}]"
            )


def _gradients(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    cotangents: tuple[Any, ...] | None,
    create_graph: bool,
    strict: bool = False,
    retain: bool | None = None,
) -> tuple[Any, ...]:
    """autograd.grad where outputs may be out of the graph, and None is zeros."""
    pairs = [
        (o, None if cotangents is None else cotangents[i])
        for i, o in enumerate(outputs)
        if o.requires_grad
    ]
    if not pairs:
        return tuple(_zeros(x) for x in inputs)
    found = _grad(
        [o for o, _ in pairs],
        inputs,
        None if cotangents is None else [c for _, c in pairs],
        retain_graph=retain,
        create_graph=create_graph,
        allow_unused=True,
    )
    for i, g in enumerate(found):
        if strict and g is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode."
            )
    return tuple(_zeros(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def _check_vector(v: Any, like: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the user-provided function {what} a single "
                "Tensor with a single element."
            )
        from .._create import ones_like

        return (ones_like(like[0]),)
    _, values = _as_tuple(v, "v", "the function")
    if len(values) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(values)}."
        )
    for i, (value, expected) in enumerate(zip(values, like, strict=True)):
        if value.shape != expected.shape:
            raise RuntimeError(
                f"v has invalid size: should be {expected.shape} but got {value.shape}."
                if len(values) == 1
                else f"Entry {i} in v has invalid size: should be {expected.shape} but got "
                f"{value.shape}."
            )
    return values


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(inputs), and v times its Jacobian."""
    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", "vjp")
        xs = _prepared(given, create_graph)
        many_out, outputs = _as_tuple(func(*xs), "outputs of the user-provided function", "vjp")
        _check_strict(outputs, strict, "vjp")
        vector = _check_vector(v, outputs, "returns")
        found = _gradients(outputs, xs, vector, create_graph, strict)
    return (
        _shaped(many_out, _done(outputs, create_graph)),
        _shaped(many, _done(found, create_graph)),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(inputs), and its Jacobian times v: the gradient, by a cotangent, of a vjp."""
    with enable_grad():
        _, given = _as_tuple(inputs, "inputs", "jvp")
        xs = _prepared(given, create_graph)
        vector = _check_vector(v, xs, "takes")
        many_out, outputs = _as_tuple(func(*xs), "outputs of the user-provided function", "jvp")
        _check_strict(outputs, strict, "jvp")
        cotangents = tuple(_zeros(o).requires_grad_() for o in outputs)
        linear = _gradients(outputs, xs, cotangents, True)
        reached = tuple(g for g in linear if g.requires_grad)
        if reached:
            vectors = tuple(u for u, g in zip(vector, linear, strict=True) if g.requires_grad)
            found = _gradients(reached, cotangents, vectors, create_graph)
        else:
            found = tuple(_zeros(o) for o in outputs)
    return (
        _shaped(many_out, _done(outputs, create_graph)),
        _shaped(many_out, _done(found, create_graph)),
    )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """d outputs / d inputs: for each output a tensor [*output sizes, *input sizes] per input."""
    from .._ops import stack

    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", "jacobian")
        xs = _prepared(given, create_graph)
        many_out, outputs = _as_tuple(
            func(*xs), "outputs of the user-provided function", "jacobian"
        )
        _check_strict(outputs, strict, "jacobian")
        rows = []
        for output in outputs:
            parts: list[list[Any]] = [[] for _ in xs]
            flat = output.reshape(-1)
            for k in range(output.numel()):
                found = _gradients((flat[k],), xs, None, create_graph, strict, retain=True)
                for part, g in zip(parts, found, strict=True):
                    part.append(g)
            row = []
            for part, x in zip(parts, xs, strict=True):
                shape = tuple(output.shape) + tuple(x.shape)
                row.append(stack(part).reshape(shape) if part else x.new_zeros(shape))
            rows.append(_shaped(many, _done(tuple(row), create_graph)))
    return _shaped(many_out, rows)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a scalar: for each pair of inputs a tensor of both sizes."""
    many, _ = _as_tuple(inputs, "inputs", "hessian")

    def first(*xs: Any) -> Any:
        value = func(*xs)
        if not isinstance(value, _row.Tensor) or value.numel() != 1:
            raise RuntimeError(
                "The Tensor returned by the function given to hessian should contain a single "
                "element"
            )
        found = _gradients((value,), xs, None, True, strict)
        return tuple(found) if many else found[0]

    return jacobian(first, inputs, create_graph, strict=False)


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(inputs), and v times its Hessian."""
    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", "vhp")
        xs = _prepared(given, create_graph)
        vector = _check_vector(v, xs, "takes")
        output = func(*xs)
        first = _gradients((output,), xs, None, True, strict)
        found = _gradients(first, xs, vector, create_graph, strict)
    return (
        _done((output,), create_graph)[0],
        _shaped(many, _done(found, create_graph)),
    )


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(inputs), and its Hessian times v: the same numbers, as the Hessian is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)
