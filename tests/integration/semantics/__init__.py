"""Edge semantics as cases that run under torch and under gradwire alike.

A case is a function of the torch module; what it returns is recorded from PyTorch by
tests/reference/record_semantics.py and compared by tests/integration/test_semantics.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

CASES: dict[str, tuple[str, Callable[[Any], Any]]] = {}


def case(point: int, sentence: str) -> Callable[[Any], Any]:
    """Adds a case for a sentence of a point."""

    def add(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        name = f"{point:02d}_{function.__name__}"
        assert name not in CASES, name
        CASES[name] = (sentence, function)
        return function

    return add


def plain(value: Any) -> Any:
    """Tensors as [dtype, shape, values], everything else as JSON has it."""
    if hasattr(value, "detach"):
        kind = str(value.dtype).replace("torch.", "")
        return [kind, list(value.shape), value.detach().tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return value


def settle(torch: Any, value: Any) -> Any:
    """Waits for what the call has started: an asynchronous error comes out here."""
    found = plain(value)
    torch.ones(1).item()
    return found


def raises(torch: Any, says: str, call: Callable[[], Any]) -> dict[str, Any]:
    """What kind of error the call ends with; its text must have `says` in it."""
    try:
        settle(torch, call())
    except Exception as error:
        kinds = [k.__name__ for k in type(error).__mro__ if k.__name__ in _KINDS]
        text = str(error)
        return {"raises": kinds[0], "says": says if says in text else f"NOT {says!r}: {text}"}
    return {"raises": None, "says": ""}


_KINDS = {
    *("RuntimeError", "TypeError", "ValueError", "IndexError", "NotImplementedError", "KeyError"),
    *("AttributeError", "OverflowError", "AssertionError"),
}


def warns(call: Callable[[], Any], says: str) -> list[Any]:
    """Whether the call warns with `says`, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return [any(says in str(w.message) for w in caught), plain(result)]


def gradient(torch: Any, function: Callable[[Any], Any], values: Any) -> Any:
    """d sum(function(x)) / dx."""
    x = torch.tensor(values, requires_grad=True)
    function(x).sum().backward()
    return x.grad
