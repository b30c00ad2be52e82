"""Helpers for gradients and parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ... import _linalg_ops, _ops, _overloads, _row
from ...autograd import gradients, no_grad
from . import parametrizations, parametrize, rnn
from ._weight_norm import remove_weight_norm, weight_norm


def _listed(parameters: Any) -> list[Any]:
    return [parameters] if isinstance(parameters, _row.Tensor) else list(parameters)


def _grads(parameters: Any) -> list[Any]:
    leaves = [p for p in _listed(parameters) if p._id and p._requires_grad]
    return [g for g in gradients(leaves) if g is not None]


def get_total_norm(
    tensors: Iterable[Any],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """The norm of all the tensors' elements together."""
    values = [tensors] if isinstance(tensors, _row.Tensor) else list(tensors)
    order = float(norm_type)
    if not values:
        from ... import _host

        return _host.tensor(0.0)
    with no_grad():
        norms = [_linalg_ops.vector_norm(g, order) for g in values]
        total = _linalg_ops.vector_norm(_ops.stack(norms), order)
    # Asked for only: it reads a value.
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scales the gradients so that their norm is at most max_norm; returns the norm before."""
    grads = _grads(parameters)
    norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    with no_grad():
        scale = _overloads.clamp(float(max_norm) / (norm + 1e-6), max=1.0)
        for grad in grads:
            grad.mul_(scale)
    return norm


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clips every gradient to [-clip_value, clip_value]."""
    with no_grad():
        for grad in _grads(parameters):
            grad.clamp_(min=-float(clip_value), max=float(clip_value))


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All parameters' elements as one vector."""
    return _ops.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Writes a vector's elements into parameters, one after the other."""
    at = 0
    with no_grad():
        for value in parameters:
            count = value.numel()
            value.copy_(vec[at : at + count].view(*value.shape))
            at += count


__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_weight_norm",
    "rnn",
    "vector_to_parameters",
    "weight_norm",
]
