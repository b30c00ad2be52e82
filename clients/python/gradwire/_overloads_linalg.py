"""Products and factorisations whose torch signatures take more forms than one catalog row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _row
from ._call import call
from ._row import here
from ._rows import ROWS


def tensor_type() -> Any:
    return _row.Tensor


def einsum(equation: Any, *operands: Any) -> Any:
    """Sums of products over the subscripts that the output lacks: einsum("bij,bjk->bik", a, b).

    Subscripts may be lists of numbers too: einsum(a, [0, 1], b, [1, 2], [0, 2]).
    """
    if not isinstance(equation, str):
        equation, operands = _from_lists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return call(ROWS["einsum"], (equation, list(operands)))


def _from_lists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    def letters(places: Sequence[Any]) -> str:
        return "".join("..." if p is Ellipsis else _letter(p) for p in places)

    texts = [letters(places) for places in arguments[1::2]]
    equation = ",".join(texts)
    if len(arguments) % 2:
        equation += "->" + letters(arguments[-1])
    return equation, tuple(arguments[0 : len(texts) * 2 : 2])


def _letter(place: int) -> str:
    if not 0 <= place < 52:
        raise ValueError(f"einsum(): subscripts must be in the range [0, 52), got {place}{here()}")
    return chr(ord("A") + place) if place < 26 else chr(ord("a") + place - 26)


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sums of products over the last dims of a and the first of b, or over the dims given."""
    if isinstance(dims, _row.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}{here()}")
        dims = (list(range(-dims, 0)), list(range(dims)))
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    return call(ROWS["tensordot_dims"], (a, b, first, second), out)


def norm(
    input: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """(sum |input|^p)^(1/p) of all elements or over dim; p may be "fro" or "nuc" too."""
    row = ROWS["norm_name" if isinstance(p, str) else "norm"]
    return call(row, (input, p, dim, keepdim, dtype), out)


def block_diag(*tensors: Any) -> Any:
    """A matrix with the given ones along its diagonal; vectors are rows."""
    return call(ROWS["block_diag"], (list(tensors),))


def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of a chain of matrices in the cheapest order."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    return call(ROWS["chain_matmul"], (list(matrices),), out)


def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:  # noqa: N803
    """The LU factors in one matrix and the row exchanges; with get_infos what went wrong too."""
    row = ROWS["linalg.lu_factor_ex" if get_infos else "linalg.lu_factor"]
    return call(row, (A, pivot, False) if get_infos else (A, pivot), out)


METHODS = [norm, lu]
