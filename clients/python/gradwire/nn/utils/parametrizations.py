"""Ready-made parametrisations."""

from __future__ import annotations

from typing import Any

from ... import _call
from ..._rows import ROWS
from ..module import Module
from . import parametrize


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return _call.call(ROWS["_weight_norm"], (weight_v, weight_g, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return _call.call(ROWS["norm_except_dim"], (weight, 2, self.dim)), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """The weight as magnitude (original0) times direction (original1); Salimans and Kingma 2016.

    `dim`: the dimension with a magnitude for each index; None: one for the whole tensor.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def renamed(own: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
        """Takes the names of `nn.utils.weight_norm`, too."""
        old = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state for key in old):
            for i, key in enumerate(old):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)

    module.register_load_state_dict_pre_hook(renamed)
    return module


__all__ = ["weight_norm"]
