"""Layers that normalise. Their state is made by rows of the catalog, in the daemon."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .module import Module
from .state import build


class _ChannelNorm(Module):
    """State and statistics per channel: batch norm and instance norm."""

    ranks: tuple[int, ...] = ()
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._bias, self._dtype = bias, dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        one = (self.num_features,)
        track = one if self.track_running_stats else None
        shapes = {
            "weight": one if self.affine else None,
            "bias": one if self.affine and self._bias else None,
            "running_mean": track,
            "running_var": track,
            "num_batches_tracked": () if track else None,
        }
        named = {
            "num_features": self.num_features,
            "eps": self.eps,
            "momentum": self.momentum,
            "affine": self.affine,
            "track_running_stats": self.track_running_stats,
            "bias": self._bias,
        }
        build(self, f"nn.{self._row()}", named, shapes, self._dtype)

    @classmethod
    def _row(cls) -> str:
        """The class of the catalog, also for classes that users derive."""
        return next(c.__name__ for c in cls.__mro__ if c.__module__ == __name__)

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def _check(self, input: Any) -> None:
        if input.dim() not in self.ranks:
            expected = " or ".join(f"{d}D" for d in self.ranks)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Any) -> Any:
        self._check(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        batch = self.training or self.running_mean is None
        updates = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if updates else None,
            self.running_var if updates else None,
            self.weight,
            self.bias,
            batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalises every channel of [N, C] or [N, C, L]; see `functional.batch_norm`."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises every channel of [N, C, H, W]; see `functional.batch_norm`."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises every channel of [N, C, D, H, W]; see `functional.batch_norm`."""

    ranks = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Any) -> Any:
        self._check(input)
        single = input.dim() == self.ranks[0]
        channels = input._sizes()[0 if single else 1]
        if channels != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={0 if single else 1} to match num_features "
                f"({self.num_features}), but got: {channels}."
            )
        made = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return made.squeeze(0) if single else made


class InstanceNorm1d(_InstanceNorm):
    """Normalises every channel of every sequence of [N, C, L] or [C, L]."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises every channel of every image of [N, C, H, W] or [C, H, W]."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises every channel of every volume of [N, C, D, H, W] or [C, D, H, W]."""

    ranks = (4, 5)


class GroupNorm(Module):
    """Normalises groups of channels; see `functional.group_norm`."""

    weight: Any
    bias: Any

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._bias, self._dtype = bias, dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        one = (self.num_channels,)
        shapes = {
            "weight": one if self.affine else None,
            "bias": one if self.affine and self._bias else None,
        }
        named = {
            "num_groups": self.num_groups,
            "num_channels": self.num_channels,
            "eps": self.eps,
            "affine": self.affine,
            "bias": self._bias,
        }
        build(self, "nn.GroupNorm", named, shapes, self._dtype)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root mean square over the last dims; see `functional.rms_norm`."""

    weight: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = tuple(shape)
        self.eps, self.elementwise_affine, self._dtype = eps, elementwise_affine, dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        shapes = {"weight": self.normalized_shape if self.elementwise_affine else None}
        named = {
            "normalized_shape": self.normalized_shape,
            "eps": self.eps,
            "elementwise_affine": self.elementwise_affine,
        }
        build(self, "nn.RMSNorm", named, shapes, self._dtype)

    def forward(self, input: Any) -> Any:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "RMSNorm",
]
