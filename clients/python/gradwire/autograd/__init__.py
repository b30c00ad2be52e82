"""Gradients: backward, grad, and the modes that switch recording."""

from .backward import backward, grad, gradients
from .modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "backward",
    "enable_grad",
    "grad",
    "gradients",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]
