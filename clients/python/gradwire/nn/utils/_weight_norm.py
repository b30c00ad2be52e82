"""Weight normalisation by a hook before each forward, as older scripts use it."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _call
from ..._rows import ROWS
from ..module import Module
from ..parameter import Parameter


class WeightNorm:
    """The hook: makes the weight from its magnitude `_g` and its direction `_v`."""

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Any) -> Any:
        v, g = (getattr(module, f"{self.name}_{part}") for part in "vg")
        return _call.call(ROWS["_weight_norm"], (v, g, self.dim))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """The weight as magnitude (name + "_g") times direction (name + "_v")."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
    made = WeightNorm(name, -1 if dim is None else dim)
    weight = getattr(module, name).detach()
    del module._parameters[name]
    norm = _call.call(ROWS["norm_except_dim"], (weight, 2, made.dim))
    module.register_parameter(name + "_g", Parameter(norm))
    module.register_parameter(name + "_v", Parameter(weight))
    made(module, None)
    module.register_forward_pre_hook(made)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """The weight is a parameter again."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module).detach()
            delattr(module, name)
            for part in "gv":
                del module._parameters[f"{name}_{part}"]
            setattr(module, name, Parameter(weight))
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


__all__ = ["remove_weight_norm", "weight_norm"]
