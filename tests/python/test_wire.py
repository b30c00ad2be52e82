"""Frames, replies, releases, transfers, errors and their lines, against a daemon in numpy."""

from __future__ import annotations

import gc
import re
import threading
import time

import gradwire as torch
import numpy as np
import pytest
from fake_daemon import TOKEN, FakeDaemon
from gradwire._rows import ROWS
from gradwire.v1 import session_pb2
from gradwire.wire import current, frame, session, sites, tape


def names(daemon):
    return [c[0] for c in daemon.commands]


def test_frame_bytes_are_the_messages():
    raw = frame.request(300, [1, 1 << 63], [5, 6, 7], b"\x01\x00", [(3, "a.py:1 in f")], 9)
    message = session_pb2.StreamRequest.FromString(raw).frame
    assert message.first == 300 and list(message.heads) == [1, 1 << 63]
    assert list(message.ids) == [5, 6, 7] and message.tape == b"\x01\x00"
    assert message.sites[0].id == 3 and message.sites[0].text == "a.py:1 in f"
    assert message.acknowledged == 9


def test_head_layout():
    head = frame.head(0x1234, 2, True, 3, 5)
    assert head & 0xFFFF == 0x1234 and head >> 16 & 15 == 2 and head >> 20 & 1 == 1
    assert head >> 24 & 4095 == 3 and head >> 36 & 4095 == 5


def test_tape_values():
    from fake_daemon import read_value

    for value in (None, True, False, 0, -16, 256, 257, -(1 << 63), 1.5, "aé", [1, [2.0, None]]):
        assert read_value(tape.any_value(value), 0)[0] == value
    assert read_value(tape.integers([1, -2]), 0)[0] == [1, -2]
    assert read_value(tape.floats([0.5]), 0)[0] == [0.5]
    assert read_value(tape.data(b"xyz"), 0)[0] == b"xyz"
    with pytest.raises(OverflowError):
        tape.integer(1 << 63)


def test_defaults_stay_off_the_tape(daemon):
    x = torch.ones(2)
    (x + x), torch.add(x, x, alpha=3), (x + 2.5), (2 - x)
    x.tolist()
    attributes = {c[0]: [c[4] for c in daemon.commands if c[0] == c[0]] for c in daemon.commands}
    assert attributes
    adds = [c[4] for c in daemon.commands if c[0] == "add"]
    assert adds == [[], [None, None, 3], [None, 2.5]]
    assert [c[4] for c in daemon.commands if c[0] == "sub"] == [[2]]


def test_numbers_are_in_order_and_frames_are_large(daemon):
    x = torch.zeros(1)
    for _ in range(5000):
        x = x + 1
    assert x.item() == 5000
    assert daemon.applied == current.session().first - 1
    assert len(daemon.frames) < 200


def test_flush_by_timer(daemon):
    torch.ones(1)
    deadline = time.monotonic() + 5
    while not daemon.commands and time.monotonic() < deadline:
        time.sleep(0.01)
    assert names(daemon)[:1] == ["full"]


def test_replies_are_acknowledged(daemon):
    x = torch.ones(1)
    for _ in range(3):
        (x + 1).item()
    assert daemon.frames[-1].acknowledged == 2


def test_releases_are_batched(daemon):
    x = torch.ones(2)
    for _ in range(200):
        x = x * 1
    x.tolist()
    gc.collect()
    (x + 0).tolist()
    released = [i for c in daemon.commands if c[0] == "session.release" for i in c[2]]
    assert len(released) >= 199 and len(set(released)) == len(released)
    assert sum(c[0] == "session.release" for c in daemon.commands) < 30
    assert len(daemon.tensors) <= 4


def test_release_comes_after_use(daemon):
    for _ in range(100):
        assert (torch.ones(3) * 2 + 1).sum().item() == 9


def test_threads_share_a_session(daemon):
    results = []

    def work(k):
        x = torch.full((3,), float(k))
        for _ in range(200):
            x = x + 1
        results.append((k, x.tolist()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(results) == [(k, [k + 200.0] * 3) for k in range(4)]


@pytest.mark.parametrize("count", [1, 1000, 5000, 300_000])
def test_values_travel_both_ways(daemon, count):
    values = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    x = torch.from_numpy(values.copy()) + 0
    np.testing.assert_array_equal(x.numpy(), values)


def test_dtypes_travel(daemon):
    for kind in (torch.float64, torch.int8, torch.uint8, torch.bool, torch.int16, torch.int64):
        x = torch.tensor([[0, 1], [1, 1]], dtype=kind)
        y = x.reshape(4)
        assert y.dtype is kind and y.tolist() == x.reshape(4).tolist()
        assert y.numpy().dtype == kind.numpy


def test_from_numpy_shares_until_use(daemon):
    array = np.zeros(3, np.float32)
    x = torch.from_numpy(array)
    array[0] = 1
    y = x + 0
    array[1] = 1
    assert y.tolist() == [1, 0, 0] and x.tolist() == [1, 0, 0]


def test_error_at_the_call_names_the_line(daemon):
    a, b = torch.ones(2, 3), torch.ones(4, 5)
    with pytest.raises(RuntimeError) as caught:
        a + b
    text = str(caught.value)
    assert text.startswith("[add] The size of tensor a (3) must match the size of tensor b (5)")
    assert re.search(r"at \S*test_wire.py:\d+ in test_error_at_the_call_names_the_line$", text)


def test_error_at_the_read_names_the_line(daemon):
    x = torch.tensor([[1.0, 2.0]]) + 0
    good = x * 2
    row = ROWS["index"]
    assert row.shape_rule == "" or True
    bad = x[torch.tensor([5])]  # the daemon finds out
    worse = bad + 1
    with pytest.raises(RuntimeError, match=r"index.*\n  at .*test_wire.py:\d+ in test_error_at"):
        worse.tolist()
    assert good.tolist() == [[2.0, 4.0]]
    assert (good + 1).tolist() == [[3.0, 5.0]]


def test_released_id(daemon):
    x = torch.ones(2)
    x.tolist()
    daemon.tensors.clear()
    with pytest.raises(RuntimeError, match="was released or never existed"):
        x.tolist()


def test_unauthenticated(daemon):
    with pytest.raises(PermissionError):
        session.Session(daemon.address, "wrong")


def test_unreachable():
    with pytest.raises(ConnectionError):
        session.Session("127.0.0.1:1", "", timeout=0.5)


def test_lost_connection():
    fake = FakeDaemon()
    torch.connect(fake.address, TOKEN)
    x = torch.ones(2)
    x.tolist()
    fake.stop()
    with pytest.raises(ConnectionError):
        for _ in range(100):
            x.tolist()
            time.sleep(0.05)
    torch.close()


def test_sites_are_reused_after_65535():
    table = sites.Sites()
    table.last = sites.LIMIT - 1

    class Code:
        co_filename, co_name = "/x/user.py", "main"

    class Frame:
        f_code, f_back, f_lasti, f_lineno = Code(), None, 4, 7

    assert table.find(Frame) == sites.LIMIT
    Frame.f_lasti, Frame.f_lineno = 8, 8
    assert table.find(Frame) == 1
    assert table.unsent == [(65535, "/x/user.py:7 in main"), (1, "/x/user.py:8 in main")]
    assert table.find(Frame) == 1 and len(table.unsent) == 2


def test_operators_with_foreign_types(daemon):
    x = torch.ones(2)
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        torch.matmul(x, 3)
    assert (np.float32(2) * x).tolist() == [2, 2]
    assert (x == None) is False  # noqa: E711
