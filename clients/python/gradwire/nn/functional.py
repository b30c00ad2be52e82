"""torch.nn.functional: ops of the catalog, with torch's signatures where those are freer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _overloads
from .._call import call, call_
from .._row import here
from .._rows import ROWS
from . import _functional_ops, _loss_functions, _regularisation
from ._loss_functions import check_reduction, legacy_reduction
from ._spatial import (  # noqa: F401
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    conv1d,
    conv2d,
    conv3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)


def _row_of(*names: str) -> Any:
    return next((ROWS[n] for n in names if n in ROWS), None)


def _activation(name: str) -> Any:
    row = _row_of(f"nn.functional.{name}", name)

    def function(input: Any, inplace: bool = False) -> Any:
        return call_(row, (input,)) if inplace else call(row, (input,))

    function.__name__ = name
    function.__doc__ = f"`{name}` of every element."
    return function


for _name in ("relu", "silu", "hardsigmoid", "hardswish", "mish", "sigmoid", "tanh",
              "logsigmoid", "softsign", "selu", "tanhshrink"):  # fmt: skip
    if _row_of(f"nn.functional.{_name}", _name) is not None:
        globals()[_name] = _activation(_name)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """input where positive, else negative_slope * input."""
    values = (input, negative_slope)
    row = ROWS["nn.functional.leaky_relu"]
    return call_(row, values) if inplace else call(row, values)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """input where positive, else alpha * (exp(input) - 1)."""
    row = ROWS["nn.functional.elu"]
    return call_(row, (input, alpha)) if inplace else call(row, (input, alpha))


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """input where positive, else alpha * (exp(input / alpha) - 1)."""
    row = ROWS["nn.functional.celu"]
    return call_(row, (input, alpha)) if inplace else call(row, (input, alpha))


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """input where above threshold, else value."""
    row, values = ROWS["nn.functional.threshold"], (input, threshold, value)
    return call_(row, values) if inplace else call(row, values)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """input clipped to [min_val, max_val]."""
    row, values = ROWS["nn.functional.hardtanh"], (input, min_val, max_val)
    return call_(row, values) if inplace else call(row, values)


def relu6(input: Any, inplace: bool = False) -> Any:
    """input clipped to [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


def _in_place(function: Any) -> Any:
    def written(input: Any, *args: Any, **named: Any) -> Any:
        return function(input, *args, inplace=True, **named)

    written.__name__ = function.__name__ + "_"
    written.__doc__ = f"`{function.__name__}` in place."
    return written


relu_, selu_ = _in_place(globals()["relu"]), _in_place(globals()["selu"])
celu_, elu_, leaky_relu_ = _in_place(celu), _in_place(elu), _in_place(leaky_relu)
hardtanh_, threshold_ = _in_place(hardtanh), _in_place(threshold)


def gelu(input: Any, approximate: str = "none") -> Any:
    """input * Phi(input), by erf or by tanh."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError(
            f"approximate argument must be either none or tanh, but got {approximate}{here()}"
        )
    if "nn.functional.gelu" in ROWS:
        return call(ROWS["nn.functional.gelu"], (input, approximate))
    row = ROWS["nn.functional.gelu_tanh" if approximate == "tanh" else "nn.functional.gelu_erf"]
    return call(row, (input,))


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """exp(input) / sum(exp(input)) along dim."""
    return _overloads.softmax(input, _soft_dim(input, dim), dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """log(softmax(input)), stable."""
    return _overloads.log_softmax(input, _soft_dim(input, dim), dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax(-input)."""
    return _overloads.softmax(-input, _soft_dim(input, dim), dtype)


def _soft_dim(input: Any, dim: int | None) -> int:
    if dim is not None:
        return dim
    return 0 if input.dim() in (0, 1, 3) else 1


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p)."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}{here()}")
    if not training or p == 0.0:
        return input
    made = _call_named("nn.functional.dropout", input=input, p=p, training=training)
    return input.copy_(made) if inplace else made


def _call_named(name: str, **values: Any) -> Any:
    """Calls a row with values by name; the row's defaults stand for the others."""
    row = ROWS[name]
    return call(row, tuple(values.get(n, d) for n, d in zip(row.names, row.defaults, strict=True)))


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalises every channel over the batch, or by the running statistics."""
    if training:
        shape = input._sizes()
        count = shape[0]
        for size in shape[2:]:
            count *= size
        if count == 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size "
                f"{input.shape}{here()}"
            )
    made = _call_named(
        "nn.functional.batch_norm",
        input=input,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
        training=training,
        momentum=0.0 if momentum is None else momentum,
        eps=eps,
    )
    return made[0] if isinstance(made, tuple) else made


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalises over the last dims, those of normalized_shape."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    have = input._sizes()
    if have[len(have) - len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(have)}{here()}"
        )
    made = _call_named(
        "nn.functional.layer_norm",
        input=input,
        normalized_shape=shape,
        weight=weight,
        bias=bias,
        eps=eps,
    )
    return made[0] if isinstance(made, tuple) else made


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """-log softmax of the target class, by mean, sum or none over the batch."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    _check_classes(input, target)
    return _call_named(
        "nn.functional.cross_entropy",
        input=input,
        target=target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _check_classes(input: Any, target: Any) -> None:
    shape, have = input._shape, target._shape
    if shape is None or have is None or shape == have or not shape:
        return
    batch = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if have == batch:
        return
    if len(shape) > 1 and have[:1] != shape[:1]:
        raise ValueError(
            f"[cross_entropy] Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({have[0] if have else 1}): input {list(shape)}, target {list(have)}{here()}"
        )
    raise RuntimeError(
        f"[cross_entropy] target has shape {list(have)}, expected {list(batch)} for input "
        f"{list(shape)}{here()}"
    )


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-input at the target class, by mean, sum or none over the batch."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    if "nn.functional.nll_loss" not in ROWS:
        raise NotImplementedError("this daemon has no op nll_loss: use cross_entropy")
    return _call_named(
        "nn.functional.nll_loss",
        input=input,
        target=target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


globals().update(_loss_functions.LOSSES)
ctc_loss = _loss_functions.ctc_loss
linear_cross_entropy = _loss_functions.linear_cross_entropy
triplet_margin_with_distance_loss = _loss_functions.triplet_margin_with_distance_loss
dropout1d = _regularisation.dropout1d
dropout2d = _regularisation.dropout2d
dropout3d = _regularisation.dropout3d
embedding = _regularisation.embedding
embedding_bag = _regularisation.embedding_bag
gumbel_softmax = _regularisation.gumbel_softmax


def multi_head_attention_forward(*args: Any, **named: Any) -> tuple[Any, Any]:
    """Attention of several heads; the weights are None without need_weights."""
    row = ROWS["nn.functional.multi_head_attention_forward"]
    values = dict(zip(row.names, row.defaults, strict=True))
    values |= dict(zip(row.names, args, strict=False)) | named
    output, weights = call(row, tuple(values[n] for n in row.names))
    return output, weights if values["need_weights"] else None


# Every other op of the family is a function here as it is.
for _name, _value in vars(_functional_ops).items():
    if getattr(_value, "__module__", "") == _functional_ops.__name__ and _name not in globals():
        globals()[_name] = _value

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
