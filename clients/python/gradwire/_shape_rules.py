"""Shape rules of the catalog. A rule that is not known here gives None: ask.

A rule takes the op's arguments in signature order. None for a shape, or for a dtype, means that
it is not known on this side of the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from . import _shapes
from ._shapes import ShapeError

Values = Sequence[Any]
Rule = Callable[[Values], Any]


def shape_rule(row: Any, name: str) -> Rule:
    make = _SHAPES.get(name) or _BY_NAME.get(row.name)
    if make is None:
        return unknown
    rule = make(row)
    if rule is None:
        return unknown

    def checked(values: Values) -> Any:
        try:
            return rule(values)
        except ShapeError as error:
            from ._row import fail

            message, kind = str(error), error.kind
        fail(kind, row.name, message)

    return checked


def unknown(values: Values) -> None:
    return None


def _tensor(values: Values, i: int) -> Any:
    """The shape of a tensor argument, () of a number, None where unknown."""
    value = values[i]
    return value._shape if hasattr(value, "_shape") else ()


def _first(row: Any) -> int:
    return next(i for i, kind in enumerate(row.kinds) if kind <= 2)


def _need(row: Any, *names: str) -> list[int] | None:
    """Positions of parameters; each may be spelt `a|b`. None when one is missing."""
    found = []
    for name in names:
        at = next((row.index(n) for n in name.split("|") if row.index(n) >= 0), -1)
        if at < 0:
            return None
        found.append(at)
    return found


def _broadcast(row: Any) -> Rule:
    positions = [i for i, kind in enumerate(row.kinds) if kind <= 2]
    if positions == [0, 1]:

        def two(values: Values) -> Any:
            a = values[0]
            b = values[1]
            s = a._shape if hasattr(a, "_shape") else ()
            t = b._shape if hasattr(b, "_shape") else ()
            if s == t or t == ():
                return s
            if s is None or t is None:
                return None
            return _shapes.broadcast(s, t)

        return two

    def many(values: Values) -> Any:
        shape: Any = ()
        for i in positions:
            other = _tensor(values, i)
            if other is None:
                return None
            shape = _shapes.broadcast(shape, other)
        return shape

    return many


def _same(row: Any) -> Rule:
    at = _first(row)
    return lambda values: values[at]._shape if hasattr(values[at], "_shape") else None


def _reduce(row: Any) -> Rule:
    at, dim, keep = _first(row), row.index("dim"), row.index("keepdim")

    def rule(values: Values) -> Any:
        shape = _tensor(values, at)
        dims = values[dim] if dim >= 0 else None
        keeps = keep >= 0 and values[keep]
        if dims is None and not keeps:
            return ()
        if shape is None:
            return None
        wrapped = _shapes.wrap_all(dims, len(shape))
        if keeps:
            return tuple(1 if i in wrapped else s for i, s in enumerate(shape))
        return tuple(s for i, s in enumerate(shape) if i not in wrapped)

    return rule


def _known(function: Callable[..., Any], *names: str, tensors: int) -> Callable[[Any], Any]:
    """A rule whose first `tensors` names are tensors' shapes and the rest attributes."""

    def make(row: Any) -> Rule | None:
        at = _need(row, *names)
        if at is None:
            return None

        def rule(values: Values) -> Any:
            shapes = [_tensor(values, i) for i in at[:tensors]]
            if any(s is None for s in shapes):
                return None
            return function(*shapes, *[values[i] for i in at[tensors:]])

        return rule

    return make


def _listed(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """A rule over a list of tensors and a dim."""

    def make(row: Any) -> Rule | None:
        at = _need(row, "tensors|input", "dim")
        if at is None:
            return None

        def rule(values: Values) -> Any:
            shapes = [t._shape for t in values[at[0]]]
            if any(s is None for s in shapes) or not shapes:
                return None
            return function(shapes, values[at[1]])

        return rule

    return make


def _mm(a: Any, b: Any) -> Any:
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"self and mat2 must be matrices: shapes {list(a)} and {list(b)}")
    return _shapes.matmul(a, b)


def _bmm(a: Any, b: Any) -> Any:
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise ShapeError(
            "Expected batches of matrices that can be multiplied, got shapes "
            f"{list(a)} and {list(b)}"
        )
    return (a[0], a[1], b[2])


def _sizes(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(int(s) for s in size)


def _transpose(shape: Any, a: int, b: int) -> Any:
    i, j = _shapes.wrap(a, len(shape)), _shapes.wrap(b, len(shape))
    out = list(shape)
    if out:
        out[i], out[j] = out[j], out[i]
    return tuple(out)


def _permute(shape: Any, dims: Any) -> Any:
    wanted = _sizes(dims)
    if len(wanted) != len(shape):
        raise ShapeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {len(shape)} is not "
            f"equal to len(dims) = {len(wanted)}"
        )
    wrapped = [_shapes.wrap(d, len(shape)) for d in wanted]
    if len(set(wrapped)) != len(wrapped):
        raise ShapeError("permute(): duplicate dims are not allowed.")
    return tuple(shape[d] for d in wrapped)


def _squeeze(shape: Any, dim: Any) -> Any:
    if dim is None:
        return tuple(s for s in shape if s != 1)
    wrapped = [_shapes.wrap(d, len(shape)) for d in _sizes(dim)]
    return tuple(s for i, s in enumerate(shape) if s != 1 or i not in wrapped)


def _unsqueeze(shape: Any, dim: int) -> Any:
    at = _shapes.wrap(dim, len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])


def _flatten(shape: Any, start: int, end: int) -> Any:
    if not shape:
        return (1,)
    first, last = _shapes.wrap(start, len(shape)), _shapes.wrap(end, len(shape))
    if first > last:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return (*shape[:first], _shapes.numel(shape[first : last + 1]), *shape[last + 1 :])


def _select(shape: Any, dim: int, index: Any) -> Any:
    if not shape:
        raise ShapeError("select() cannot be applied to a 0-dim tensor.", IndexError)
    at = _shapes.wrap(dim, len(shape))
    if not -shape[at] <= int(index) < shape[at]:
        raise ShapeError(
            f"index {int(index)} is out of bounds for dimension {at} with size {shape[at]}",
            IndexError,
        )
    return (*shape[:at], *shape[at + 1 :])


def _slice(shape: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    if not shape:
        raise ShapeError("slice() cannot be applied to a 0-dim tensor.")
    at = _shapes.wrap(dim, len(shape))
    if step <= 0:
        raise ShapeError("slice step must be positive", ValueError)
    return (*shape[:at], _shapes.slice_length(shape[at], start, end, step), *shape[at + 1 :])


def _stack(shapes: Any, dim: int) -> Any:
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(shapes[0])} at entry "
                f"0 and {list(shape)} at entry {i}"
            )
    at = _shapes.wrap(dim, len(shapes[0]) + 1)
    return (*shapes[0][:at], len(shapes), *shapes[0][at:])


def _parts(cut: Callable[[int, Any], list[int]]) -> Callable[..., Any]:
    def rule(shape: Any, sections: Any, dim: int) -> Any:
        at = _shapes.wrap(dim, len(shape))
        if not shape:
            raise ShapeError("split expects at least a 1-dimensional tensor")
        return [(*shape[:at], n, *shape[at + 1 :]) for n in cut(shape[at], sections)]

    return rule


def _unbind(shape: Any, dim: int) -> Any:
    if not shape:
        raise ShapeError("Dimension specified as 0 but tensor has no dimensions", IndexError)
    at = _shapes.wrap(dim, len(shape))
    return [(*shape[:at], *shape[at + 1 :])] * int(shape[at])


def _embedding(indices: Any, weight: Any) -> Any:
    if len(weight) != 2:
        raise ShapeError("'weight' must be 2-D")
    return (*indices, weight[1])


def _index_select(shape: Any, index: Any, dim: int) -> Any:
    if not shape:
        return ()
    at = _shapes.wrap(dim, len(shape))
    return (*shape[:at], _shapes.numel(index), *shape[at + 1 :])


def _tensor_split(row: Any) -> Rule | None:
    at = _need(row, "input", "sections", "indices")
    if at is None:
        return None
    # The named functions say which dim in their first letter; a vector's hsplit is along dim 0.
    along = {"hsplit": 1, "vsplit": 0, "dsplit": 2}.get(row.name)

    def rule(values: Values) -> Any:
        shape, sections, indices = (values[i] for i in at)
        shape = shape._shape
        if shape is None:
            return None
        dim = values[row.index("dim")] if along is None else along
        if along == 1 and len(shape) == 1:
            dim = 0
        if not shape or dim >= len(shape):
            return [None] * (len(indices) + 1 if sections is None else 1)
        dim = _shapes.wrap(dim, len(shape))
        size = shape[dim]
        if sections is None:
            cuts = [0, *indices, size]
            sizes = [_shapes.slice_length(size, a, b, 1) for a, b in pairwise(cuts)]
        elif sections <= 0:
            raise ShapeError(f"number of sections must be larger than 0, got {sections}")
        else:
            sizes = [size // sections + (i < size % sections) for i in range(sections)]
        return [(*shape[:dim], n, *shape[dim + 1 :]) for n in sizes]

    return rule


def _each(shape: Callable[[list[Any]], Any]) -> Callable[[Any], Rule | None]:
    """As many results as there are tensors, all of the sizes that `shape` says."""

    def make(row: Any) -> Rule | None:
        at = _need(row, "tensors")
        if at is None:
            return None

        def rule(values: Values) -> Any:
            shapes = [t._shape for t in values[at[0]]]
            known = None if any(s is None for s in shapes) else shape(shapes)
            return [known] * len(shapes)

        return rule

    return make


def _broadcast_all(shapes: list[Any]) -> Any:
    done: tuple[int, ...] = ()
    for shape in shapes:
        done = _shapes.broadcast(done, shape)
    return done


def _pool(row: Any) -> Rule | None:
    at = _need(row, "input", "kernel_size", "stride", "padding")
    if at is None:
        return None
    dilation, ceil = row.index("dilation"), row.index("ceil_mode")
    spatial = int(next((c for c in row.name if c in "123"), "2"))

    def rule(values: Values) -> Any:
        shape = _tensor(values, at[0])
        if shape is None:
            return None
        if len(shape) not in (spatial + 1, spatial + 2):
            raise ShapeError(
                f"non-empty {spatial + 1}D or {spatial + 2}D (batch mode) tensor expected for "
                f"input, got shape {list(shape)}"
            )
        d = values[dilation] if dilation >= 0 else 1
        c = bool(values[ceil]) if ceil >= 0 else False
        return _shapes.pool(shape, values[at[1]], values[at[2]], values[at[3]], d or 1, c, spatial)

    return rule


def _loss(row: Any) -> Rule:
    """A number, unless the losses are asked for one by one."""
    how = row.index("reduction")
    return lambda values: () if values[how] in ("mean", "sum", "batchmean") else None


def _pair_loss(row: Any) -> Rule | None:
    reduced, at = _loss(row), _need(row, "input", "target")
    if at is None:
        return reduced

    def rule(values: Values) -> Any:
        if reduced(values) == ():
            return ()
        x, y = _tensor(values, at[0]), _tensor(values, at[1])
        return None if x is None or y is None else _shapes.broadcast(x, y)

    return rule


def _class_loss(row: Any) -> Rule | None:
    reduced, at = _loss(row), _need(row, "input")
    if at is None:
        return reduced

    def rule(values: Values) -> Any:
        x = _tensor(values, at[0])
        if x is None or reduced(values) == ():
            return reduced(values)
        return x[:1] + x[2:] if len(x) > 1 else ()

    return rule


def _rnn(row: Any) -> Rule | None:
    """Output, last hidden and, where there is one, last cell of a recurrent net."""
    at = _need(row, "input", "params", "num_layers", "bidirectional", "batch_first", "batch_sizes")
    if at is None:
        return None
    cell = row.name == "lstm"

    def rule(values: Values) -> Any:
        shape = _tensor(values, at[0])
        weights = values[at[1]]
        weight = weights[1]._shape if len(weights) > 1 else None
        walks, sizes = values[at[2]] * (2 if values[at[3]] else 1), values[at[5]]
        if shape is None or weight is None or len(weight) != 2:
            return [None] * (3 if cell else 2)
        if len(shape) != (3 if sizes is None else 2) or not walks or sizes == []:
            raise ShapeError(
                f"input must have {3 if sizes is None else 2} dimensions, got {len(shape)}"
            )
        batch = shape[0 if values[at[4]] else 1] if sizes is None else sizes[0]
        width = weight[1] * (2 if values[at[3]] else 1)
        shapes = [(*shape[:-1], width), (walks, batch, weight[1])]
        return [*shapes, (walks, batch, weight[0] // 4)] if cell else shapes

    return rule


def _rnn_cell(row: Any) -> Rule | None:
    at = row.index("hx")

    def rule(values: Values) -> Any:
        states = values[at]
        return [t._shape for t in states] if isinstance(states, list) else states._shape

    return rule


def _pack_padded(shape: Any, lengths: Sequence[int]) -> Any:
    return (sum(lengths), *shape[2:])


def _pad_packed(shape: Any, sizes: Sequence[int], batch_first: bool, total: int) -> Any:
    wide = (total or len(sizes), sizes[0] if sizes else 0)
    return (*(wide[::-1] if batch_first else wide), *shape[1:])


def _pad_sequence(row: Any) -> Rule | None:
    at = _need(row, "sequences", "batch_first")
    if at is None:
        return None

    def rule(values: Values) -> Any:
        shapes = [t._shape for t in values[at[0]]]
        if not shapes or not all(shapes):
            return None
        wide = (max(s[0] for s in shapes), len(shapes))
        return (*(wide[::-1] if values[at[1]] else wide), *shapes[0][1:])

    return rule


_SHAPES: dict[str, Callable[[Any], Rule | None]] = {
    "broadcast": _broadcast,
    "same": _same,
    "reduce": _reduce,
    "loss": _loss,
    "pair_loss": _pair_loss,
    "class_loss": _class_loss,
    "rnn": _rnn,
    "rnn_cell": _rnn_cell,
    "pack_padded_sequence": _known(_pack_padded, "input", "lengths", tensors=1),
    "pad_packed_sequence": _known(
        _pad_packed, "input", "batch_sizes", "batch_first", "total_length", tensors=1
    ),
    "pad_sequence": _pad_sequence,
    "scalar": lambda row: lambda values: (),
    "size": _known(_sizes, "size", tensors=0),
    "matmul": _known(_shapes.matmul, "input", "other|mat2", tensors=2),
    "mm": _known(_mm, "input", "mat2|other", tensors=2),
    "bmm": _known(_bmm, "input", "mat2|other", tensors=2),
    "linear": _known(_shapes.linear, "input", "weight", tensors=2),
    "conv": _known(
        _shapes.conv, "input", "weight", "stride", "padding", "dilation", "groups", tensors=2
    ),
    "pool": _pool,
    "view": _known(
        lambda shape, size: _shapes.resolve(_sizes(size), _shapes.numel(shape)),
        "input",
        "size|shape",
        tensors=1,
    ),
    "transpose": _known(_transpose, "input", "dim0", "dim1", tensors=1),
    "permute": _known(_permute, "input", "dims", tensors=1),
    "expand": _known(
        lambda shape, size: _shapes.expand(shape, _sizes(size)), "input", "size", tensors=1
    ),
    "squeeze": _known(_squeeze, "input", "dim", tensors=1),
    "unsqueeze": _known(_unsqueeze, "input", "dim", tensors=1),
    "flatten": _known(_flatten, "input", "start_dim", "end_dim", tensors=1),
    "select": _known(_select, "input", "dim", "index", tensors=1),
    "slice": _known(_slice, "input", "dim", "start", "end", "step", tensors=1),
    "tensor_split": _tensor_split,
    "broadcast_each": _each(_broadcast_all),
    "meshgrid": _each(lambda shapes: None),
    "unravel_index": _known(
        lambda indices, shape: [indices] * len(shape), "indices", "shape", tensors=1
    ),
    "cat": _listed(_shapes.cat),
    "stack": _listed(_stack),
    "split": _known(
        _parts(_shapes.pieces),
        "input|tensor",
        "split_size_or_sections|split_size|split_sizes|sections",
        "dim",
        tensors=1,
    ),  # fmt: skip
    "chunk": _known(_parts(_shapes.chunks), "input", "chunks", "dim", tensors=1),
    "unbind": _known(_unbind, "input", "dim", tensors=1),
    "embedding": _known(_embedding, "input|indices", "weight", tensors=2),
    "index_select": _known(_index_select, "input", "index", "dim", tensors=2),
    "gather": _known(lambda shape, index: index, "input", "index", tensors=2),
}


def _narrow(shape: Any, dim: int, start: int, length: int) -> Any:
    if not shape:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    at = _shapes.wrap(dim, len(shape))
    if length < 0:
        raise ShapeError("narrow(): length must be non-negative.")
    first = start + shape[at] if start < 0 else start
    if not 0 <= first <= shape[at] or first + length > shape[at]:
        raise ShapeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({shape[at]})."
        )
    return (*shape[:at], length, *shape[at + 1 :])


def _index(row: Any) -> Rule | None:
    at = _need(row, "input", "indices")
    if at is None:
        return None

    def rule(values: Values) -> Any:
        shape, indices = _tensor(values, at[0]), values[at[1]]
        if shape is None or len(indices) > len(shape):
            return None
        found: tuple[int, ...] = ()
        places = []
        for i, index in enumerate(indices):
            if index is None:
                continue
            if index._shape is None or index._dtype is None or index._dtype.number in (9, 10):
                return None  # a mask: the daemon counts
            try:
                found = _shapes.broadcast(found, index._shape)
            except ShapeError:
                raise ShapeError(
                    "shape mismatch: indexing tensors could not be broadcast together with "
                    f"shapes {list(found)}, {list(index._shape)}",
                    IndexError,
                ) from None
            places.append(i)
        rest = tuple(s for i, s in enumerate(shape) if i not in places)
        apart = places != list(range(places[0], places[0] + len(places))) if places else False
        first = 0 if apart or not places else places[0]
        return rest[:first] + found + rest[first:]

    return rule


def _histogram(row: Any) -> Rule | None:
    at = _need(row, "edges", "bins")
    if at is None:
        return None

    def rule(values: Values) -> Any:
        edges = [e._sizes() for e in values[at[0]]] or [(int(n) + 1,) for n in values[at[1]]]
        return [tuple(e[0] - 1 if e else 0 for e in edges), *edges]

    return rule


# Ops whose rows name no rule, but whose results this client must count or likes to know.
_BY_NAME: dict[str, Callable[[Any], Rule | None]] = {
    "histogram_cells": _histogram,
    "index": _index,
    "argmax": _reduce,
    "argmin": _reduce,
    "max_dim": _reduce,
    "min_dim": _reduce,
    "median_dim": _reduce,
    "split_with_sizes": _known(_parts(_shapes.pieces), "input", "split_sizes", "dim", tensors=1),
    "unbind": _SHAPES["unbind"],
    "narrow": _known(_narrow, "input", "dim", "start", "length", tensors=1),
    "linspace": _known(lambda steps: (int(steps),), "steps", tensors=0),
    "randperm": _known(lambda n: (int(n),), "n", tensors=0),
}
