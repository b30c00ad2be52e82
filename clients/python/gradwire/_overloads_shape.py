"""Functions about sizes, parts and places whose torch signatures take more than a row does."""

from __future__ import annotations

from typing import Any

from . import _row
from ._call import call, call_
from ._row import fail
from ._rows import ROWS


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _row.Tensor)


def _listed(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of `f(a, b)` and of `f([a, b])` alike."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(tensors[0])
    return tensors


def _atleast(name: str) -> Any:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1 and _is_tensor(tensors[0]):
            return call(ROWS[name], tensors)
        return tuple(call(ROWS[name], (t,)) for t in _listed(tensors))

    function.__name__ = name
    function.__doc__ = f"Each tensor as a view with at least {name[-2]} dimensions."
    return function


atleast_1d = _atleast("atleast_1d")
atleast_2d = _atleast("atleast_2d")
atleast_3d = _atleast("atleast_3d")


def broadcast_tensors(*tensors: Any) -> Any:
    """The tensors expanded to their common sizes."""
    return call(ROWS["broadcast_tensors"], (_listed(tensors),))


def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """Grids of the coordinates in vectors; with "xy" the first two are swapped."""
    return call(ROWS["meshgrid"], (_listed(tensors), indexing))


def cartesian_prod(*tensors: Any) -> Any:
    """All tuples of elements of the vectors, one a row."""
    return call(ROWS["cartesian_prod"], (_listed(tensors),))


def _parts(name: str, indices_or_sections: Any) -> tuple[Any, Any]:
    """The sections, or else the indices, of a splitting function's argument."""
    value = indices_or_sections
    if _is_tensor(value):
        if value.dim() > 1:
            fail(
                RuntimeError,
                name,
                f"{name} expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {value.dim()} dims",
            )
        if value.dtype.name != "int64":
            fail(
                RuntimeError,
                name,
                f"{name} expected tensor_indices_or_sections to have dtype of long, but got "
                f"{_row.scalar_name(value.dtype)}",
            )
        value = value.tolist()
    return (None, tuple(value)) if isinstance(value, (list, tuple)) else (value, None)


def tensor_split(
    input: Any,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> Any:
    """Parts of dim: a number of them, the first ones larger by one, or those between indices."""
    for given in (indices, sections, tensor_indices_or_sections):
        indices_or_sections = indices_or_sections if given is None else given
    return call(ROWS["tensor_split"], (input, *_parts("tensor_split", indices_or_sections), dim))


def _split_at(name: str, where: str) -> Any:
    def function(
        input: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
    ) -> Any:
        for given in (indices, sections):
            indices_or_sections = indices_or_sections if given is None else given
        return call(ROWS[name], (input, *_parts(name, indices_or_sections)))

    function.__name__ = name
    function.__doc__ = f"Equal parts, or the parts between indices, {where}."
    return function


hsplit = _split_at("hsplit", "of dimension 1, of a vector's dimension 0")
vsplit = _split_at("vsplit", "of dimension 0")
dsplit = _split_at("dsplit", "of dimension 2")


def _source(name: str, src: Any, value: Any) -> Any:
    if (src is None) == (value is None):
        raise TypeError(f"{name}() takes one of the arguments 'src' and 'value'")
    return src if value is None else value


def scatter(
    input: Any,
    dim: int,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
    out: Any = None,
) -> Any:
    """input with src, a tensor or a number, written where index says along dim."""
    source = _source("scatter", src, value)
    return call(ROWS["scatter"], (input, dim, index, _number(source, value), reduce), out)


def scatter_(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """`scatter` in place."""
    source = _source("scatter_", src, value)
    return call_(ROWS["scatter"], (input, dim, index, _number(source, value), reduce))


def _number(source: Any, value: Any) -> Any:
    """A tensor given as `value` is a number."""
    return source.item() if value is not None and _is_tensor(source) else source


def repeat_interleave(
    input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """Every entry of dim repeated; of repeats alone, the places so many times each."""
    if repeats is None:
        from ._create import arange

        places = arange(input.numel(), dtype=input.dtype)
        return call(ROWS["repeat_interleave"], (places, input, 0, output_size))
    if isinstance(repeats, (list, tuple)):
        from ._host import tensor

        repeats = tensor(repeats)
    return call(ROWS["repeat_interleave"], (input, repeats, dim, output_size))


def unravel_index(indices: Any, shape: Any) -> Any:
    """For every dimension of shape the coordinate of each flat index."""
    if _is_tensor(shape):
        shape = shape.tolist()
    return call(ROWS["unravel_index"], (indices, (shape,) if isinstance(shape, int) else shape))


def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """length entries of dim from start, a number or a tensor of one."""
    if _is_tensor(start):
        if start.dim() or start.is_floating_point() or start.dtype.name == "bool":
            fail(RuntimeError, "narrow", "start must be an 0-dim integral Tensor.")
        start = int(start.item())
    return call(ROWS["narrow"], (input, dim, start, length))


# Functions of the package and, where their first argument is a tensor, methods.
FUNCTIONS = [
    atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, meshgrid, cartesian_prod, tensor_split,
    hsplit, vsplit, dsplit, scatter, repeat_interleave, unravel_index, narrow,
]  # fmt: skip
METHODS = [
    tensor_split, hsplit, vsplit, dsplit, scatter, scatter_, repeat_interleave, narrow,
]  # fmt: skip
