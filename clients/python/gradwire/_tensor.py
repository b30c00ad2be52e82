"""Tensor: a handle of values that live in the daemon, and what is known of them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _call, _device, _dtype, _state
from ._dtype import dtype
from ._ops import Methods
from ._row import described, fail, here
from ._rows import ROWS
from ._size import Size
from ._tensor_convert import Convert
from ._tensor_operators import Operators
from ._tensor_shape import Shaping
from .wire import current
from .wire.session import released


class Tensor(Operators, Shaping, Convert, Methods):
    """A tensor in the daemon, or a host tensor that no op has needed there yet.

    A host tensor has `_id` 0 and its values in `_host`. Shape and dtype are None until they are
    asked for where this client could not infer them.
    """

    _id = 0
    _shape: tuple[int, ...] | None = None
    _dtype: dtype | None = None
    _strides: tuple[int, ...] | None = None
    _requires_grad = False
    _fn: str | None = None
    _host: np.ndarray | None = None
    _host_owned = False
    _device = _device.CPU
    _retains = False
    _inference = False
    _node: tuple[int, Any] | None = None

    def __new__(cls, *values: Any, **options: Any) -> Any:
        self = object.__new__(cls)
        if cls is Tensor:
            from . import _host

            _host.legacy_new(self, values, _state.default_dtype)
        return self

    def __init__(self, *values: Any, **options: Any) -> None:
        pass

    def __del__(self, _append: Callable[[int], None] = released.append) -> None:
        if self._id:
            _append(self._id)

    # What is known.

    def _fetch(self) -> None:
        """Asks the daemon what this tensor is. Raises its error when it is poisoned."""
        waiter = _call.ask(ROWS["session.meta"], ([self],))
        meta = current.session().wait(waiter).metas.metas[0]
        self._learn(meta)

    def _learn(self, meta: Any) -> None:
        self._shape = tuple(meta.shape)
        self._dtype = _dtype.BY_NUMBER[meta.dtype]
        self._strides = tuple(meta.strides)
        self._requires_grad = meta.requires_grad
        self._inference = meta.inference
        if meta.is_leaf:
            self._fn = None
        elif meta.grad_fn:
            self._fn = meta.grad_fn
        if meta.device and meta.device != "cpu":
            self._device = _device.device(meta.device)

    def _sizes(self) -> tuple[int, ...]:
        if self._shape is None:
            self._fetch()
        return self._shape  # type: ignore[return-value]

    @property
    def shape(self) -> Size:
        return Size(self._shape if self._shape is not None else self._sizes())

    @property
    def dtype(self) -> dtype:
        if self._dtype is None:
            self._fetch()
        return self._dtype  # type: ignore[return-value]

    @property
    def device(self) -> Any:
        return self._device

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        return not self._requires_grad or self._fn is None

    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor; None for a leaf."""
        if not self._requires_grad or self._fn is None:
            return None
        known = self._node
        if known is None or known[0] != _state.writes:
            from .autograd.graph import node_of

            self._node = known = (_state.writes, node_of(self))
        return known[1]

    @property
    def _version(self) -> int:
        if not self._id:
            return 0
        waiter = _call.ask(ROWS["session.meta"], ([self],))
        return int(current.session().wait(waiter).metas.metas[0].version)

    def is_inference(self) -> bool:
        """Made under inference_mode."""
        if self._id:
            self._fetch()
        return self._inference

    @property
    def ndim(self) -> int:
        return len(self._sizes())

    @property
    def is_cuda(self) -> bool:
        return self._device.type == "cuda"

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return False

    def element_size(self) -> int:
        return self.dtype.itemsize

    def get_device(self) -> int:
        return -1 if self._device.index is None else self._device.index

    # Autograd.

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        value = bool(requires_grad)
        if value == self._requires_grad:
            return self
        if self._fn is not None and self._requires_grad:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        if value and not self.dtype.is_floating_point:
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients "
                f"(got {described(self)}){here()}"
            )
        if value and self._inference and not _state.inference and self.is_inference():
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed."
            )
        self._requires_grad = value
        if self._id:
            _call.command(ROWS["session.requires_grad_"], ([self], value))
        return self

    @property
    def grad(self) -> Tensor | None:
        from . import autograd

        if not self._id or not self._requires_grad:
            return None
        if self._fn is not None and not self._retains:
            import warnings

            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). Call "
                ".retain_grad() on it first.",
                UserWarning,
                stacklevel=2,
            )
        return autograd.gradients([self])[0]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    "assigned grad expected to be a Tensor or None but got grad of type "
                    f"{type(value).__name__}"
                )
            if value._shape is not None and self._shape is not None:
                if value._shape != self._shape:
                    raise RuntimeError(
                        f"attempting to assign a gradient of size '{list(value._shape)}' to a "
                        f"tensor of size '{list(self._shape)}'. Please ensure that the gradient "
                        "and the tensor are the same size"
                    )
        if value is None and not self._id:
            return
        _call.command(ROWS["session.set_grad"], (self, value))

    def retain_grad(self) -> None:
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._fn is not None:
            self._retains = True
            _call.command(ROWS["session.retain_grad"], (self,))

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Runs `hook(grad)` in backward; what it returns, if anything, takes grad's place."""
        from .autograd.hooks import register_hook

        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Runs `hook(self)` after backward has written this leaf's .grad."""
        from .autograd.hooks import register_post_accumulate_grad_hook

        return register_post_accumulate_grad_hook(self, hook)

    @property
    def retains_grad(self) -> bool:
        return self._retains

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Computes the gradients of the leaves that this tensor depends on."""
        from . import autograd

        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        """Puts another tensor's storage behind this handle; it becomes a leaf."""
        fresh = value.detach()
        needs = self._requires_grad
        self._id, fresh._id = fresh._id, self._id
        self._shape, self._dtype, self._strides = fresh._shape, fresh._dtype, fresh._strides
        self._host, self._host_owned = fresh._host, False
        self._fn, self._requires_grad = None, False
        if needs:
            self.requires_grad_(True)

    def detach(self) -> Tensor:
        """The same values outside the graph."""
        return _call.call(ROWS["detach"], (self,))

    def detach_(self) -> Tensor:
        """Takes this tensor out of its graph."""
        if self._requires_grad:
            _call.command(ROWS["session.detach_"], (self,))
            _state.writes += 1
            self._requires_grad, self._fn = False, None
        return self

    # Python.

    def __repr__(self) -> str:
        from ._printing import text

        return text(self)

    def __hash__(self) -> int:
        return id(self)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__})

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        if id(self) in memo:
            return memo[id(self)]
        twin = self._twin()
        twin.__class__ = type(self)
        if self._requires_grad:
            twin.requires_grad_(True)
        memo[id(self)] = twin
        return twin

    def _twin(self) -> Tensor:
        """The values again, in storage of their own, outside any graph."""
        if not self._id and self._host is not None:
            twin = new(0, self._shape, self._dtype, False, None)
            twin._host, twin._host_owned = self._host.copy(), True
            return twin
        from .autograd import no_grad

        with no_grad():
            return _call.call(ROWS["clone"], (self,))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        from . import _host

        if not self.is_leaf:
            raise RuntimeError(
                "cannot pickle a tensor that is part of a graph: call .detach() on it first"
            )
        values = _host.read([self])[0]
        return (_rebuild, (type(self), values, self.dtype, self._requires_grad))


def _rebuild(cls: type, values: np.ndarray, kind: dtype, requires_grad: bool) -> Tensor:
    made = new(0, values.shape, kind, False, None)
    made.__class__ = cls
    made._host, made._host_owned = values, True
    made._requires_grad = requires_grad
    return made


_create = object.__new__


def new(
    id: int,
    shape: tuple[int, ...] | None,
    kind: dtype | None,
    needs: bool,
    fn: str | None,
) -> Tensor:
    """A Tensor for an id."""
    made = _create(Tensor)
    made._id = id
    made._shape = shape
    made._dtype = kind
    if needs and (kind is None or kind.category == 2):
        made._requires_grad = True
        made._fn = fn
    if _state.inference:
        made._inference = True
    return made


def check_tensor(value: Any, name: str, argument: str) -> None:
    if not isinstance(value, Tensor):
        fail(
            TypeError,
            name,
            f"argument '{argument}' must be Tensor, not {type(value).__name__}",
        )
