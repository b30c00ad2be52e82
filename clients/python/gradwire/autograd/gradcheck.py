"""Gradients against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _host, _row
from .backward import grad as _grad


class GradcheckError(RuntimeError):
    """A gradient is not what finite differences say."""


def _tensors(values: Any) -> tuple[Any, ...]:
    values = (values,) if isinstance(values, _row.Tensor) else tuple(values)
    return tuple(v for v in values if isinstance(v, _row.Tensor))


def _fresh(like: Any, values: np.ndarray) -> Any:
    made = _host.tensor(values, dtype=like.dtype)
    return made.requires_grad_() if like.requires_grad else made


def _differentiable(outputs: Any) -> list[Any]:
    return [o for o in _tensors(outputs) if o.requires_grad]


def _numerical(
    func: Callable[..., Any], inputs: list[Any], place: int, eps: float, chosen: list[int]
) -> list[np.ndarray]:
    """d outputs / d inputs[place], one matrix [input elements, output elements] per output."""
    start = inputs[place].detach().numpy().copy()
    flat = start.reshape(-1)
    columns: list[list[np.ndarray]] = []
    for i in range(flat.size):
        sides = []
        for step in (eps, -eps):
            moved = flat.copy()
            moved[i] += step
            given = list(inputs)
            given[place] = _fresh(inputs[place], moved.reshape(start.shape))
            outputs = _tensors(func(*given))
            sides.append([outputs[k].detach().numpy().reshape(-1) for k in chosen])
        columns.append([(up - down) / (2 * eps) for up, down in zip(*sides, strict=True)])
    if not columns:
        outputs = _tensors(func(*inputs))
        return [np.zeros((0, outputs[k].numel())) for k in chosen]
    return [np.stack([c[k] for c in columns]) for k in range(len(chosen))]


def _analytical(output: Any, leaves: Sequence[Any], masked: bool = False) -> list[np.ndarray]:
    count = output.numel()
    found = [np.zeros((leaf.numel(), count)) for leaf in leaves]
    for k in range(count):
        unit = np.zeros(count)
        unit[k] = 1
        cotangent = _host.tensor(unit.reshape(tuple(output.shape)), dtype=output.dtype)
        gradients = _grad(output, leaves, cotangent, retain_graph=True, allow_unused=True)
        for matrix, gradient in zip(found, gradients, strict=True):
            if gradient is not None:
                matrix[:, k] = gradient.detach().numpy().reshape(-1)
    return found


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of func at float64 inputs agree with central differences."""
    if check_forward_ad or check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: forward mode and vmap are not supported")
    given = list((inputs,) if isinstance(inputs, _row.Tensor) else inputs)
    try:
        _check(func, given, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    func: Any, inputs: list[Any], eps: float, atol: float, rtol: float, nondet_tol: float
) -> None:
    places = [i for i, x in enumerate(inputs) if isinstance(x, _row.Tensor) and x.requires_grad]
    if not places:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for i in places:
        if inputs[i].dtype.name != "float64":
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=3,
            )
    outputs = _tensors(func(*inputs))
    chosen = [k for k, o in enumerate(outputs) if o.requires_grad]
    leaves = [inputs[i] for i in places]
    if not chosen:
        for i in places:
            columns = list(range(len(outputs)))
            for matrix in _numerical(func, inputs, i, eps, columns):
                if not np.all(matrix == 0):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    exact = [_analytical(outputs[k], leaves) for k in chosen]
    again = [_analytical(outputs[k], leaves) for k in chosen]
    for first, second in zip(exact, again, strict=True):
        for a, b in zip(first, second, strict=True):
            if not np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient."
                )
    for column, i in enumerate(places):
        for k, numeric in enumerate(_numerical(func, inputs, i, eps, chosen)):
            analytic = exact[k][column]
            if np.allclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True):
                continue
            raise GradcheckError(
                f"Jacobian mismatch for output {chosen[k]} with respect to input {i},\n"
                f"numerical:{numeric}\nanalytical:{analytic}\n"
            )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    **options: Any,
) -> bool:
    """gradcheck of the gradient of func, by its inputs and by the gradients it is given."""
    given = tuple((inputs,) if isinstance(inputs, _row.Tensor) else inputs)
    outputs = _differentiable(func(*given))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = tuple(
            _host.tensor(rng.standard_normal(tuple(o.shape)), dtype=o.dtype).requires_grad_()
            for o in outputs
        )
    else:
        grad_outputs = _tensors(grad_outputs)
    count = len(grad_outputs)

    def first_order(*args: Any) -> tuple[Any, ...]:
        values, cotangents = args[:-count], args[-count:]
        leaves = [v for v in values if isinstance(v, _row.Tensor) and v.requires_grad]
        made = _differentiable(func(*values))
        found = _grad(made, leaves, cotangents, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first_order,
        given + tuple(grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )
