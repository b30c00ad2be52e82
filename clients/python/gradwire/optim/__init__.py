"""torch.optim: optimizers and schedulers."""

from . import lr_scheduler
from .kinds import SGD, Adam, AdamW
from .optimizer import Optimizer

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
