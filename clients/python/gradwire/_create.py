"""Functions that make tensors from sizes and numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _device, _dtype, _host, _state
from ._call import call
from ._random import Generator, host_generator
from ._rows import ROWS
from ._tensor_sizes import sizes


def _kind(dtype: Any) -> _dtype.dtype:
    return _state.default_dtype if dtype is None else _dtype.of(dtype)


def _finish(made: Any, requires_grad: bool) -> Any:
    return made.requires_grad_(True) if requires_grad else made


def _factory(name: str, value: int) -> Any:
    def make(
        *size: Any,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
        **named: Any,
    ) -> Any:
        _device.check(device)
        size = tuple(sizes(size or (named.pop("size"),)))
        if out is not None:
            dtype = out.dtype
        return _finish(call(ROWS["full"], (size, value, _kind(dtype)), out), requires_grad)

    make.__name__ = name
    make.__doc__ = f"A tensor of the given sizes, as `{name}` fills it."
    return make


zeros = _factory("zeros", 0)
ones = _factory("ones", 1)
empty = _factory("empty", 0)


def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """A tensor of the given sizes where every element is `fill_value`."""
    _device.check(device)
    if hasattr(fill_value, "item"):
        fill_value = fill_value.item()
    if dtype is None:
        if isinstance(fill_value, bool):
            dtype = _dtype.bool_
        elif isinstance(fill_value, int):
            dtype = _dtype.int64
    size = (size,) if isinstance(size, int) else tuple(size)
    return _finish(call(ROWS["full"], (size, fill_value, _kind(dtype)), out), requires_grad)


def _like(make: Any) -> Any:
    def like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
             layout: Any = None, memory_format: Any = None) -> Any:  # fmt: skip
        return make(
            tuple(input._sizes()),
            dtype=dtype or input.dtype,
            device=device,
            requires_grad=requires_grad,
        )

    like.__name__ = make.__name__ + "_like"
    like.__doc__ = f"`{make.__name__}` with the sizes and dtype of another tensor."
    return like


zeros_like = _like(zeros)
ones_like = _like(ones)
empty_like = _like(empty)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Any:
    """`full` with the sizes and dtype of another tensor."""
    options.pop("memory_format", None)
    return full(tuple(input._sizes()), fill_value, dtype=dtype or input.dtype, **options)


def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """The numbers from `start`, up to and without `end`, `step` apart."""
    _device.check(device)
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if hasattr(v, "item") else v for v in (start, end, step))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign: {start}, {end}, step {step}"
        )
    if dtype is None and all(isinstance(v, int) for v in (start, end, step)):
        dtype = _dtype.int64
    return _finish(_arange(start, end, step, _kind(dtype), out), requires_grad)


def _arange(start: Any, end: Any, step: Any, kind: Any, out: Any) -> Any:
    made = call(ROWS["arange"], (start, end, step, kind), out)
    count = (end - start) / step
    if made._shape is None and math.isfinite(count):
        made._shape = (max(0, math.ceil(count)),)
    return made


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """`steps` numbers from `start` to `end`, both included."""
    _device.check(device)
    start, end = _ends("linspace", start, end)
    kind = out.dtype if dtype is None and out is not None else _kind(dtype)
    return _finish(call(ROWS["linspace"], (start, end, steps, kind), out), requires_grad)


def _ends(name: str, start: Any, end: Any) -> Any:
    """Start and end as numbers; they may be tensors without dims."""
    for what, value in (("start", start), ("end", end)):
        if hasattr(value, "_sizes") and value.dim():
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {what} with "
                f"{value.dim()} dimension(s)."
            )
    return (v.item() if hasattr(v, "item") else v for v in (start, end))


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """`steps` powers of `base`, from `base ** start` to `base ** end`."""
    _device.check(device)
    start, end = _ends("logspace", start, end)
    kind = out.dtype if dtype is None and out is not None else _kind(dtype)
    return _finish(call(ROWS["logspace"], (start, end, steps, base, kind), out), requires_grad)


def _triangle(name: str) -> Any:
    def make(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: Any = None,
        device: Any = None,
        layout: Any = None,
    ) -> Any:
        _device.check(device)
        kind = _dtype.int64 if dtype is None else _dtype.of(dtype)
        return call(ROWS[name], (row, col, offset, kind))

    make.__name__ = name
    make.__doc__ = f"Rows and columns of the places of a matrix, see `{name}` in the catalog."
    return make


tril_indices = _triangle("tril_indices")
triu_indices = _triangle("triu_indices")


def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """A matrix with ones on its diagonal and zeros elsewhere."""
    _device.check(device)
    made = call(ROWS["eye"], ((n, n if m is None else m), _kind(dtype)), out)
    return _finish(made, requires_grad)


def _random(name: str, draw: Any) -> Any:
    row = ROWS[name]

    def make(
        *size: Any,
        generator: Generator | None = None,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **named: Any,
    ) -> Any:
        _device.check(device)
        size = tuple(sizes(size or (named.pop("size"),)))
        kind = _kind(dtype)
        if generator is not None:
            values = draw(generator.numpy, size)
            made = _host.host_tensor(_host.convert(values, _dtype.float64, kind), kind, True)
        else:
            made = call(row, (size, kind), out)
        return _finish(made, requires_grad)

    make.__name__ = name
    make.__doc__ = f"Random numbers by `{name}` in a tensor of the given sizes."
    return make


rand = _random("rand", lambda g, size: g.random(size))
randn = _random("randn", lambda g, size: g.standard_normal(size))
rand_like = _like(rand)
randn_like = _like(randn)


def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Whole random numbers in [low, high), every one as likely."""
    _device.check(device)
    if size is None or isinstance(high, (tuple, list)):
        low, high, size = 0, low, high if size is None else size
    kind = _dtype.int64 if dtype is None else _dtype.of(dtype)
    size = (size,) if isinstance(size, int) else tuple(size)
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if generator is not None:
        values = generator.numpy.integers(low, high, size)
        return _host.host_tensor(_host.convert(values, _dtype.int64, kind), kind, True)
    return _finish(call(ROWS["randint"], (size, low, high, kind), out), requires_grad)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """The numbers from 0 to n - 1 in random order."""
    _device.check(device)
    kind = _dtype.int64 if dtype is None else _dtype.of(dtype)
    if generator is not None:
        values = generator.numpy.permutation(n)
        return _host.host_tensor(_host.convert(values, _dtype.int64, kind), kind, True)
    made = call(ROWS["randperm"], (n, kind), out)
    if made._shape is None:
        made._shape = (n,)
    return made


def host_permutation(n: int, generator: Generator | None) -> np.ndarray:
    """An order for a loader: drawn here, since it decides which of the client's data is read."""
    return (generator or host_generator).numpy.permutation(n)
