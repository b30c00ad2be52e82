"""repr of tensors, as torch prints them. Only what is shown is read from the daemon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _dtype, _host, _state
from ._dtype import FLOAT
from ._state import PrintOptions


class _Format:
    """How the numbers of one tensor are written: width, digits, scientific or not."""

    def __init__(self, values: np.ndarray, kind: _dtype.dtype):
        self.floating = kind.category == FLOAT
        self.int_mode = True
        self.sci_mode = False
        self.width = 1
        flat = values.reshape(-1)
        if not self.floating:
            self.width = max([self.width, *(len(str(v)) for v in flat.tolist())])
            return
        wide = flat.astype(np.float64)
        kept = wide[np.isfinite(wide) & (wide != 0)]
        if kept.size == 0:
            return
        size = np.abs(kept)
        large, small = float(size.max()), float(size.min())
        self.int_mode = bool(np.all(kept == np.ceil(kept)))
        digits = PrintOptions.precision
        if self.int_mode:
            self.sci_mode = large / small > 1000.0 or large > 1.0e8
        else:
            self.sci_mode = large / small > 1000.0 or large > 1.0e8 or small < 1.0e-4
        if PrintOptions.sci_mode is not None:
            self.sci_mode = PrintOptions.sci_mode
        for value in kept.tolist():
            if self.int_mode and not self.sci_mode:
                text = f"{value:.0f}"
                self.width = max(self.width, len(text) + 1)
            elif self.sci_mode:
                self.width = max(self.width, len(f"{value:.{digits}e}"))
            else:
                self.width = max(self.width, len(f"{value:.{digits}f}"))

    def __call__(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.sci_mode:
            text = f"{value:{self.width}.{PrintOptions.precision}e}"
        elif self.int_mode:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{PrintOptions.precision}f}"
        return (self.width - len(text)) * " " + text


def _vector(values: list[Any], cut: bool, indent: int, form: _Format) -> str:
    """One row; `cut` says that `values` are the two ends of a longer one."""
    words = [form(v) for v in values]
    if cut:
        words.insert(PrintOptions.edgeitems, " ...")
    room = max(1, math.floor((PrintOptions.linewidth - indent) / (form.width + 2)))
    lines = [", ".join(words[i : i + room]) for i in range(0, len(words), room)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(
    values: np.ndarray, shape: tuple[int, ...], indent: int, form: _Format, summarize: bool
) -> str:
    if values.ndim == 0:
        return form(values.item())
    edge = PrintOptions.edgeitems
    cut = summarize and shape[0] > 2 * edge
    if values.ndim == 1:
        return _vector(values.tolist(), cut, indent, form)
    parts = [_nested(v, shape[1:], indent + 1, form, summarize) for v in values]
    if cut:
        parts.insert(edge, "...")
    gap = "," + "\n" * (values.ndim - 1) + " " * (indent + 1)
    return "[" + gap.join(parts) + "]"


def _shown(tensor: Any, summarize: bool) -> np.ndarray:
    """The values to print; of long dims the edges alone, cut out in the daemon."""
    from .autograd import no_grad

    shape = tensor._sizes()
    edge = PrintOptions.edgeitems
    with no_grad():
        part = tensor
        if summarize:
            if not tensor._id:
                values = tensor._host
                for dim, size in enumerate(shape):
                    if size > 2 * edge:
                        keep = [*range(edge), *range(size - edge, size)]
                        values = values.take(keep, axis=dim)
                return values
            from ._call import call
            from ._ops import cat
            from ._rows import ROWS

            part = tensor.detach()
            for dim, size in enumerate(shape):
                if size > 2 * edge:
                    head = call(ROWS["slice"], (part, dim, 0, edge, 1))
                    tail = call(ROWS["slice"], (part, dim, size - edge, size, 1))
                    part = cat([head, tail], dim)
        return _host.read([part])[0]


def _body(tensor: Any, indent: int) -> str:
    shape = tensor._sizes()
    count = tensor.numel()
    summarize = count > PrintOptions.threshold
    values = _shown(tensor, summarize)
    kind = tensor.dtype
    if kind is _dtype.bfloat16:
        values = _host.widen(values)
    return _nested(values, shape, indent, _Format(values, kind), summarize)


def text(tensor: Any, prefix: str = "tensor(") -> str:
    """What repr() gives for a tensor."""
    from .nn.parameter import Parameter

    shape = tensor._sizes()
    kind = tensor.dtype
    suffixes: list[str] = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    usual = kind in (_state.default_dtype, _dtype.int64, _dtype.bool_)
    if tensor.numel() == 0:
        if len(shape) != 1:
            suffixes.append(f"size={tuple(shape)}")
        if kind is not _state.default_dtype:
            suffixes.append(f"dtype={kind}")
        body = "[]"
    else:
        if not usual:
            suffixes.append(f"dtype={kind}")
        body = _body(tensor, len(prefix))
    if not tensor.is_leaf:
        suffixes.append(f"grad_fn=<{tensor._fn}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    parts = [prefix + body]
    last = len(parts[0]) - parts[0].rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > PrintOptions.linewidth:
            parts.append(",\n" + " " * len(prefix) + suffix)
            last = len(prefix) + len(suffix)
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    done = "".join(parts) + ")"
    return "Parameter containing:\n" + done if isinstance(tensor, Parameter) else done
