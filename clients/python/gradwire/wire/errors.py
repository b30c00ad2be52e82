"""From errors on the wire to the exceptions that torch raises."""

from __future__ import annotations

from typing import Any


class OutOfMemoryError(RuntimeError):
    """The session's or the device's memory does not suffice."""


class LinAlgError(RuntimeError):
    """A matrix for which the asked result does not exist."""


class DivisionByZero(RuntimeError, ZeroDivisionError):
    """Integer division by zero: torch's RuntimeError, and Python's own kind too."""


class CancelledError(RuntimeError):
    """The command was dropped before it ran."""


class ConnectionLost(ConnectionError):
    """The daemon cannot be reached, or closed the stream."""


KINDS: dict[int, type[Exception]] = {
    1: RuntimeError,
    2: TypeError,
    3: ValueError,
    4: IndexError,
    5: NotImplementedError,
    6: OutOfMemoryError,
    7: LinAlgError,
    8: CancelledError,
    9: RuntimeError,
    10: DivisionByZero,
    11: KeyError,
    12: ConnectionLost,
    13: PermissionError,
}


def text(error: Any) -> str:
    """The message of a proto Error, ending with the user's own line."""
    message: str = error.message
    if error.kind == 9:
        message = "internal error: " + message
    if error.site and error.site not in message:
        message += f"\n  at {error.site}"
    return message


def decode(error: Any) -> Exception:
    """The exception to raise for a proto Error."""
    return KINDS.get(error.kind, RuntimeError)(text(error))


def from_connect(error: Any, address: str) -> Exception:
    """The exception where no session could be opened."""
    code = error.code()
    if code is not None and code.name == "UNAVAILABLE":
        reason = "Connection refused" if "refused" in (error.details() or "") else error.details()
        return ConnectionLost(
            f"no daemon answers at {address} ({reason}): is gradwired running there?"
        )
    if code is not None and code.name == "UNAUTHENTICATED":
        return PermissionError(
            f"{address} wants a valid token: give connect(token=...) or set GRADWIRE_TOKEN or "
            "GRADWIRE_TOKEN_FILE"
        )
    return from_rpc(error, address)


def from_rpc(error: Any, address: str) -> Exception:
    """The exception for a failed RPC."""
    code = error.code()
    name = code.name if code is not None else "UNKNOWN"
    detail = error.details() or name
    if name in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return PermissionError(f"{address}: {detail}")
    if name == "DEADLINE_EXCEEDED":
        return ConnectionLost(f"{address} did not answer in time")
    if name == "UNAVAILABLE":
        return ConnectionLost(
            f"the connection to {address} broke and this session's tensors are lost with it: start "
            f"again from a checkpoint ({detail})"
        )
    return ConnectionLost(f"{address}: {detail} ({name})")
