"""The session that this process's tensors live in."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
from typing import Any

from . import errors
from .daemon import Daemon
from .session import Session, released
from .transfer import Transfers

SETTLE_SECONDS = 10.0

_session: Session | None = None
_transfers: Transfers | None = None
_daemon: Daemon | None = None
_owner = 0
_lock = threading.RLock()
on_open: list[Any] = []  # called with each new session


def session() -> Session:
    """The open session; connects when there is none yet."""
    return _session if _session is not None else connect()


def transfers() -> Transfers:
    session()
    assert _transfers is not None
    return _transfers


def connect(
    address: str | None = None,
    token: str | None = None,
    *,
    name: str = "",
    timeout: float = 20.0,
) -> Session:
    """Connects this process to a daemon, and closes the session it had.

    Without an address: $GRADWIRE_ADDRESS, else a private daemon is started. The token is, where
    not given, $GRADWIRE_TOKEN or the contents of the file $GRADWIRE_TOKEN_FILE.
    """
    global _session, _transfers, _daemon, _owner
    from .._rows import CATALOG_HASH, ROWS

    with _lock:
        close()
        address = address or os.environ.get("GRADWIRE_ADDRESS")
        daemon = None
        if not address:
            daemon = Daemon(timeout)
            address, token = daemon.address, daemon.token
        elif token is None:
            token = _token()
        try:
            opened = Session(address, token or "", name, timeout)
        except BaseException:
            if daemon is not None:
                daemon.stop()
            raise
        if opened.catalog_hash and opened.catalog_hash != CATALOG_HASH:
            warnings.warn(
                f"the daemon at {address} has another op catalog ({opened.catalog_hash}) than this "
                f"client ({CATALOG_HASH}): ops may be missing; update the older of the two",
                RuntimeWarning,
                stacklevel=2,
            )
        released.clear()  # ids of an earlier session
        opened.synchronize_command = ROWS["session.synchronize"].number
        opened.released_command = ROWS["session.release"].number
        _session, _transfers, _daemon = opened, Transfers(opened), daemon
        _owner = os.getpid()
        for call in on_open:
            call(opened)
        return opened


def close() -> None:
    """Ends the session; warns of errors that nobody has read."""
    global _session, _transfers, _daemon
    with _lock:
        ended, transfers, daemon = _session, _transfers, _daemon
        _session = _transfers = _daemon = None
        if ended is None or _owner != os.getpid():
            return
        if transfers is not None:
            transfers.close()
        if sys.exc_info()[0] is None:
            ended.settle(SETTLE_SECONDS)
        unread = ended.close()
        if daemon is not None:
            daemon.stop()
    for error in unread:
        # In the name of the user's line that caused it, not of this one.
        path, _, rest = error.site.partition(":")
        line = rest.partition(" ")[0]
        warnings.warn_explicit(
            f"an error was never read: {errors.text(error)}",
            RuntimeWarning,
            path or "gradwire",
            int(line) if line.isdigit() else 0,
        )


def connected() -> bool:
    return _session is not None


def _token() -> str:
    token = os.environ.get("GRADWIRE_TOKEN")
    path = os.environ.get("GRADWIRE_TOKEN_FILE")
    if token is None and path:
        with open(path) as file:
            token = file.read()
    return (token or "").strip()


def _after_fork() -> None:
    """A child keeps nothing of its parent's session: gRPC does not survive a fork."""
    global _session, _transfers, _daemon
    _session = _transfers = _daemon = None


def _at_exit() -> None:
    try:
        close()
    except Exception as error:
        print(f"gradwire: {error}", file=sys.stderr)


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork)
