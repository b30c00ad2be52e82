from __future__ import annotations

from collections.abc import Iterator

import gradwire
import pytest
from fake_daemon import TOKEN, FakeDaemon


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    fake = FakeDaemon()
    gradwire.connect(fake.address, TOKEN)
    yield fake
    gradwire.close()
    fake.stop()
