"""A row of the catalog: its arguments as ids and tape bytes.

This is the path of every op, so it is written for few Python steps: kinds are small integers,
head words are prepared, attributes go straight to tape bytes.
"""

from __future__ import annotations

import operator
from collections import namedtuple
from collections.abc import Callable, Sequence
from sys import _getframe
from typing import Any, NoReturn

import numpy as np

from . import _dtype
from .wire import current, frame, tape

# Kinds of parameters; up to OPERAND they are tensors.
TENSOR, TENSOR_OR_NONE, OPERAND, TENSORS, TENSORS_OR_NONE, OBJECT = 0, 1, 2, 3, 4, 5
SCALAR, INT, FLOAT, BOOL, STR, DTYPE, DEVICE, INTS, FLOATS, BYTES = range(6, 16)
_KINDS = {
    "Tensor": TENSOR,
    "Tensor?": TENSOR_OR_NONE,
    "Operand": OPERAND,
    "Tensor[]": TENSORS,
    "Tensor?[]": TENSORS_OR_NONE,
    "Scalar": SCALAR,
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "str": STR,
    "dtype": DTYPE,
    "device": DEVICE,
    "int[]": INTS,
    "float[]": FLOATS,
    "Object": OBJECT,
    "bytes": BYTES,
}
_PYTHON_NAME = {
    INT: "int",
    FLOAT: "float",
    BOOL: "bool",
    STR: "str",
    DTYPE: "torch.dtype",
    INTS: "tuple of ints",
    FLOATS: "tuple of floats",
    SCALAR: "Number",
}

Tensor: Any = None  # the class, set by _tensor
_upload: Any = None
Rule = Callable[[Sequence[Any]], Any]
REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


def bind(tensor: Any, new: Any, upload: Any) -> None:
    """Told by the package what a tensor is: rows are made before it."""
    global Tensor, _upload
    from . import _call

    Tensor, _upload = tensor, upload
    _call.Tensor, _call._new, _call._upload = tensor, new, upload


def site() -> int:
    return current.session().sites.find(_getframe(1))


def here() -> str:
    """Where the user's code called, as the end of an error's text; "" when not connected."""
    if not current.connected():
        return ""
    sites = current.session().sites
    text = sites.texts.get(sites.find(_getframe(1)))
    return f"\n  at {text}" if text else ""


def described(tensor: Any) -> str:
    """What is known of a tensor, for errors: "float32[2, 3]"."""
    return f"{tensor.dtype.name}{list(tensor._sizes())}"


def fail(kind: type[Exception], name: str, message: str) -> NoReturn:
    """Raises an error that the client's metadata can see, in the form of the server's."""
    raise kind(f"[{name}] {message}{here()}")


def _result_text(result: Any) -> str:
    """As torch writes its named results, a line each."""
    parts = ",\n".join(
        f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True)
    )
    return f"torch.return_types.{type(result).__name__}(\n{parts})"


class Row:
    """One op of the catalog."""

    def __init__(
        self,
        number: int,
        name: str,
        params: Sequence[tuple[str, str, bool, Any]],  # name, type, optional, default
        returns: str,
        shape_rule: str,
        type_rule: str,
        flags: str,  # any of: d differentiable, i in place, o out
        outputs: Sequence[str] = (),
    ):
        self.number = number
        self.name = name
        self.names = [p[0] for p in params]
        self.optional = [p[2] for p in params]
        self.defaults = [p[3] for p in params]
        self.kinds = []
        for _, kind, optional, _default in params:
            text = kind.rstrip("?") if not kind.endswith("?[]") else kind
            code = _KINDS[text]
            if code == TENSOR and (optional or kind == "Tensor?"):
                code = TENSOR_OR_NONE
            self.kinds.append(code)
        self.differentiable = "d" in flags and name != "detach"
        self.in_place = "i" in flags
        self.out = "o" in flags
        self.returns = returns
        self.outputs = list(outputs)
        if returns in ("()", ""):
            self.output_count: int | None = 0
        elif returns.startswith("("):
            self.output_count = returns.count(",") + 1
            if not self.outputs:
                self.outputs = [part.split()[-1] for part in returns.strip("()").split(",")]
        elif returns.endswith("[]"):
            self.output_count = None
        else:
            self.output_count = 1
        self.result: Any = None
        if self.output_count and self.output_count > 1:
            short = name.rpartition(".")[2].removesuffix("_dim")
            self.result = namedtuple(short, self.outputs, rename=True)  # type: ignore[misc]
            self.result.__module__ = "torch.return_types"
            self.result.__repr__ = _result_text
        lists = [k for k in self.kinds if k in (TENSORS, TENSORS_OR_NONE)]
        self.counts_lists = len(lists) > 1  # else the ids' number says it
        self.plain = all(k in (TENSOR, OPERAND) for k in self.kinds)
        self.grad_fn = _grad_fn_name(name)
        from . import _shape_rules, _type_rules

        self.shape: Rule = _shape_rules.shape_rule(self, shape_rule)
        self.type: Rule = _type_rules.type_rule(self, type_rule)
        self.shape_rule = shape_rule
        self.type_rule = type_rule
        self.head1 = [frame.head(number, 0, False, n, 1) for n in range(8)]

    def index(self, name: str) -> int:
        return self.names.index(name) if name in self.names else -1

    # Arguments.

    def encode(self, values: Sequence[Any]) -> tuple[list[int], bytes | None, bool]:
        """Input ids, the tape or None, and whether a tensor among them requires a gradient."""
        ids: list[int] = []
        parts: list[bytes] = []
        keep = 0  # parts up to the last that is not a default
        needs = False
        if self.counts_lists:
            for kind, value in zip(self.kinds, values):  # noqa: B905
                if kind == TENSORS or kind == TENSORS_OR_NONE:
                    parts.append(tape.integer(len(value)))
            keep = len(parts)
        position = 0
        for kind in self.kinds:
            value = values[position]
            if kind <= OPERAND:
                if isinstance(value, Tensor):
                    ids.append(value._id or _upload(value))
                    if value._requires_grad:
                        needs = True
                    if kind == OPERAND:
                        parts.append(tape.NONE)
                elif kind == OPERAND:
                    ids.append(0)
                    parts.append(self._scalar(position, value))
                    keep = len(parts)
                elif value is None and kind == TENSOR_OR_NONE:
                    ids.append(0)
                else:
                    self._wrong(position, value, "Tensor")
            elif kind <= TENSORS_OR_NONE:
                for item in self._list(position, value):
                    if isinstance(item, Tensor):
                        ids.append(item._id or _upload(item))
                        if item._requires_grad:
                            needs = True
                    elif item is None and kind == TENSORS_OR_NONE:
                        ids.append(0)
                    else:
                        self._wrong(position, item, "tuple of Tensors")
            elif kind == OBJECT:
                ids.append(value)
            else:
                default = self.defaults[position]
                if value is default:
                    parts.append(tape.NONE if value is None else self._attribute(position, value))
                else:
                    parts.append(self._attribute(position, value))
                    if not (type(value) is type(default) and value == default):
                        keep = len(parts)
            position += 1
        if not keep:
            return ids, None, needs
        if keep > 255:
            fail(ValueError, self.name, f"{keep} attributes are too many")
        return ids, bytes((keep,)) + b"".join(parts[:keep]), needs

    def _attribute(self, position: int, value: Any) -> bytes:
        kind = self.kinds[position]
        if value is None:
            if self.optional[position] or self.defaults[position] is None or kind == DEVICE:
                return tape.NONE
            self._wrong(position, value, _PYTHON_NAME.get(kind, "value"))
        try:
            if kind == INT:
                return tape.integer(operator.index(value))
            if kind == INTS:
                if isinstance(value, int):
                    return tape.integers((value,))
                return tape.integers([operator.index(v) for v in value])
            if kind == BOOL:
                if isinstance(value, (bool, np.bool_, int)):
                    return tape.TRUE if value else tape.FALSE
            elif kind == FLOAT:
                if isinstance(value, (int, float, np.generic)) or isinstance(value, Tensor):
                    return tape.number(float(value))
            elif kind == SCALAR:
                return self._scalar(position, value)
            elif kind == DTYPE:
                return tape.kind(_dtype.of(value))
            elif kind == STR:
                if isinstance(value, str):
                    return tape.text(value)
            elif kind == DEVICE:
                return tape.text(str(value))
            elif kind == FLOATS:
                if isinstance(value, (int, float)):
                    return tape.floats((value,))
                return tape.floats([float(v) for v in value])
            elif kind == BYTES:
                return tape.data(value)
        except TypeError:
            pass
        self._wrong(position, value, _PYTHON_NAME.get(kind, "value"))

    def _scalar(self, position: int, value: Any) -> bytes:
        kind = type(value)
        if kind is int or kind is float or kind is bool:
            return tape.scalar(value)
        if isinstance(value, (np.generic, Tensor)):
            value = value.item()
        if isinstance(value, (bool, int, float)):
            return tape.any_value(value)
        self._wrong(position, value, "Tensor or Number" if self.kinds[position] == OPERAND
                    else "Number")  # fmt: skip

    def _list(self, position: int, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return value
        if isinstance(value, Tensor):
            self._wrong(position, value, "tuple of Tensors")
        return list(value)

    def _wrong(self, position: int, value: Any, wanted: str) -> NoReturn:
        short = self.name.rpartition(".")[2]
        kind = "Tensor" if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(
            f"{short}(): argument '{self.names[position]}' (position {position + 1}) must be "
            f"{wanted}, not {kind}{here()}"
        )


def _grad_fn_name(name: str) -> str:
    short = name.rpartition(".")[2]
    return "".join(part[:1].upper() + part[1:] for part in short.split("_")) + "Backward0"


_SCALAR_NAMES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}


def scalar_name(kind: Any) -> str:
    return _SCALAR_NAMES[kind.name]
