"""Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _dtype, _host, _row
from ._call import call, call_
from ._rows import ROWS

_NUMBERS = (int, float, np.generic)


def _binary(name: str, *rest: Any) -> Any:
    row = ROWS[name]

    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, _row.Tensor) or isinstance(other, _NUMBERS):
            return call(row, (self, other, *rest))
        if isinstance(other, np.ndarray):
            return call(row, (self, _host.tensor(other), *rest))
        return NotImplemented

    return operator


def _reflected(name: str, *rest: Any) -> Any:
    row = ROWS[name]

    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, (_row.Tensor, *_NUMBERS)):
            return call(row, (other, self, *rest))
        if isinstance(other, np.ndarray):
            return call(row, (_host.tensor(other), self, *rest))
        return NotImplemented

    return operator


def _in_place(name: str, *rest: Any) -> Any:
    row = ROWS[name]

    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, _row.Tensor) or isinstance(other, _NUMBERS):
            return call_(row, (self, other, *rest))
        return NotImplemented

    return operator


def _unary(name: str) -> Any:
    row = ROWS[name]
    return lambda self: call(row, (self,))


class Operators:
    """Arithmetic, comparison, conversion to Python's own types, containers' protocols."""

    __array_priority__ = 1000  # numpy leaves mixed operators to us

    __add__ = _binary("add", 1)
    __radd__ = _reflected("add", 1)
    __iadd__ = _in_place("add", 1)
    __sub__ = _binary("sub", 1)
    __rsub__ = _reflected("sub", 1)
    __isub__ = _in_place("sub", 1)
    __mul__ = _binary("mul")
    __rmul__ = _reflected("mul")
    __imul__ = _in_place("mul")
    __truediv__ = _binary("true_divide")
    __rtruediv__ = _reflected("true_divide")
    __itruediv__ = _in_place("true_divide")
    __rdiv__ = _reflected("true_divide")
    __rmatmul__ = _reflected("matmul")
    __floordiv__ = _binary("floor_divide")
    __rfloordiv__ = _reflected("floor_divide")
    __ifloordiv__ = _in_place("floor_divide")
    __mod__ = _binary("remainder")
    __rmod__ = _reflected("remainder")
    __imod__ = _in_place("remainder")
    __pow__ = _binary("pow")
    __rpow__ = _reflected("pow")
    __ipow__ = _in_place("pow")
    __matmul__ = _binary("matmul")
    __and__ = _binary("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __iand__ = _in_place("bitwise_and")
    __or__ = _binary("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __ior__ = _in_place("bitwise_or")
    __xor__ = _binary("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")
    __ixor__ = _in_place("bitwise_xor")
    __eq__ = _binary("eq")
    __ne__ = _binary("ne")
    __lt__ = _binary("lt")
    __le__ = _binary("le")
    __gt__ = _binary("gt")
    __ge__ = _binary("ge")
    __neg__ = _unary("neg")
    __abs__ = _unary("abs")
    __invert__ = _unary("bitwise_not")

    def __pos__(self) -> Any:
        return self

    def __hash__(self) -> int:
        return id(self)

    # Values as Python's own.

    def item(self) -> Any:
        """The only element, as a Python number."""
        from . import _host

        values = _host.read([self])[0]
        if values.size != 1:
            raise RuntimeError(
                f"a Tensor with {values.size} elements cannot be converted to Scalar"
            )
        if self._dtype is _dtype.bfloat16:  # type: ignore[attr-defined]
            values = _host.widen(values)
        return values.reshape(-1)[0].item()

    def tolist(self) -> Any:
        from . import _host

        values = _host.read([self])[0]
        if self._dtype is _dtype.bfloat16:  # type: ignore[attr-defined]
            values = _host.widen(values)
        return values.tolist()

    def __bool__(self) -> bool:
        shape = self._sizes()  # type: ignore[attr-defined]
        count = 1
        for size in shape:
            count *= size
        if count > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        if count == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.dtype.category == _dtype.FLOAT:  # type: ignore[attr-defined]
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if self.numel() != 1:  # type: ignore[attr-defined]
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and spec:  # type: ignore[attr-defined]
            return format(self.item(), spec)
        return object.__format__(self, spec) if spec else str(self)

    def __len__(self) -> int:
        shape = self._sizes()  # type: ignore[attr-defined]
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._sizes():  # type: ignore[attr-defined]
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))  # type: ignore[attr-defined]

    def __reversed__(self) -> Any:
        return self if not self._sizes() else self.flip(0)  # type: ignore[attr-defined]

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (_row.Tensor, *_NUMBERS)):
            raise RuntimeError(
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(element)}."
            )
        return bool((self == element).any())  # type: ignore[attr-defined]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self.numpy()  # type: ignore[attr-defined]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        from ._indexing import get

        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from ._indexing import set_

        set_(self, key, value)
