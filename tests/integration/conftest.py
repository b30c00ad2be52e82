"""One daemon for all of these tests, a session of its own for each."""

from __future__ import annotations

from collections.abc import Iterator

import gradwire
import pytest
from gradwire.wire.daemon import Daemon


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    running = Daemon()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def session(daemon: Daemon) -> Iterator[object]:
    made = gradwire.connect(daemon.address, daemon.token)
    yield made
    gradwire.set_default_dtype(gradwire.float32)
    gradwire.close()


@pytest.fixture
def environment(daemon: Daemon) -> dict[str, str]:
    """What a script needs to reach the daemon."""
    import os

    return {
        **os.environ,
        "GRADWIRE_ADDRESS": daemon.address,
        "GRADWIRE_TOKEN": daemon.token,
    }
