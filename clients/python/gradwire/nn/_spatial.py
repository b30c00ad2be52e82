"""Functions over windows and images whose torch signatures are freer than their rows."""

from __future__ import annotations

from typing import Any

from .._call import call
from .._row import here
from .._rows import ROWS


def _max_pool(name: str) -> Any:
    def function(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        row = ROWS[f"nn.functional.{name}" + ("_with_indices" if return_indices else "")]
        return call(row, (input, kernel_size, stride, padding, dilation, ceil_mode))

    function.__name__ = name
    function.__doc__ = "The largest element of every window, and its indices when asked for."
    return function


def _adaptive(name: str, dims: int) -> Any:
    def sizes_of(input: Any, output_size: Any) -> Any:
        if isinstance(output_size, int) or None not in output_size:
            return output_size
        have = input._sizes()[-dims:]
        if len(have) != len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}{here()}")
        return [h if s is None else s for s, h in zip(output_size, have, strict=True)]

    def average(input: Any, output_size: Any) -> Any:
        return call(ROWS[f"nn.functional.{name}"], (input, sizes_of(input, output_size)))

    def largest(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        row = ROWS[f"nn.functional.{name}" + ("_with_indices" if return_indices else "")]
        return call(row, (input, sizes_of(input, output_size)))

    function = largest if "max" in name else average
    function.__name__ = name
    function.__doc__ = "Over windows that give output_size; None keeps a size."
    return function


max_pool1d, max_pool2d, max_pool3d = (_max_pool(f"max_pool{d}d") for d in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive(f"adaptive_avg_pool{d}d", d) for d in (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive(f"adaptive_max_pool{d}d", d) for d in (1, 2, 3)
)


def _convolution(name: str) -> Any:
    def function(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if isinstance(padding, str):
            input, padding = _pad_named(input, weight, padding, stride, dilation)
        row = ROWS["nn.functional." + name]
        return call(row, (input, weight, bias, stride, padding, dilation, groups))

    function.__name__ = name
    function.__doc__ = f"`{name}`: see the class of the same kind."
    return function


conv1d, conv2d, conv3d = (_convolution(f"conv{d}d") for d in (1, 2, 3))


def same_padding(kernel: Any, dilation: Any) -> list[int]:
    """Amounts for `pad` that keep sizes, the last dimension first; odd ones end with more."""
    amounts: list[int] = []
    for k, d in zip(reversed(kernel), reversed(dilation), strict=True):
        span = d * (k - 1)
        amounts += [span // 2, span - span // 2]
    return amounts


def _pad_named(input: Any, weight: Any, padding: str, stride: Any, dilation: Any) -> Any:
    """Input and sizes for padding="same" or "valid"; what is uneven is padded before."""
    from .. import _shapes

    kernel = weight._sizes()[2:]
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise ValueError(
            f"Invalid padding string {padding!r}, should be one of 'valid', 'same'{here()}"
        )
    if any(s != 1 for s in _shapes.tuple_of(stride, len(kernel))):
        raise RuntimeError(f"padding='same' is not supported for strided convolutions{here()}")
    amounts = same_padding(kernel, _shapes.tuple_of(dilation, len(kernel)))
    uneven: list[int] = []
    for before, after in zip(amounts[::2], amounts[1::2], strict=True):
        uneven += [0, after - before]
    if any(uneven):
        input = call(ROWS["nn.functional.pad"], (input, uneven, "constant", None))
    return input, amounts[::2][::-1]
