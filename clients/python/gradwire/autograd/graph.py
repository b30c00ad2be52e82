"""Nodes of the graph, as far as a client sees them."""

from __future__ import annotations

import json
import weakref
from typing import Any

from .. import _call
from .._rows import ROWS
from ..wire import current
from ..wire.session import released
from .hooks import RemovableHandle, register_node_hook

_known: weakref.WeakValueDictionary[tuple[int, int], Node] = weakref.WeakValueDictionary()


class Node:
    """A node of the daemon's graph: one op's backward, or the end at a leaf."""

    def __init__(self, id: int, name: str):
        self._id = id
        self._name = name

    def __del__(self) -> None:
        released.append(self._id)

    def name(self) -> str:
        own = self._name in ("AccumulateGrad", "CopySlices")
        return f"torch::autograd::{self._name}" if own else self._name

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the gradients go: (node, which of its outputs), (None, 0) where nowhere."""
        waiter = _call.ask(ROWS["session.node_edges"], (self._id,))
        found = json.loads(current.session().wait(waiter).text)
        return tuple((None, 0) if f is None else (_node(f), f[3]) for f in found)

    def register_hook(self, fn: Any) -> RemovableHandle:
        """Runs `fn(grad_inputs, grad_outputs)` after the node."""
        return register_node_hook(self._id, fn, False)

    def register_prehook(self, fn: Any) -> RemovableHandle:
        """Runs `fn(grad_outputs)` before the node."""
        return register_node_hook(self._id, fn, True)

    @property
    def variable(self) -> Any:
        from .backward import _receive

        session = current.session()
        id = session.new_id()
        waiter = _call.ask(ROWS["session.node_variable"], (self._id,), (id,))
        found = _receive([id], session.wait(waiter))[0]
        if found is None:
            raise AttributeError(f"'{self._name}' object has no attribute 'variable'")
        return found

    @property
    def metadata(self) -> dict[Any, Any]:
        return self.__dict__.setdefault("_metadata", {})

    def __repr__(self) -> str:
        return f"<{self._name} object at {id(self):#x}>"


def _node(found: list[Any]) -> Node:
    """The object of a node the daemon described: one for each node, while it is in use."""
    session = current.session()
    key = (id(session), found[1])
    node = _known.get(key)
    if node is not None:
        released.append(found[0])
        return node
    node = Node(found[0], found[2])
    _known[key] = node
    return node


def node_of(tensor: Any) -> Node:
    """The node that made a tensor with a history; nothing is waited for."""
    id = current.session().new_id()
    _call.command(ROWS["session.node"], (tensor,), (id,))
    return Node(id, tensor._fn)


class GradientEdge:
    def __init__(self, node: Any, output_nr: int):
        self.node, self.output_nr = node, output_nr


def increment_version(tensor: Any) -> None:
    """Counts as an in-place write."""
    from .modes import no_grad

    with no_grad():
        tensor.add_(0)
