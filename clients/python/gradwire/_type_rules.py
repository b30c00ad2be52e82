"""Dtypes of results, by the type rules of the catalog; None where this client must ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _dtype, _state
from ._dtype import BOOL, FLOAT, INT
from ._shape_rules import Rule, Values, unknown


def type_rule(row: Any, name: str) -> Rule:
    if "," in name:  # one for each output
        parts = [type_rule(row, part.strip()) for part in name.split(",")]
        return lambda values: [part(values) for part in parts]
    make = _BY_NAME.get(row.name) or _TYPES.get(name)
    rule = make(row) if make is not None else unknown
    if "indices" in row.outputs:

        def by_name(values: Values) -> Any:
            kind = rule(values)
            return [_dtype.int64 if n == "indices" else kind for n in row.outputs]

        return by_name
    return rule


def _promote(row: Any) -> Rule:
    positions = [i for i, kind in enumerate(row.kinds) if kind <= 4]
    lists = any(row.kinds[i] > 2 for i in positions)

    def rule(values: Values) -> Any:
        if lists:
            found: list[Any] = []
            for i in positions:
                found += values[i] if row.kinds[i] > 2 else [values[i]]
            return promoted(found)
        return promoted([values[i] for i in positions])

    if positions == [0, 1] and not lists:

        def two(values: Values) -> Any:
            a = values[0]
            b = values[1]
            if hasattr(a, "_dtype"):
                kind = a._dtype
                if hasattr(b, "_dtype"):
                    if b._dtype is kind:
                        return kind
                elif kind is not None and (
                    kind.category == FLOAT or (kind.category == INT and type(b) is int)
                ):
                    return kind
            return promoted((a, b))

        return two
    return rule


def promoted(operands: Sequence[Any]) -> Any:
    """torch's promotion: a higher category wins, then tensors with dims, 0-dim ones, numbers."""
    levels: list[Any] = [None, None, None]
    for value in operands:
        if value is None:
            continue
        if hasattr(value, "_dtype"):
            kind, shape = value._dtype, value._shape
            if kind is None or shape is None:
                return None
            level = 1 if shape == () else 0
        else:
            level = 2
            if isinstance(value, (bool,)):
                kind = _dtype.bool_
            elif isinstance(value, int):
                kind = _dtype.int64
            else:
                kind = _state.default_dtype
        have = levels[level]
        levels[level] = kind if have is None else _dtype.promote(have, kind)
    result = None
    for kind in levels:
        if kind is not None and (result is None or kind.category > result.category):
            result = kind
    return result


def _promote_float(row: Any) -> Rule:
    inner = _promote(row)

    def rule(values: Values) -> Any:
        kind = inner(values)
        if kind is None or kind.category == FLOAT:
            return kind
        return _state.default_dtype

    return rule


def _bitwise(row: Any) -> Rule:
    inner = _promote(row)

    def rule(values: Values) -> Any:
        kind = inner(values)
        if kind is not None and kind.category == FLOAT:
            from ._row import fail, scalar_name

            fail(NotImplementedError, row.name, f"not implemented for '{scalar_name(kind)}'")
        return kind

    return rule


def _same_type(row: Any) -> Rule:
    at = next((i for i, kind in enumerate(row.kinds) if kind <= 4), -1)
    if at < 0:
        return unknown

    def rule(values: Values) -> Any:
        value = values[at]
        if isinstance(value, (list, tuple)):
            value = value[0] if value else None
        return value._dtype if hasattr(value, "_dtype") else None

    return rule


def _each_type(row: Any) -> Rule:
    at = row.index("tensors")
    return lambda values: [getattr(v, "_dtype", None) for v in values[at]]


def _given(row: Any) -> Rule:
    at = row.index("dtype")
    if at < 0:
        return unknown

    def rule(values: Values) -> Any:
        return None if values[at] is None else _dtype.of(values[at])

    return rule


def _sum(row: Any) -> Rule:
    same, given = _same_type(row), _given(row)

    def rule(values: Values) -> Any:
        kind = given(values) or same(values)
        if given(values) is None and kind is not None and kind.category in (BOOL, INT):
            return _dtype.int64
        return kind

    return rule


def _float_only(row: Any) -> Rule:
    several = sum(kind in (0, 2) for kind in row.kinds) > 1  # tensors and operands
    same, given = (_promote if several else _same_type)(row), _given(row)

    def rule(values: Values) -> Any:
        kind = given(values) or same(values)
        if kind is not None and kind.category != FLOAT:
            from ._row import fail, scalar_name

            fail(
                RuntimeError,
                row.name,
                f"{row.name}(): could not infer output dtype. Input dtype must be either a "
                f"floating point or complex dtype. Got: {scalar_name(kind)}",
            )
        return kind

    return rule


_TYPES: dict[str, Callable[[Any], Rule]] = {
    "promote": _promote,
    "promote_float": _promote_float,
    "true_div": _promote_float,
    "bool": lambda row: lambda values: _dtype.bool_,
    "int64": lambda row: lambda values: _dtype.int64,
    "int32": lambda row: lambda values: _dtype.int32,
    "same": _same_type,
    "each": _each_type,
    "sum": _sum,
    "given": _given,
    "float_only": _float_only,
    "bitwise": _bitwise,
}


def _truth(row: Any) -> Rule:
    same = _same_type(row)

    def rule(values: Values) -> Any:
        kind = same(values)
        return kind if kind is None or kind is _dtype.uint8 else _dtype.bool_

    return rule


def _one_type(row: Any) -> Rule:
    """The operands' dtype, which is the same for all."""
    positions = [i for i, kind in enumerate(row.kinds) if kind <= 1]

    def rule(values: Values) -> Any:
        first = None
        for i in positions:
            kind = getattr(values[i], "_dtype", None)
            if kind is None:
                continue
            if first is None:
                first = kind
            elif kind is not first:
                from ._row import fail

                fail(
                    RuntimeError,
                    row.name,
                    "expected all operands to have the same dtype, but got: "
                    f"{first.name} != {kind.name}",
                )
        return first

    return rule


def _weight_type(row: Any) -> Rule:
    at = row.index("weight")
    return lambda values: getattr(values[at], "_dtype", None)


# Ops whose rows say less than this client can.
_BY_NAME: dict[str, Callable[[Any], Rule]] = {
    "matmul": _one_type,
    "mm": _one_type,
    "bmm": _one_type,
    "nn.functional.linear": _one_type,
    "nn.functional.conv2d": _one_type,
    "nn.functional.embedding": _weight_type,
    "nn.functional.cross_entropy": _same_type,
    "index": _same_type,
    "nonzero": lambda row: lambda values: _dtype.int64,
    "mean": _float_only,
    "any": _truth,
    "all": _truth,
    "max_dim": _same_type,
    "min_dim": _same_type,
    "median_dim": _same_type,
}
