"""Functions of torch.nn.functional that draw random numbers or look rows up, where torch's
signatures are freer than the rows'."""

from __future__ import annotations

import warnings
from typing import Any

from .._call import call, call_
from .._row import here
from .._rows import ROWS


def _dropout(name: str, ranks: tuple[int, ...], unbatched: int | None) -> Any:
    row = ROWS["nn.functional.feature_dropout"]
    n = int(name[-2])

    def function(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if p < 0.0 or p > 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}{here()}")
        rank = input.dim()
        if rank not in ranks:
            text = (
                f"{name}: Received a {rank}-D input to {name}, which is deprecated and will result "
                "in an error in a future release. To retain the behavior and silence this warning, "
                f"please use dropout instead. Note that {name} exists to provide channel-wise "
                f"dropout on inputs with {n} spatial dimension{'s' if n > 1 else ''}, a channel "
                f"dimension, and an optional batch dimension (i.e. {n + 1}D or {n + 2}D inputs)."
            )
            if n == 1:
                raise RuntimeError(
                    f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. Note that "
                    "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial "
                    "dimension, a channel dimension, and an optional batch dimension (i.e. 2D or "
                    f"3D inputs).{here()}"
                )
            warnings.warn(text, stacklevel=2)
        if rank != unbatched:
            return call(row, (input, p, training, inplace))
        made = call(row, (input.unsqueeze(0), p, training, False)).squeeze(0)
        return input.copy_(made) if inplace else made

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Zeroes whole channels with {n} spatial dims; see `feature_dropout`."
    return function


# torch's dropout2d takes 3 dims as [N, C, L]; the others as one image without a batch.
dropout1d = _dropout("dropout1d", (2, 3), 2)
dropout2d = _dropout("dropout2d", (3, 4), None)
dropout3d = _dropout("dropout3d", (4, 5), 4)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """softmax((logits + Gumbel noise) / tau) along dim."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    return call(ROWS["nn.functional.gumbel_softmax"], (logits, tau, hard, dim))


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of weight by index. With max_norm, longer rows are first shortened in weight itself.
    Gradients are dense, whatever `sparse` says."""
    if padding_idx is not None:
        rows = weight._sizes()[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _renormalise(weight, input, max_norm, norm_type)
    row = ROWS["nn.functional.embedding"]
    values = {
        "input": input,
        "weight": weight,
        "padding_idx": padding_idx,
        "scale_grad_by_freq": scale_grad_by_freq,
    }
    return call(row, tuple(values[n] for n in row.names))


def _renormalise(weight: Any, input: Any, max_norm: float, norm_type: float) -> None:
    from ..autograd import no_grad

    with no_grad():
        call_(ROWS["embedding_renorm_"], (weight, input, float(max_norm), float(norm_type)))


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The sum, mean or max of rows of weight, bag by bag."""
    if input.is_floating_point() and not weight.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        input, weight = weight, input
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        _renormalise(weight, input, max_norm, norm_type)
    return call(
        ROWS["nn.functional.embedding_bag"],
        (
            input,
            weight,
            offsets,
            scale_grad_by_freq,
            mode,
            per_sample_weights,
            include_last_offset,
            padding_idx,
        ),
    )
