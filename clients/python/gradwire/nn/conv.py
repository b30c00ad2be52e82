"""Convolutions and transposed convolutions of 1 to 3 dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import functional as F
from ._spatial import same_padding
from .module import Module
from .state import create, put_state


def _spread(value: Any, dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(int(v) for v in value)


class _ConvNd(Module):
    dims = 0
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(
                f"padding_mode must be one of {list(modes)}, but got padding_mode='{padding_mode}'"
            )
        if self.transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        dims = self.dims
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = _spread(kernel_size, dims), _spread(stride, dims)
        self.dilation, self.groups = _spread(dilation, dims), groups
        self.output_padding = _spread(output_padding, dims)
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string '{padding}', should be one of 'same', 'valid'"
                )
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
            self.padding: Any = padding
            self._reversed_padding_repeated_twice = (
                same_padding(self.kernel_size, self.dilation)
                if padding == "same"
                else [0] * (2 * dims)
            )
        else:
            self.padding = _spread(padding, dims)
            self._reversed_padding_repeated_twice = [
                p for p in reversed(self.padding) for _ in range(2)
            ]
        self._bias, self._dtype = bias, dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        shapes = {
            "weight": (first, second // self.groups, *self.kernel_size),
            "bias": (self.out_channels,) if self._bias else None,
        }
        named = {
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "padding": 0 if isinstance(self.padding, str) else self.padding,
            "output_padding": self.output_padding,
            "dilation": self.dilation,
            "groups": self.groups,
            "bias": self._bias,
            "padding_mode": self.padding_mode,
        }
        kind = f"nn.Conv{'Transpose' if self.transposed else ''}{self.dims}d"
        put_state(self, create(kind, named, shapes, self._dtype))

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        zeros, ones = (0,) * self.dims, (1,) * self.dims
        if self.padding != zeros:
            text += f", padding={self.padding}"
        if self.dilation != ones:
            text += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            dtype,
        )

    def forward(self, input: Any) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        function = getattr(F, f"conv{self.dims}d")
        return function(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_Conv):
    """Cross-correlation of a line with learned filters."""

    dims = 1


class Conv2d(_Conv):
    """Cross-correlation of an image with learned filters."""

    dims = 2


class Conv3d(_Conv):
    """Cross-correlation of a volume with learned filters."""

    dims = 3


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            dtype,
        )

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Any:
        function = getattr(F, f"conv_transpose{self.dims}d")
        return function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )

    def _output_padding(self, input: Any, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What gives output_size, which lies within a stride of the least."""
        if output_size is None:
            return self.output_padding
        have = input._sizes()[-self.dims :]
        wanted = tuple(output_size)[-self.dims :]
        if len(output_size) not in (self.dims, input.dim()):
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have "
                f"{self.dims} or {input.dim()} elements (got {len(output_size)})"
            )
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                have, self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not a <= n <= b for a, n, b in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {list(wanted)}, but valid sizes range from {least} "
                f"to {most} (for an input of {list(have)})"
            )
        return tuple(n - a for n, a in zip(wanted, least, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """The gradient of a Conv1d by its input, as a layer."""

    dims = 1


class ConvTranspose2d(_ConvTranspose):
    """The gradient of a Conv2d by its input, as a layer."""

    dims = 2


class ConvTranspose3d(_ConvTranspose):
    """The gradient of a Conv3d by its input, as a layer."""

    dims = 3
