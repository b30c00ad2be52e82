"""torch.nn: modules, losses, functions and initial values."""

from . import functional, init, utils
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
)
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .layers import BatchNorm2d, Conv2d, Embedding, Identity, LayerNorm, Linear
from .losses import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from .module import Module
from .parameter import Parameter

__all__ = [
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GELU",
    "Hardsigmoid",
    "Hardswish",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterList",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "functional",
    "init",
    "utils",
]
