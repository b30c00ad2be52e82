"""The optimizers."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, check


class SGD(Optimizer):
    """Gradient descent with momentum."""

    row = "optim.SGD"
    counts_steps = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check("learning rate", lr)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square."""

    row = "optim.Adam"
    decay = 0.0

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float | None = None,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        decay = self.decay if weight_decay is None else weight_decay
        if decoupled_weight_decay:
            self.row = "optim.AdamW"
        check("learning rate", lr)
        check("epsilon value", eps)
        check("beta parameter at index 0", betas[0], 1.0)
        check("beta parameter at index 1", betas[1], 1.0)
        check("weight_decay value", decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    row = "optim.AdamW"
    decay = 1e-2
