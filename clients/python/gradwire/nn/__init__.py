"""torch.nn: modules, losses, functions and initial values."""

from . import attention, functional, init, losses, norms, pairs, rnn, shaped_activations, utils
from .activations import (
    ELU,
    GELU,
    Dropout,
    Flatten,
    Hardsigmoid,
    Hardswish,
    LeakyReLU,
    LogSoftmax,
    MaxPool2d,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
    Unflatten,
)
from .attention import *  # noqa: F403
from .containers import ModuleDict, ModuleList, Sequential
from .layers import Conv2d, Embedding, Identity, LayerNorm, Linear
from .losses import *  # noqa: F403
from .module import Module
from .norms import *  # noqa: F403
from .pairs import *  # noqa: F403
from .parameter import Parameter
from .parameter_containers import ParameterDict, ParameterList
from .rnn import *  # noqa: F403
from .shaped_activations import *  # noqa: F403

__all__ = [
    "Conv2d",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GELU",
    "Hardsigmoid",
    "Hardswish",
    "Identity",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "Unflatten",
    "functional",
    "init",
    "utils",
    *attention.__all__,
    *losses.__all__,
    *norms.__all__,
    *pairs.__all__,
    *rnn.__all__,
    *shaped_activations.__all__,
]
