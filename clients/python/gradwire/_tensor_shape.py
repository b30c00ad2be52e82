"""Tensor methods about sizes and layout, where torch's signatures are freer than a catalog row."""

from __future__ import annotations

from typing import Any

from . import _shapes
from ._call import call
from ._rows import ROWS
from ._size import Size
from ._tensor_sizes import sizes


class Shaping:
    """Sizes, strides, views."""

    _strides: tuple[int, ...] | None

    def size(self, dim: int | None = None) -> Any:
        shape = self._sizes()  # type: ignore[attr-defined]
        if dim is None:
            return Size(shape)
        try:
            return shape[_shapes.wrap(dim, len(shape))]
        except _shapes.ShapeError as error:
            raise IndexError(str(error)) from None

    def dim(self) -> int:
        return len(self._sizes())  # type: ignore[attr-defined]

    ndimension = dim

    def numel(self) -> int:
        return _shapes.numel(self._sizes())  # type: ignore[attr-defined]

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        self._know_strides()
        strides: Any = self._strides
        return tuple(strides) if dim is None else strides[dim]

    def _know_strides(self) -> None:
        if self._strides is None:
            if not self._id and self._host is not None:  # type: ignore[attr-defined]
                strides, step = [], 1
                for size in reversed(self._sizes()):  # type: ignore[attr-defined]
                    strides.append(step)
                    step *= max(size, 1)
                self._strides = tuple(reversed(strides))
            else:
                self._fetch()  # type: ignore[attr-defined]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        self._know_strides()
        shape = self._sizes()  # type: ignore[attr-defined]
        order = list(range(len(shape)))
        if memory_format is not None and "channels_last" in str(memory_format):
            if len(shape) < 4:
                return False
            order = [0, *range(2, len(shape)), 1]
        step = 1
        for i in reversed(order):
            if shape[i] == 0:
                return True
            if shape[i] != 1 and self._strides[i] != step:  # type: ignore[index]
                return False
            step *= shape[i]
        return True

    @property
    def T(self) -> Any:
        return self.permute(*reversed(range(self.dim())))  # type: ignore[attr-defined]

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)  # type: ignore[attr-defined]

    @property
    def H(self) -> Any:
        return self.transpose(0, 1)  # type: ignore[attr-defined]

    mH = mT

    def view(self, *size: Any, dtype: Any = None) -> Any:
        """The same elements in other sizes, without a copy."""
        if dtype is not None or (len(size) == 1 and hasattr(size[0], "itemsize")):
            raise NotImplementedError("view(dtype) is not supported: use to(dtype)")
        return call(ROWS["view"], (self, sizes(size)))

    def reshape(self, *shape: Any) -> Any:
        """The same elements in other sizes, as a view where one exists."""
        return call(ROWS["reshape"], (self, sizes(shape)))

    def view_as(self, other: Any) -> Any:
        return self.view(*other._sizes())

    def reshape_as(self, other: Any) -> Any:
        return self.reshape(*other._sizes())

    def expand_as(self, other: Any) -> Any:
        return self.expand(*other._sizes())  # type: ignore[attr-defined]

    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Any:  # fmt: skip
        from . import _host

        kind = dtype or self.dtype  # type: ignore[attr-defined]
        return _host.tensor(data, dtype=kind, device=device, requires_grad=requires_grad)

    def new_zeros(self, *size: Any, **options: Any) -> Any:
        from . import _create

        return _create.zeros(sizes(size), **self._like(options))

    def new_ones(self, *size: Any, **options: Any) -> Any:
        from . import _create

        return _create.ones(sizes(size), **self._like(options))

    def new_empty(self, *size: Any, **options: Any) -> Any:
        from . import _create

        return _create.empty(sizes(size), **self._like(options))

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Any:
        from . import _create

        return _create.full(size, fill_value, **self._like(options))

    def _like(self, options: dict[str, Any]) -> dict[str, Any]:
        if options.get("dtype") is None:
            options["dtype"] = self.dtype  # type: ignore[attr-defined]
        return options
