"""Gradwire: PyTorch's programming model, one process away.

`import gradwire as torch` runs torch code in a daemon; `gradwire.install()` and
`python -m gradwire script.py` do the same for code that says `import torch`.
"""

from __future__ import annotations

import json as _json
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from . import (
    _call,
    _dtype,
    _ops,
    _overloads,
    _overloads_linalg,
    _overloads_shape,
    _row,
    _rows,
    _statistics,
)
from ._create import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)
from ._device import device
from ._dtype import (
    bfloat16,
    can_cast,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ._host import as_tensor, asarray, from_numpy, frombuffer, legacy_type, tensor, upload
from ._install import install
from ._random import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from ._size import Size
from ._state import (
    get_default_device,
    get_default_dtype,
    set_default_device,
    set_default_dtype,
    set_printoptions,
)
from ._tensor import Tensor, new

_row.bind(Tensor, new, upload)

from . import autograd, backends, cuda, func, linalg, nn, optim, random, utils
from ._overloads import (
    allclose,
    broadcast_shapes,
    chunk,
    clamp,
    clamp_,
    clip,
    clip_,
    div,
    divide,
    equal,
    index_put,
    index_put_,
    is_floating_point,
    is_tensor,
    log_softmax,
    max,
    min,
    nonzero,
    numel,
    round,
    round_,
    scalar_tensor,
    softmax,
    split,
    squeeze,
    std,
    std_mean,
    var,
    var_mean,
    where,
)
from ._overloads_linalg import block_diag, chain_matmul, einsum, lu, norm, tensordot
from ._statistics import (
    gradient,
    histogram,
    histogramdd,
    median,
    nanmedian,
    unique,
    unique_consecutive,
)
from .autograd import enable_grad, inference_mode, no_grad, set_grad_enabled
from .autograd.anomaly_mode import (
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
)
from .autograd.modes import is_grad_enabled, is_inference_mode_enabled
from .serialization import load, save
from .wire.current import close, connect
from .wire.errors import LinAlgError, OutOfMemoryError

float = _dtype.float32
double = _dtype.float64
half = _dtype.float16
long = _dtype.int64
int = _dtype.int32
short = _dtype.int16
bool = _dtype.bool_

autograd.Variable = Tensor  # type: ignore[misc,assignment]

FloatTensor = legacy_type("FloatTensor", _dtype.float32)
DoubleTensor = legacy_type("DoubleTensor", _dtype.float64)
HalfTensor = legacy_type("HalfTensor", _dtype.float16)
LongTensor = legacy_type("LongTensor", _dtype.int64)
IntTensor = legacy_type("IntTensor", _dtype.int32)
ShortTensor = legacy_type("ShortTensor", _dtype.int16)
CharTensor = legacy_type("CharTensor", _dtype.int8)
ByteTensor = legacy_type("ByteTensor", _dtype.uint8)
BoolTensor = legacy_type("BoolTensor", _dtype.bool_)

strided = "torch.strided"
contiguous_format = "torch.contiguous_format"
preserve_format = "torch.preserve_format"
channels_last = "torch.channels_last"

inf = _dtype.np.inf
nan = _dtype.np.nan
pi = _dtype.np.pi
e = _dtype.np.e
newaxis = None

for _function in _overloads_shape.FUNCTIONS:
    globals()[_function.__name__] = _function
# Every op of the catalog whose torch signature is its row's is a function here.
for _name, _value in vars(_ops).items():
    if not _name.startswith("_") and getattr(_value, "__module__", "") == _ops.__name__:
        if _name not in globals() and _name != "Methods":
            globals()[_name] = _value

_aliases = {
    "multiply": "mul",
    "subtract": "sub",
    "absolute": "abs",
    "negative": "neg",
    "concat": "cat",
    "concatenate": "cat",
    "greater": "gt",
    "less": "lt",
    "greater_equal": "ge",
    "less_equal": "le",
    "not_equal": "ne",
    "arctan": "atan",
    "arcsin": "asin",
    "arccos": "acos",
    "ger": "outer",
}
for _name, _of in _aliases.items():
    if hasattr(_ops, _of) and not hasattr(_ops, _name):
        globals()[_name] = getattr(_ops, _of)
        if hasattr(Tensor, _of) and not hasattr(Tensor, _name):
            setattr(Tensor, _name, getattr(Tensor, _of))
# Activations that torch has outside of nn.functional too, and as methods.
for _name in ("celu", "celu_", "selu", "selu_", "threshold", "threshold_", "prelu", "hardshrink"):
    globals().setdefault(_name, getattr(nn.functional, _name))
for _name in ("prelu", "hardshrink"):
    setattr(Tensor, _name, getattr(nn.functional, _name))
# Methods of torch that are not marked so in the catalog.
for _name in (
    *("fill_", "uniform_", "normal_", "bernoulli_", "exponential_", "random_", "bernoulli"),
    *("multinomial", "select", "narrow", "diagonal", "as_strided", "unfold", "unbind", "cumsum"),
    *("split_with_sizes", "view_as", "where", "masked_fill", "masked_fill_", "masked_scatter_"),
):
    if hasattr(_ops, _name) and not hasattr(Tensor, _name):
        setattr(Tensor, _name, getattr(_ops, _name))
for _method in (
    *_overloads.METHODS,
    *_overloads_linalg.METHODS,
    *_overloads_shape.METHODS,
    *_statistics.METHODS,
):
    setattr(Tensor, _method.__name__, _method)
for _name, _method in _overloads.ALIASES.items():
    setattr(Tensor, _name, _method)
setattr(Tensor, "where", _overloads.method_where)  # noqa: B010


def promote_types(type1: Any, type2: Any) -> Any:
    """The common dtype of two dtypes."""
    return _dtype.promote(type1, type2)


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype that arithmetic of the two gives."""
    from ._type_rules import promoted

    for value in (tensor1, tensor2):
        if is_tensor(value):
            value._sizes()
    return promoted((tensor1, tensor2))


def synchronize() -> None:
    """Waits until everything queued has run; raises what went wrong."""
    from .wire import current

    current.session().wait(_call.ask(_rows.ROWS["session.synchronize"], ()))


def stats() -> dict[str, Any]:
    """The session's memory, tensors, tasks and kernels."""
    from .wire import current

    reply = current.session().wait(_call.ask(_rows.ROWS["session.stats"], ()))
    found: dict[str, Any] = _json.loads(reply.text)
    return found


def set_num_threads(count: Any) -> None:
    """Accepted and ignored: the daemon's threads are its own."""


def get_num_threads() -> Any:
    return 1


def compile(model: Any = None, **options: Any) -> Any:
    """The model as it is: the daemon fuses what it runs."""
    return (lambda function: function) if model is None else model


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
