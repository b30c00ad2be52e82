"""`import torch` as another name of this package."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Resolves torch and torch.X to gradwire and gradwire.X: the same module objects."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch" and not name.startswith("torch."):
            return None
        try:
            module = importlib.import_module("gradwire" + name[len("torch") :])
        except ModuleNotFoundError:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module("gradwire" + spec.name[len("torch") :])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import machinery has put its own spec into our module: put ours back.
        spec: Any = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state


_finder = _Finder()


def install() -> None:
    """Makes `import torch` give this package, in this process."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        del sys.modules[name]
    importlib.import_module("torch")
