"""Losses of torch.nn.functional: rows of the catalog behind torch's positional order, which still
has the deprecated `size_average` and `reduce`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from .. import _host, _overloads, _row
from .._call import call
from .._row import REQUIRED, here
from .._rows import ROWS

# Where torch's order is not the row's own.
_ORDERS = {
    "binary_cross_entropy": "input target weight size_average reduce reduction",
    "binary_cross_entropy_with_logits": (
        "input target weight size_average reduce reduction pos_weight"
    ),
    "cosine_embedding_loss": "input1 input2 target margin size_average reduce reduction",
    "hinge_embedding_loss": "input target margin size_average reduce reduction",
    "kl_div": "input target size_average reduce reduction log_target",
    "l1_loss": "input target size_average reduce reduction weight",
    "margin_ranking_loss": "input1 input2 target margin size_average reduce reduction",
    "mse_loss": "input target size_average reduce reduction weight",
    "multi_margin_loss": "input target p margin weight size_average reduce reduction",
    "multilabel_margin_loss": "input target size_average reduce reduction",
    "multilabel_soft_margin_loss": "input target weight size_average reduce reduction",
    "poisson_nll_loss": "input target log_input full size_average eps reduce reduction",
    "smooth_l1_loss": "input target size_average reduce reduction beta",
    "soft_margin_loss": "input target size_average reduce reduction",
    "triplet_margin_loss": (
        "anchor positive negative margin p eps swap size_average reduce reduction"
    ),
}
_WARN_OF_SIZES = {"l1_loss", "mse_loss", "smooth_l1_loss"}


def legacy_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that torch's deprecated flags stand for; they win over `reduction`."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction{here()}")


def warn_of_sizes(input: Any, target: Any) -> None:
    """As torch: sizes that differ broadcast, which is seldom meant."""
    if input._shape == target._shape or input._shape is None or target._shape is None:
        return
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        UserWarning,
        stacklevel=4,
    )
    _overloads.broadcast_shapes(input._shape, target._shape)


def _loss(name: str, order: list[str]) -> Callable[..., Any]:
    row = ROWS["nn.functional." + name]
    defaults = dict(zip(row.names, row.defaults, strict=True))
    defaults |= {"size_average": None, "reduce": None}
    signature = inspect.Signature(
        [
            inspect.Parameter(
                n,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if defaults[n] is REQUIRED else defaults[n],
            )
            for n in order
        ]
    )

    def function(*args: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        values = defaults | bound.arguments
        values["reduction"] = legacy_reduction(
            values["size_average"], values["reduce"], values["reduction"]
        )
        if name in _WARN_OF_SIZES and isinstance(values["target"], _row.Tensor):
            warn_of_sizes(values["input"], values["target"])
        if name == "kl_div" and values["reduction"] == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release.",
                stacklevel=2,
            )
        return call(row, tuple(values[n] for n in row.names))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the catalog; see its row."
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


LOSSES = {
    name: _loss(name, order.split())
    for name, order in _ORDERS.items()
    if "nn.functional." + name in ROWS
}


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0) for a function d of the user's."""
    check_reduction(reduction)
    if distance_function is None:
        return LOSSES["triplet_margin_loss"](
            anchor, positive, negative, margin, swap=swap, reduction=reduction
        )
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}{here()}")
    ranks = anchor.dim(), positive.dim(), negative.dim()
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {ranks[0]}D, positive {ranks[1]}D, and negative "
            f"{ranks[2]}D inputs{here()}"
        )
    near = distance_function(anchor, positive)
    far = distance_function(anchor, negative)
    if swap:
        far = call(ROWS["minimum"], (far, distance_function(positive, negative)))
    loss = call(ROWS["relu"], (margin + near - far,))
    return loss if reduction == "none" else getattr(loss, reduction)()


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Minus the log-probability of label sequences; lengths may be tensors or numbers."""
    lengths = [
        t if isinstance(t, _row.Tensor) else _host.tensor(t)
        for t in (input_lengths, target_lengths)
    ]
    values = (log_probs, targets, *lengths, blank, reduction, zero_infinity)
    return call(ROWS["nn.functional.ctc_loss"], values)


def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """cross_entropy of linear(input, linear_weight, linear_bias). `options` asks torch to work in
    chunks; the values are the same, and it is not used."""
    values = {
        "input": input,
        "linear_weight": linear_weight,
        "target": target,
        "linear_bias": linear_bias,
        "weight": weight,
        "reduction": reduction,
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
    }
    row = ROWS["nn.functional.linear_cross_entropy"]
    return call(row, tuple(values[n] for n in row.names))
