"""Layers with state. The state is made by rows of the catalog, in the daemon."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .module import Module
from .parameter import Parameter
from .state import create, put_state


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


class Identity(Module):
    """Its input, whatever it was built with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """input @ weight.T + bias."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._bias, self._dtype = bias, dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        shapes = {
            "weight": (self.out_features, self.in_features),
            "bias": (self.out_features,) if self._bias else None,
        }
        named = {
            "in_features": self.in_features,
            "out_features": self.out_features,
            "bias": self._bias,
        }
        put_state(self, create("nn.Linear", named, shapes, self._dtype))

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Conv2d(Module):
    """Cross-correlation of an image with learned filters."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode != "zeros":
            raise NotImplementedError(f"Conv2d: padding_mode '{padding_mode}'")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = _pair(kernel_size), _pair(stride)
        self.dilation, self.groups = _pair(dilation), groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ValueError(
                    f"Invalid padding string '{padding}', should be one of 'valid', 'same'"
                )
            spans = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            if padding == "same" and any(s % 2 for s in spans):
                raise NotImplementedError("Conv2d: padding='same' with an even kernel")
            padding = (spans[0] // 2, spans[1] // 2) if padding == "same" else (0, 0)
        self.padding = _pair(padding)
        self._bias, self._dtype = bias, dtype
        self.reset_parameters()

    def reset_parameters(self) -> None:
        shapes = {
            "weight": (self.out_channels, self.in_channels // self.groups, *self.kernel_size),
            "bias": (self.out_channels,) if self._bias else None,
        }
        named = {
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
            "bias": self._bias,
        }
        put_state(self, create("nn.Conv2d", named, shapes, self._dtype))

    def forward(self, input: Any) -> Any:
        return F.conv2d(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0, 0):
            text += f", padding={self.padding}"
        if self.dilation != (1, 1):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text


class LayerNorm(Module):
    """Normalises over the last dims."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = tuple(shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        shapes = {
            "weight": self.normalized_shape if elementwise_affine else None,
            "bias": self.normalized_shape if elementwise_affine and bias else None,
        }
        named = {
            "normalized_shape": self.normalized_shape,
            "eps": eps,
            "elementwise_affine": elementwise_affine,
            "bias": bias,
        }
        put_state(self, create("nn.LayerNorm", named, shapes, dtype))

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class Embedding(Module):
    """Rows of a learned table by index."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is not None:
            self.weight = Parameter(_weight, requires_grad=not _freeze)
            return
        named = {
            "num_embeddings": num_embeddings,
            "embedding_dim": embedding_dim,
            "padding_idx": padding_idx,
        }
        shapes = {"weight": (num_embeddings, embedding_dim)}
        put_state(self, create("nn.Embedding", named, shapes, dtype))

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Embedding:
        rows, columns = embeddings.shape
        return cls(rows, columns, _weight=embeddings, _freeze=freeze, **options)

    def forward(self, input: Any) -> Any:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text if self.padding_idx is None else text + f", padding_idx={self.padding_idx}"
