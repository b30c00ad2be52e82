"""Parameter: a tensor that modules register and optimizers step."""

from __future__ import annotations

from typing import Any

from .. import _row, _tensor


class Parameter(_tensor.Tensor):
    """A leaf over the storage of `data`."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = _tensor.Tensor(0)
        if not isinstance(data, _row.Tensor):
            raise TypeError(f"Parameter takes a tensor, not {type(data).__name__}")
        if data._id or data._requires_grad:
            made = data.detach()
        else:
            made = _tensor.new(0, data._shape, data._dtype, False, None)
            made._host, made._host_owned = data._host, data._host_owned
        made.__class__ = cls
        if requires_grad:
            made.requires_grad_(True)
        return made


def adopt(tensor: Any, requires_grad: bool = True) -> Parameter:
    """A tensor that nobody else holds, as a parameter."""
    tensor.__class__ = Parameter
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor
