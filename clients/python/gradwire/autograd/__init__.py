"""Gradients: backward, grad, Functions, hooks, and the modes that switch recording."""

from . import callbacks, functional, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .backward import backward, grad, gradients
from .function import Function
from .gradcheck import gradcheck, gradgradcheck
from .modes import enable_grad, inference_mode, no_grad, set_grad_enabled

Variable = object  # replaced by the package: torch.autograd.Variable is Tensor

__all__ = [
    "Function",
    "Variable",
    "backward",
    "callbacks",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "gradients",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
