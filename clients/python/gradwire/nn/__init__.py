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
<<<<<<< HEAD
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .images import (
    ChannelShuffle,
    Fold,
    LocalResponseNorm,
    PixelShuffle,
    PixelUnshuffle,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)
from .layers import Embedding, Identity, LayerNorm, Linear
=======
from .containers import ModuleDict, ModuleList, Sequential
from .layers import Conv2d, Embedding, Identity, LayerNorm, Linear
>>>>>>> wt-rnn
from .losses import *  # noqa: F403
from .module import Module
from .norms import *  # noqa: F403
from .padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from .pairs import *  # noqa: F403
from .parameter import Parameter
<<<<<<< HEAD
from .pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
=======
from .parameter_containers import ParameterDict, ParameterList
>>>>>>> wt-rnn
from .rnn import *  # noqa: F403
from .shaped_activations import *  # noqa: F403

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "Fold",
    "GELU",
    "Hardsigmoid",
    "Hardswish",
    "Identity",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSoftmax",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
<<<<<<< HEAD
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
=======
    "Unflatten",
>>>>>>> wt-rnn
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
