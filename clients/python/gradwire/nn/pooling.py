"""Pooling layers."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .module import Module


class _MaxPool(Module):
    dims = 0

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        return getattr(F, f"max_pool{self.dims}d")(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of every window of a line."""

    dims = 1


class MaxPool2d(_MaxPool):
    """The largest element of every window of an image."""

    dims = 2


class MaxPool3d(_MaxPool):
    """The largest element of every window of a volume."""

    dims = 3


class _MaxUnpool(Module):
    dims = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._spread(kernel_size)
        self.stride = self._spread(kernel_size if stride is None else stride)
        self.padding = self._spread(padding)

    def _spread(self, value: Any) -> Any:
        return (value,) * self.dims if isinstance(value, int) else tuple(value)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return getattr(F, f"max_unpool{self.dims}d")(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Values of a max-pooled line back at their indices."""

    dims = 1


class MaxUnpool2d(_MaxUnpool):
    """Values of a max-pooled image back at their indices."""

    dims = 2


class MaxUnpool3d(_MaxUnpool):
    """Values of a max-pooled volume back at their indices."""

    dims = 3


class AvgPool1d(Module):
    """The mean of every window of a line."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = (
            (value,) if isinstance(value, int) else tuple(value)
            for value in (kernel_size, kernel_size if stride is None else stride, padding)
        )
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    dims = 0

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Any) -> Any:
        return getattr(F, f"avg_pool{self.dims}d")(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of every window of an image."""

    dims = 2


class AvgPool3d(_AvgPool):
    """The mean of every window of a volume."""

    dims = 3


class _LPPool(Module):
    dims = 0

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Any) -> Any:
        return getattr(F, f"lp_pool{self.dims}d")(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The power mean of every window of a line."""

    dims = 1


class LPPool2d(_LPPool):
    """The power mean of every window of an image."""

    dims = 2


class LPPool3d(_LPPool):
    """The power mean of every window of a volume."""

    dims = 3


class _AdaptiveMaxPool(Module):
    dims = 0

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Any) -> Any:
        function = getattr(F, f"adaptive_max_pool{self.dims}d")
        return function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest of windows that cut a line into output_size parts."""

    dims = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest of windows that cut an image into output_size parts."""

    dims = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest of windows that cut a volume into output_size parts."""

    dims = 3


class _AdaptiveAvgPool(Module):
    dims = 0

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return getattr(F, f"adaptive_avg_pool{self.dims}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean of windows that cut a line into output_size parts."""

    dims = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean of windows that cut an image into output_size parts."""

    dims = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean of windows that cut a volume into output_size parts."""

    dims = 3
