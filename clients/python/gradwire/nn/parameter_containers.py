"""Parameters, and other values, in a list or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any

from .. import _row
from .module import Module
from .parameter import Parameter


def _kept(value: Any) -> Any:
    """A tensor as a parameter; anything else as it is."""
    if isinstance(value, _row.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _described(name: Any, value: Any) -> str:
    if not isinstance(value, _row.Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(s) for s in value.size())
    return f"  ({name}): {kind} containing: [{value.dtype} of size {size}]"


class ParameterList(Module):
    """A list whose tensors are registered as parameters under "0", "1", ..."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def _at(self, index: int) -> str:
        index = operator.index(index)
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range")
        return str(index % self._size)

    def append(self, value: Any) -> Any:
        self._size += 1
        setattr(self, str(self._size - 1), _kept(value))
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        if not isinstance(values, Iterable) or isinstance(values, _row.Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def pop(self, index: int = -1) -> Any:
        values = list(self)
        gone = values.pop(int(self._at(index)))
        for i in range(self._size):
            delattr(self, str(i))
        self._size = 0
        self.extend(values)
        return gone

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._at(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._at(index), _kept(value))

    def extra_repr(self) -> str:
        return "\n".join(_described(i, value) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose tensors are registered as parameters under their keys."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        self._check_key(key)
        return getattr(self, key)

    def _check_key(self, key: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )

    def __setitem__(self, key: str, value: Any) -> None:
        self._check_key(key)
        setattr(self, key, _kept(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        return ParameterDict(OrderedDict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        for key in list(self._keys):
            del self[key]

    def keys(self) -> KeysView[str]:
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        return ((key, self[key]) for key in self._keys)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """A plain mapping by sorted keys, anything else in its own order."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but "
                "got " + type(parameters).__name__
            )
        pairs: Any = parameters
        if isinstance(parameters, OrderedDict | ParameterDict):
            pairs = list(parameters.items())
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        for i, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ParameterDict update sequence element #{i} should be Iterable; is"
                    + type(pair).__name__
                )
            pair = list(pair)
            if len(pair) != 2:
                raise ValueError(
                    f"ParameterDict update sequence element #{i} has length {len(pair)}; 2 is "
                    "required"
                )
            self[pair[0]] = pair[1]

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made = ParameterDict(OrderedDict(other.items()))
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_described(key, value) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


__all__ = ["ParameterDict", "ParameterList"]
