"""Modules that hold modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .module import Module


class _Listed(Module):
    """Children under the names "0", "1", ..."""

    def _at(self, index: int) -> str:
        index = operator.index(index)
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return list(self._modules)[index % size]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._at(index)]

    def _of(self, modules: OrderedDict[str, Any]) -> Any:
        return type(self)(modules.values())  # type: ignore[arg-type]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._at(index), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        gone = names[index] if isinstance(index, slice) else [self._at(index)]
        left = [m for n, m in self._modules.items() if n not in gone]
        self._modules.clear()
        self._modules.update({str(i): m for i, m in enumerate(left)})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Any:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules.update({str(i): m for i, m in enumerate(modules)})
        return self


class Sequential(_Listed):
    """Modules applied one after the other."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(modules):
                self.add_module(str(i), module)

    def _of(self, modules: OrderedDict[str, Any]) -> Any:
        return type(self)(modules)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Listed):
    """A list of modules that are registered."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def keys(self) -> Any:
        return self._modules.keys()

    def items(self) -> Any:
        return self._modules.items()

    def values(self) -> Any:
        return self._modules.values()

    def update(self, modules: Any) -> None:
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[name] = module

    def pop(self, name: str) -> Any:
        return self._modules.pop(name)

    def clear(self) -> None:
        self._modules.clear()
