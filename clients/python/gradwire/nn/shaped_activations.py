"""Activations with settings, over the functions of nn.functional; and dropout of channels."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .module import Module
from .state import build


class _Function(Module):
    """A function of nn.functional with the settings that the module was built with."""

    name = ""
    settings: tuple[str, ...] = ()
    inplace = False

    def forward(self, input: Any) -> Any:
        values = [getattr(self, n) for n in self.settings]
        if self.inplace:
            return getattr(F, self.name)(input, *values, inplace=True)
        return getattr(F, self.name)(input, *values)

    def extra_repr(self) -> str:
        text = ", ".join(f"{n}={getattr(self, n)}" for n in self.settings)
        return text + (", " if text else "") + "inplace=True" if self.inplace else text


class CELU(_Function):
    """max(0, input) + min(0, alpha * (exp(input / alpha) - 1))."""

    name, settings = "celu", ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace


class SELU(_Function):
    """`CELU`'s self-normalising relative, with torch's constants."""

    name = "selu"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class GLU(_Function):
    """a * sigmoid(b) of the two halves along dim."""

    name, settings = "glu", ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class Hardtanh(_Function):
    """input clipped to [min_val, max_val]."""

    name, settings = "hardtanh", ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")
        self.inplace = inplace


class _Shrink(_Function):
    settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """input, but 0 within [-lambd, lambd]."""

    name = "hardshrink"


class Softshrink(_Shrink):
    """input moved toward 0 by lambd."""

    name = "softshrink"


class LogSigmoid(_Function):
    """log(sigmoid(input))."""

    name = "logsigmoid"


class Softsign(_Function):
    """input / (1 + |input|)."""

    name = "softsign"


class Tanhshrink(_Function):
    """input - tanh(input)."""

    name = "tanhshrink"


class Softplus(_Function):
    """log(1 + exp(beta * input)) / beta; input itself above threshold."""

    name, settings = "softplus", ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold


class Threshold(_Function):
    """input where above threshold, else value."""

    name, settings = "threshold", ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace


class RReLU(Module):
    """leaky_relu whose slope is drawn from [lower, upper] in training."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        text = f"lower={self.lower}, upper={self.upper}"
        return text + ", inplace=True" if self.inplace else text


class PReLU(Module):
    """input where positive, else weight * input, with learned weights."""

    weight: Any

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init, self._dtype = num_parameters, init, dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        named = {"num_parameters": self.num_parameters, "init": self.init}
        build(self, "nn.PReLU", named, {"weight": (self.num_parameters,)}, self._dtype)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmin(_Function):
    """softmax(-input) along dim."""

    name, settings = "softmin", ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax2d(Module):
    """softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)


class _ChannelDropout(Module):
    name = ""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        return getattr(F, self.name)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(_ChannelDropout):
    """Zeroes whole channels of sequences in training."""

    name = "dropout1d"


class Dropout2d(_ChannelDropout):
    """Zeroes whole channels of images in training."""

    name = "dropout2d"


class Dropout3d(_ChannelDropout):
    """Zeroes whole channels of volumes in training."""

    name = "dropout3d"


class AlphaDropout(_ChannelDropout):
    """Dropout that keeps mean 0 and variance 1, for SELU."""

    name = "alpha_dropout"

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_ChannelDropout):
    """`AlphaDropout` of whole channels."""

    name = "feature_alpha_dropout"

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)


__all__ = [
    "AlphaDropout",
    "CELU",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
    "GLU",
    "Hardshrink",
    "Hardtanh",
    "LogSigmoid",
    "PReLU",
    "RReLU",
    "SELU",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanhshrink",
    "Threshold",
]
