"""What is set per process: defaults, grad mode, print options. One user thread issues ops."""

from __future__ import annotations

from typing import Any

from . import _dtype
from ._dtype import dtype

default_dtype: dtype = _dtype.float32
default_device: str = "cpu"
grad_enabled: bool = True
inference: bool = False
anomaly: bool = False
anomaly_nan: bool = True
writes: int = 0  # in-place ops issued: what a tensor's grad_fn is may have changed


class PrintOptions:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


def set_default_dtype(d: dtype) -> None:
    """The dtype of float results that nothing else decides."""
    global default_dtype
    if not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d}")
    default_dtype = d


def set_default_device(device: Any) -> None:
    """The device of tensors that are made without one; None for the session's first."""
    global default_device
    from ._device import device as kind

    default_device = "cpu" if device is None else str(kind(device))


def get_default_device() -> Any:
    from ._device import device as kind

    return kind(default_device)


def get_default_dtype() -> dtype:
    return default_dtype


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    o = PrintOptions
    if profile is not None:
        profiles = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80)}
        profiles["full"] = (4, 1 << 62, 3, 80)
        o.precision, o.threshold, o.edgeitems, o.linewidth = profiles[profile]
    if precision is not None:
        o.precision = precision
    if threshold is not None:
        o.threshold = int(min(threshold, 1 << 62))
    if edgeitems is not None:
        o.edgeitems = edgeitems
    if linewidth is not None:
        o.linewidth = linewidth
    o.sci_mode = sci_mode
