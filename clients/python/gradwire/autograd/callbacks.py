"""Code of this process that runs inside a backward: the daemon asks, this answers.

A backward over a graph that may reach such code is watched: its answer is either its end or a
Callback, which names the code and hands tensors over. The code runs ordinary ops; what it returns
goes back, and the daemon goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _call
from .._rows import ROWS
from ..wire import current

FUNCTION, TENSOR_HOOK, BEFORE_NODE, AFTER_NODE, ACCUMULATED, CHECKPOINT = range(1, 7)

# Takes the callback's number and the two groups of tensors; returns the answer's tensors.
Code = Callable[[int, list[Any], list[Any]], Sequence[Any]]

live: dict[int, Code] = {}  # by id, as long as the daemon's graph holds it


def add(code: Code) -> int:
    """An id for code that the next command hands to the graph."""
    id = current.session().new_id()
    live[id] = code
    return id


def forget(ids: Sequence[int]) -> None:
    for id in ids:
        live.pop(id, None)


def finish(session: Any, waiter: Any, create_graph: bool) -> Any:
    """Waits for a backward and runs what it asks for; returns its last reply."""
    while True:
        try:
            reply = session.wait(waiter)
        except BaseException:
            late = waiter.reply
            if late is not None and late.HasField("callback"):
                _call.command(ROWS["session.callback_abort"], (late.callback.callback,))
            raise
        if not reply.HasField("callback"):
            return reply
        asked = reply.callback
        try:
            results = list(_answer(asked, create_graph))
            waiter = _call.ask(ROWS["session.callback_return"], (results, asked.callback))
        except BaseException:
            _call.command(ROWS["session.callback_abort"], (asked.callback,))
            raise


def _answer(asked: Any, create_graph: bool) -> Sequence[Any]:
    from .modes import _restore, set_grad_enabled

    code = live.get(asked.code)
    if code is None:
        raise RuntimeError(f"backward asks for code {asked.code}, which is not known here")
    tensors = [_taken(id, meta) for id, meta in zip(asked.tensors, asked.metas, strict=True)]
    with _restore(), set_grad_enabled(create_graph):
        return code(asked.callback, tensors[: asked.split], tensors[asked.split :])


def _taken(id: int, meta: Any) -> Any:
    """A tensor of its own for a handle that the daemon made."""
    if not id:
        return None
    made = _call._new(id, None, None, False, None)
    made._learn(meta)
    return made


def _new_session(session: Any) -> None:
    live.clear()
    session.forgotten_code = forget


current.on_open.append(_new_session)
