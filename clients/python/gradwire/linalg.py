"""torch.linalg: ops of the catalog, with torch's signatures where those are freer."""

from __future__ import annotations

from typing import Any

from . import _linalg_ops, _overloads_linalg
from ._call import call
from ._ops import matmul, matrix_exp
from ._rows import ROWS
from .wire.errors import LinAlgError

for _name, _value in vars(_linalg_ops).items():
    if getattr(_value, "__module__", "") == _linalg_ops.__name__ and not _name.endswith("_name"):
        globals()[_name] = _value

__all__ = ["LinAlgError", "matmul", "matrix_exp"]


def norm(
    A: Any,  # noqa: N803
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """A vector norm, or with an order and two dims a matrix norm."""
    row = ROWS["linalg.norm_name" if isinstance(ord, str) else "linalg.norm"]
    return call(row, (A, ord, dim, keepdim, dtype), out)


def matrix_norm(
    A: Any,  # noqa: N803
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """The norm of the matrices in two dims."""
    row = ROWS["linalg.matrix_norm_name" if isinstance(ord, str) else "linalg.matrix_norm"]
    return call(row, (A, ord, dim, keepdim, dtype), out)


def cond(A: Any, p: Any = None, *, out: Any = None) -> Any:  # noqa: N803
    """The condition number |A| |A^-1| in the matrix norm p."""
    return call(ROWS["linalg.cond_name" if isinstance(p, str) else "linalg.cond"], (A, p), out)


def pinv(
    A: Any,  # noqa: N803
    rcond: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    out: Any = None,
) -> Any:
    """The pseudo-inverse; singular values up to max(atol, rtol * largest) count as 0."""
    return _with_limits("linalg.pinv", A, atol, rcond if rtol is None else rtol, hermitian, out)


def matrix_rank(
    A: Any,  # noqa: N803
    tol: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    out: Any = None,
) -> Any:
    """How many singular values are above max(atol, rtol * largest)."""
    if tol is not None:
        atol, rtol = tol, 0.0
    return _with_limits("linalg.matrix_rank", A, atol, rtol, hermitian, out)


def _with_limits(name: str, a: Any, atol: Any, rtol: Any, hermitian: bool, out: Any) -> Any:
    tensors = [x if isinstance(x, _overloads_linalg.tensor_type()) else None for x in (atol, rtol)]
    numbers = [None if t is not None else x for t, x in zip(tensors, (atol, rtol), strict=True)]
    return call(ROWS[name], (a, *tensors, *numbers, hermitian), out)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'torch.linalg' has no attribute '{name}'")
