"""With seconds of work queued in one session, the network still answers another at once."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import gradwire as torch
from gradwire import _call
from gradwire._rows import ROWS
from gradwire.wire import current
from gradwire.wire.daemon import Daemon

# Queues products that stand for five seconds, asks dispatch about the last of them, and waits.
BUSY = """
import sys, time
import gradwire as torch
from gradwire import _call
from gradwire._rows import ROWS
from gradwire.wire import current

x = torch.full((1024, 1024), 0.001)
(x @ x).sum().item()
start = time.monotonic()
(x @ x).sum().item()
one = time.monotonic() - start
start = time.monotonic()
for _ in range(int(5 / one) + 1):
    y = x @ x
current.session().wait(_call.ask(ROWS["session.meta"], ([y],)))
print(time.monotonic() - start, flush=True)
sys.stdin.readline()
"""


def meta_milliseconds(tensor: torch.Tensor) -> float:
    start = time.monotonic()
    reply = current.session().wait(_call.ask(ROWS["session.meta"], ([tensor],)))
    took = 1000 * (time.monotonic() - start)
    assert tuple(reply.metas.metas[0].shape) == (2, 3)
    return took


def test_a_busy_session_holds_nobody_up(daemon: Daemon, environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as busy:
        try:
            assert busy.stdout
            queued = float(busy.stdout.readline())
            # All its frames were taken in long before the work they ask for is done.
            assert queued < 2.5
            x = torch.ones(2, 3)
            waits = [meta_milliseconds(x * 2) for _ in range(15)]
            assert statistics.median(waits) < 50
            # A value takes turns with the long queue instead of standing behind it.
            start = time.monotonic()
            assert (x * 2).sum().item() == 12
            assert time.monotonic() - start < 2.5
        finally:
            busy.kill()
