"""Adam and its kin."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, check, flags


def _moments(lr: Any, betas: Any, eps: float, weight_decay: float) -> dict[str, Any]:
    """The options that all of them have, checked."""
    check("learning rate", lr)
    check("epsilon value", eps)
    check("beta parameter at index 0", betas[0], 1.0)
    check("beta parameter at index 1", betas[1], 1.0)
    check("weight_decay value", weight_decay)
    return {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square."""

    row = "optim.Adam"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if decoupled_weight_decay:
            self.row = "optim.AdamW"
        more = flags(
            maximize, foreach, capturable=capturable, differentiable=differentiable, fused=fused
        )
        more["decoupled_weight_decay"] = decoupled_weight_decay
        defaults = _moments(lr, betas, eps, weight_decay)
        super().__init__(params, {**defaults, "amsgrad": amsgrad, **more})


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class Adamax(Optimizer):
    """Adam with the infinity norm."""

    row = "optim.Adamax"

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        more = flags(maximize, foreach, differentiable=differentiable, capturable=capturable)
        super().__init__(params, {**_moments(lr, betas, eps, weight_decay), **more})


class NAdam(Optimizer):
    """Adam with Nesterov momentum."""

    row = "optim.NAdam"
    scalars = ("mu_product",)

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = _moments(lr, betas, eps, weight_decay)
        check("momentum_decay value", momentum_decay)
        defaults["momentum_decay"] = momentum_decay
        defaults["decoupled_weight_decay"] = decoupled_weight_decay
        more = flags(maximize, foreach, capturable=capturable, differentiable=differentiable)
        super().__init__(params, {**defaults, **more})


class RAdam(Optimizer):
    """Adam whose scale waits until its variance can be judged."""

    row = "optim.RAdam"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        more = flags(maximize, foreach, capturable=capturable, differentiable=differentiable)
        more["decoupled_weight_decay"] = decoupled_weight_decay
        super().__init__(params, {**_moments(lr, betas, eps, weight_decay), **more})
