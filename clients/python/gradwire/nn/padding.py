"""Padding layers."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .module import Module


class _Pad(Module):
    dims = 0
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        if isinstance(padding, int):
            padding = (padding,) * (2 * self.dims)
        self.padding = tuple(padding)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        return super().forward(input)

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)"
            )


def _family(base: Any, name: str, what: str) -> list[Any]:
    """The classes of 1 to 3 dimensions."""
    made = []
    for dims in (1, 2, 3):
        body = {"dims": dims, "__doc__": f"{what} at the last {dims} dims.", "__module__": __name__}
        made.append(type(f"{name}{dims}d", (base,), body))
    return made


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


ConstantPad1d, ConstantPad2d, ConstantPad3d = _family(_ConstantPad, "ConstantPad", "One value")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _family(_ZeroPad, "ZeroPad", "Zeros")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _family(
    _ReflectionPad, "ReflectionPad", "The input's own reflection"
)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _family(
    _ReplicationPad, "ReplicationPad", "The input's edge"
)
CircularPad1d, CircularPad2d, CircularPad3d = _family(
    _CircularPad, "CircularPad", "The input's other end"
)
