"""Statistics, sets and histograms whose torch signatures take more forms than one row has."""

from __future__ import annotations

from typing import Any

from . import _row
from ._call import call
from ._row import here
from ._rows import ROWS


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _row.Tensor)


def _median(name: str) -> Any:
    def function(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None,
                 out: Any = None) -> Any:  # fmt: skip
        dim = axis if axis is not None else dim
        if dim is None:
            return call(ROWS[name], (input,), out)
        return call(ROWS[name + "_dim"], (input, dim, bool(keepdim)), out)

    function.__name__ = name
    function.__doc__ = f"`{name}` of all elements, or along `dim` with its places."
    return function


median = _median("median")
nanmedian = _median("nanmedian")


def unique(input: Any, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False, dim: int | None = None) -> Any:  # fmt: skip
    """The distinct elements, or slices along dim, in order."""
    return _unique(input, False, return_inverse, return_counts, dim)


def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:  # fmt: skip
    """All but the first of equal neighbours left out."""
    return _unique(input, True, return_inverse, return_counts, dim)


def _unique(input: Any, consecutive: bool, inverse: bool, counts: bool, dim: int | None) -> Any:
    row = ROWS["unique_runs"]
    made = call(row, (input, dim, consecutive, bool(inverse), bool(counts)))
    chosen = [made[0], *([made[1]] if inverse else []), *([made[2]] if counts else [])]
    return chosen[0] if len(chosen) == 1 else tuple(chosen)


def histogram(input: Any, bins: Any, *, range: Any = None, weight: Any = None,
              density: bool = False, out: Any = None) -> Any:  # fmt: skip
    """How many elements lie in each bin, and the bins' edges."""
    flat = input.reshape(-1, 1)
    chosen = None if weight is None else weight.reshape(-1)
    edges, counts = ([bins], []) if _is_tensor(bins) else ([], [bins])
    row = ROWS["histogram_cells"]
    made = _result("histogram", call(row, (flat, chosen, edges, counts, range, density)))
    if out is None:
        return made
    return tuple(given.copy_(value) for given, value in zip(out, made, strict=True))


def histogramdd(input: Any, bins: Any, *, range: Any = None, weight: Any = None,
                density: bool = False) -> Any:  # fmt: skip
    """How many points lie in each cell of a grid, and the grid's edges."""
    dims = input.shape[-1]
    listed = [bins] * dims if isinstance(bins, int) else list(bins)
    tensors = bool(listed) and _is_tensor(listed[0])
    values = (input, weight, listed if tensors else [], [] if tensors else listed, range, density)
    made = call(ROWS["histogram_cells"], values)
    return _result("histogramdd", (made[0], tuple(made[1:])))


def _result(name: str, values: Any) -> Any:
    from collections import namedtuple

    kind = namedtuple(name, ["hist", "bin_edges"])  # type: ignore[misc]  # noqa: PYI024
    kind.__module__ = "torch.return_types"
    return kind(*values)


def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Derivatives of samples along dims, by central differences."""
    if dim is None:
        dims = list(range(input.dim()))
    else:
        dims = [dim] if isinstance(dim, int) else list(dim)
    listed = isinstance(spacing, (list, tuple))
    spacings = list(spacing) if listed else [1 if spacing is None else spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of "
            f"{len(dims)} entries, got {len(spacings)}{here()}"
        )
    row = ROWS["gradient_along"]
    return tuple(
        call(
            row, (input, s, 1, d, edge_order) if _is_tensor(s) else (input, None, s, d, edge_order)
        )
        for s, d in zip(spacings, dims, strict=True)
    )


METHODS = [median, nanmedian, unique, unique_consecutive, histogram]
