"""Anomaly detection: a backward that meets nan says which line of the forward made it."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _call, _state
from .._rows import ROWS
from ..wire import current


def _set(enabled: bool, check_nan: bool) -> None:
    _state.anomaly, _state.anomaly_nan = enabled, check_nan
    if current.connected():
        _call.command(ROWS["session.set_anomaly"], (enabled, check_nan))


def _tell(session: Any) -> None:
    if _state.anomaly:
        _call.command(ROWS["session.set_anomaly"], (True, _state.anomaly_nan))


current.on_open.append(_tell)


def is_anomaly_enabled() -> bool:
    return _state.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    return _state.anomaly_nan


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    _set(bool(mode), bool(check_nan))


class set_detect_anomaly:
    """Anomaly detection on or off: at once, and for a block where used as a context."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = (_state.anomaly, _state.anomaly_nan)
        _set(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        _set(*self._before)


class detect_anomaly:
    """Anomaly detection for a block."""

    def __init__(self, check_nan: bool = True):
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = (_state.anomaly, _state.anomaly_nan)
        _set(True, self._check_nan)

    def __exit__(self, *_: Any) -> None:
        _set(*self._before)
