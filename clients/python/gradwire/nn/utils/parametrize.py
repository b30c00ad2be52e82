"""Parametrisations: a parameter as the result of modules over other parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ... import _row
from ...autograd import no_grad
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

_caching = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, a parametrised tensor is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _inverted(modules: list[Module], value: Any, strict: bool) -> Any:
    """The value that the modules, applied in order, make `value` of."""
    with no_grad():
        for module in reversed(modules):
            inverse = getattr(module, "right_inverse", None)
            if inverse is None and strict:
                raise RuntimeError(
                    f"parametrization {type(module).__name__} does not implement right_inverse."
                )
            try:
                value = value if inverse is None else inverse(value)
            except NotImplementedError:
                if strict:
                    raise
    return value


def _check_like(what: str, new: Any, old: Any) -> None:
    if not isinstance(new, _row.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(new).__name__}.")
    for name in ("dtype", "shape"):
        a, b = getattr(old, name), getattr(new, name)
        if a != b:
            raise ValueError(
                f"Registering a parametrization may not change the {name} of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized {name}: {a}\n{what} {name}: {b}"
            )


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, in order, with the tensors that they start from:
    `original`, or `original0`, `original1`, ... where right_inverse gives several."""

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape_and_type = original.detach()
        new: Any = _inverted(list(self), original, strict=False)
        self.is_tensor = isinstance(new, _row.Tensor)
        if not self.is_tensor and not isinstance(new, list | tuple):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {new.dtype}"
                )
            original.data = new.detach()
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, _row.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {i} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part.detach(), original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _check_like("parametrized", self(), shape_and_type)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Makes the originals such that the result is `value`."""
        value = _inverted(list(self), value, strict=True)
        parts = [value] if self.is_tensor else list(value)
        if len(parts) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(parts)}."
            )
        for own, part in zip(self._originals(), parts, strict=True):
            if own.dtype != part.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {part.dtype} while "
                    f"`original` has dtype {own.dtype}"
                )
            own.data = part.detach()

    def forward(self) -> Any:
        first, *others = list(self)
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _inject_class(module: Module) -> None:
    """A class of the module's own, for properties."""
    plain = type(module)

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        made = plain.__new__(plain)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        _inject_class(made)
        for name in made.parametrizations:
            _inject_property(made, name)
        return made

    module.__class__ = type(f"Parametrized{plain.__name__}", (plain,), {"__deepcopy__": copied})


def _inject_property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        compute = self.parametrizations[name]
        if not _caching:
            return compute()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = compute()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """The tensor becomes parametrization(original), computed at every access."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parts = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_like("parametrized", after, before)
            inverse = getattr(parametrization, "right_inverse", None)
            if inverse is not None:
                try:
                    _check_like("inverted", inverse(after), before)
                except NotImplementedError:
                    pass
        parts.append(parametrization)
        parts.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    parts = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    module.parametrizations[tensor_name] = parts
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the tensor, or any, of the module is parametrised."""
    parts = module._modules.get("parametrizations")
    if not isinstance(parts, ModuleDict):
        return False
    return len(parts) > 0 if tensor_name is None else tensor_name in parts


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """The tensor is a parameter again: of its last value, or (leave_parametrized=False) of the
    original's."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    if not parts.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    value: Any = getattr(module, tensor_name) if leave_parametrized else None
    if parts.is_tensor:
        original = parts.original
        if value is not None:
            original.data = value.detach()
    else:
        original = Parameter(value.detach()) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class without parametrisations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]
