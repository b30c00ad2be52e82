"""Functions whose torch signatures take more forms than one catalog row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _host, _row
from ._call import call, call_
from ._row import here
from ._rows import ROWS


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _row.Tensor)


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """input / other; with rounding_mode "trunc" or "floor" the quotient is rounded."""
    if rounding_mode is None:
        return call(ROWS["true_divide"], (input, other), out)
    if rounding_mode == "floor":
        return call(ROWS["div_floor"], (input, other), out)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'{here()}"
        )
    return call(ROWS["div_trunc"], (input, other), out)


def div_(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`div` in place."""
    if rounding_mode is None:
        return call_(ROWS["true_divide"], (input, other))
    if rounding_mode == "floor":
        return call_(ROWS["div_floor"], (input, other))
    if rounding_mode == "trunc":
        return call_(ROWS["div_trunc"], (input, other))
    return div(input, other, rounding_mode=rounding_mode)


divide, divide_ = div, div_


def _bounds(min: Any, max: Any) -> tuple[Any, Any]:
    """Bounds that are numbers, of one kind: together they decide the dtype."""
    if isinstance(min, float) and isinstance(max, int):
        return min, float(max)
    if isinstance(max, float) and isinstance(min, int):
        return float(min), max
    return min, max


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """input, but at least min and at most max; nan stays."""
    if min is None and max is None:
        raise RuntimeError(f"torch.clamp: At least one of 'min' or 'max' must not be None{here()}")
    made = input
    min, max = _bounds(min, max)
    # Bounds that are tensors share the gradient where they are met, numbers do not.
    if min is not None:
        row = ROWS["maximum" if _is_tensor(min) else "clamp_min"]
        made = call(row, (made, min), out if max is None else None)
    if max is not None:
        made = call(ROWS["minimum" if _is_tensor(max) else "clamp_max"], (made, max), out)
    return made


def clamp_(input: Any, min: Any = None, max: Any = None) -> Any:
    """`clamp` in place."""
    min, max = _bounds(min, max)  # so that a refused bound is refused before anything is written
    if min is not None:
        call_(ROWS["clamp_min"], (input, min))
    if max is not None:
        call_(ROWS["clamp_max"], (input, max))
    return input


clip, clip_ = clamp, clamp_


def _extreme(name: str, pairwise: str, whole: str, by_dim: str) -> Any:
    def function(input: Any, *args: Any, dim: Any = None, keepdim: bool = False,
                 axis: Any = None, other: Any = None, out: Any = None) -> Any:  # fmt: skip
        dim = axis if axis is not None else dim
        if args:
            if _is_tensor(args[0]):
                other = args[0]
            else:
                dim = args[0]
            if len(args) > 1:
                keepdim = args[1]
        if other is not None:
            return call(ROWS[pairwise], (input, other), out)
        if dim is None:
            return call(ROWS[whole], _whole_values(whole, input))
        return call(ROWS[by_dim], (input, int(dim), bool(keepdim)), out)

    function.__name__ = name
    function.__doc__ = (
        f"`{name}` of all elements, along `dim` (values and indices), or of two tensors."
    )
    return function


def _whole_values(name: str, input: Any) -> tuple[Any, ...]:
    row = ROWS[name]
    return (input, *[None if d is _row.REQUIRED else d for d in row.defaults[1:]])


max = _extreme("max", "maximum", "max", "max_dim")
min = _extreme("min", "minimum", "min", "min_dim")


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where condition is true, else other; with a condition alone its nonzero places."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return call(ROWS["where"], (condition, input, other), out)


def nonzero(input: Any, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The indices of the elements that are not zero, one row each."""
    if not as_tuple:
        return call(ROWS["nonzero"], (input,), out)
    found = call(ROWS["nonzero"], (input.reshape(1) if input.dim() == 0 else input,))
    return tuple(found.unbind(1))


def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None, axis: Any = None, out: Any = None) -> Any:  # fmt: skip
    """The variance; divided by n - correction, 1 by default."""
    return _spread("var", input, dim, unbiased, keepdim, correction, axis)


def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None, axis: Any = None, out: Any = None) -> Any:  # fmt: skip
    """The standard deviation; see `var`."""
    return _spread("std", input, dim, unbiased, keepdim, correction, axis)


def _spread(name: str, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any,
            axis: Any) -> Any:  # fmt: skip
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    dim = axis if axis is not None else dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    row = ROWS[name]
    named = {"input": input, "dim": dim, "keepdim": keepdim, "correction": correction}
    named["unbiased"] = bool(correction)
    return call(row, tuple(named[n] for n in row.names))


def std_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **options: Any
) -> Any:
    """The standard deviation and the mean."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    deviation = std(input, dim, unbiased, keepdim, **options)
    return deviation, input.mean(dim, keepdim)


def var_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **options: Any
) -> Any:
    """The variance and the mean."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    variance = var(input, dim, unbiased, keepdim, **options)
    return variance, input.mean(dim, keepdim)


def round(input: Any, *, decimals: int = 0, out: Any = None) -> Any:
    """Rounds to the nearest, half to even, at `decimals` places."""
    if decimals == 0:
        return call(ROWS["round"], (input,), out)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return call(ROWS["round"], (input * scale,)) / scale
    return call(ROWS["round"], (input / scale,)) * scale


def round_(input: Any, *, decimals: int = 0) -> Any:
    """`round` in place."""
    if decimals == 0:
        return call_(ROWS["round"], (input,))
    return input.copy_(round(input, decimals=decimals))


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of a size, or of the given sizes, along a dim."""
    row = ROWS["split_with_sizes"]
    shape = tensor._sizes()
    if isinstance(split_size_or_sections, int):
        from . import _shapes

        try:
            at = _shapes.wrap(dim, len(shape))
            pieces: Any = _shapes.pieces(shape[at] if shape else 0, split_size_or_sections)
        except _shapes.ShapeError as error:
            raise error.kind(f"[split] {error}{here()}") from None
    else:
        pieces = list(split_size_or_sections)
    return call(row, (tensor, pieces, dim))


def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` pieces of one size along a dim; the last may be smaller."""
    from . import _shapes

    shape = input._sizes()
    try:
        at = _shapes.wrap(dim, len(shape))
        pieces = _shapes.chunks(shape[at] if shape else 0, chunks)
    except _shapes.ShapeError as error:
        raise error.kind(f"[chunk] {error}{here()}") from None
    return call(ROWS["split_with_sizes"], (input, pieces, at))


def squeeze(input: Any, dim: Any = None) -> Any:
    """Without its dims of size 1, or without those of `dim` that are."""
    return call(ROWS["squeeze"], (input, dim))


def softmax(input: Any, dim: int, dtype: Any = None, *, out: Any = None) -> Any:
    """exp(input) / sum(exp(input)) along dim."""
    return _soft("softmax", input, dim, dtype)


def log_softmax(input: Any, dim: int, dtype: Any = None, *, out: Any = None) -> Any:
    """log(softmax(input)), stable."""
    return _soft("log_softmax", input, dim, dtype)


def _soft(name: str, input: Any, dim: int, dtype: Any) -> Any:
    row = ROWS[name]
    if "dtype" in row.names:
        return call(row, (input, dim, dtype))
    return call(row, (input if dtype is None else input.to(dtype), dim))


def is_tensor(value: Any) -> bool:
    return _is_tensor(value)


def is_floating_point(input: Any) -> bool:
    return input.is_floating_point()


def numel(input: Any) -> int:
    return input.numel()


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8,
             equal_nan: bool = False) -> bool:  # fmt: skip
    """Whether all elements differ by at most atol + rtol * |other|."""
    return bool(call(ROWS["isclose"], (input, other, rtol, atol, equal_nan)).all())


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same sizes and elements."""
    return input._sizes() == other._sizes() and bool((input == other).all())


def as_shape(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(s) for s in shape)


def broadcast_shapes(*shapes: Any) -> Any:
    """The sizes that tensors of these sizes broadcast to."""
    from . import _shapes
    from ._size import Size

    done: tuple[int, ...] = ()
    for shape in shapes:
        try:
            done = _shapes.broadcast(done, (shape,) if isinstance(shape, int) else tuple(shape))
        except _shapes.ShapeError as error:
            raise RuntimeError(str(error)) from None
    return Size(done)


def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """input[indices] = values, or += with accumulate."""
    return call_(ROWS["index_put_"], (input, values, list(indices), bool(accumulate)))


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """`index_put_` on a copy."""
    return index_put_(input.clone(), indices, values, accumulate)


def zero_(input: Any) -> Any:
    """Sets every element to 0."""
    return call_(ROWS["fill_"], (input, 0))


def scalar_tensor(
    value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """A tensor of one number."""
    from . import _state

    kind = dtype or _state.default_dtype
    return _host.tensor(value, dtype=kind, device=device, requires_grad=requires_grad)


METHODS = [
    div, div_, clamp, clamp_, max, min, var, std, split, squeeze, softmax, log_softmax,
    allclose, equal, zero_, nonzero, chunk, round, round_, index_put, index_put_,
]  # fmt: skip
ALIASES = {"divide": div, "divide_": div_, "clip": clamp, "clip_": clamp_}


def method_where(self: Any, condition: Any, other: Any) -> Any:
    return where(condition, self, other)
