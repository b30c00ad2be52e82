"""A session with a daemon: one ordered stream of commands, and the replies to some of them.

Commands are appended to a frame under a lock and leave at 1,024 commands, at 16 KiB of
attributes, when somebody waits for a reply, or about 200 microseconds after the first of them.
Two threads belong to a session: one reads replies, one sends frames that nobody flushed.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Sequence
from typing import Any

import grpc

from ..v1 import frame_pb2, session_pb2
from . import errors, frame
from .sites import Sites

FRAME_COMMANDS = 1024
FRAME_TAPE = 16 << 10
FRAME_IDS = 16 << 10
FLUSH_SECONDS = 200e-6
RELEASE_BATCH = 32
RELEASE_MOST = 4000
CONNECT_SECONDS = 2.0  # how long a refused connection is tried again
CREDIT = 16 << 10  # commands sent and not yet applied
PREFIX = "/gradwire.v1.Gradwire/"

# Ids that no tensor uses any more. Appended to by __del__, which may run at any point of any
# thread, so it must not take a lock.
released: deque[int] = deque()
_numbers = itertools.count(1)  # below an id's slot; never used twice in a process


class Waiter:
    """The place where one reply arrives."""

    __slots__ = ("gate", "reply", "failure")

    def __init__(self) -> None:
        self.gate = allocate_lock()
        self.gate.acquire()
        self.reply: Any = None
        self.failure: Exception | None = None

    def answer(self, reply: Any) -> None:
        self.reply = reply
        self.gate.release()

    def fail(self, failure: Exception) -> None:
        self.failure = failure
        self.gate.release()


class Session:
    """One slot of a session on a daemon. Emitting is safe from several threads."""

    def __init__(self, address: str, token: str, name: str = "", timeout: float = 10.0):
        from .. import __version__

        if not address.startswith("unix:") and not address.rpartition(":")[2].isdigit():
            raise ValueError(
                f"a daemon's address is HOST:PORT or unix:PATH, not {address!r} "
                "(from $GRADWIRE_ADDRESS, where none was given to connect())"
            )
        self.address = address
        self.metadata = (("authorization", f"Bearer {token}"),) if token else ()
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.channel = grpc.insecure_channel(address, options)
        self.client = f"python {__version__}"
        self.released_command = 0
        self.synchronize_command = 0
        hello = self._unary(
            "Hello",
            session_pb2.HelloRequest(protocol_min=1, protocol_max=1, client=self.client),
            session_pb2.HelloResponse,
            timeout,
        )
        if hello.HasField("error"):
            raise errors.decode(hello.error)
        self.server: str = hello.server
        self.catalog_hash: str = hello.catalog_hash
        self.limits = hello.limits
        self.inline_bytes = int(hello.limits.inline_bytes) or 64 << 10
        self.frame_commands = min(FRAME_COMMANDS, int(hello.limits.frame_commands) or 1 << 30)
        opened = self._unary(
            "Open",
            session_pb2.OpenRequest(name=name, client=self.client),
            session_pb2.OpenResponse,
            timeout,
        )
        self.key = opened.key
        self.devices: list[str] = list(opened.devices) or ["cpu"]
        self.slot_bits = int(opened.key.slot) << 48

        self.lock = threading.RLock()
        self.sites = Sites()
        self.heads: list[int] = []
        self.ids: list[int] = []
        self.tape = bytearray()
        self.applied = int(opened.applied)
        self.first = self.applied + 1
        self.acknowledged = 0
        self.waiters: dict[int, Waiter] = {}
        self.broken: Exception | None = None
        self.closed = False
        self.forgotten_code: Any = None  # called with ids of code that no graph holds any more
        self.events: list[Any] = []  # proto Errors that nobody has read yet
        self._credit = threading.Condition(self.lock)
        self._wake = threading.Event()
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._outgoing.put(session_pb2.StreamRequest(start=self.key).SerializeToString())
        self._stream = self.channel.stream_stream(
            PREFIX + "Stream",
            request_serializer=None,
            response_deserializer=frame_pb2.Replies.FromString,
        )(iter(self._outgoing.get, None), metadata=self.metadata)
        self._reader = threading.Thread(target=self._read, daemon=True, name="gradwire-replies")
        self._reader.start()
        self._flusher = threading.Thread(
            target=self._flush_late, daemon=True, name="gradwire-flush"
        )
        self._flusher.start()

    # Commands.

    def new_id(self) -> int:
        return self.slot_bits | next(_numbers)

    def emit(self, head: int, ids: Sequence[int], tape: bytes | None) -> None:
        """Appends a command; `head` is complete."""
        with self.lock:
            heads = self.heads
            heads.append(head)
            self.ids += ids
            if tape is not None:
                self.tape += tape
            count = len(heads)
            if count == 1:
                self._wake.set()
            if (
                count >= self.frame_commands
                or len(self.tape) >= FRAME_TAPE
                or len(self.ids) >= FRAME_IDS
            ):
                self._flush()
            elif len(released) >= RELEASE_BATCH:
                self._append_releases()

    def ask(self, head: int, ids: Sequence[int], tape: bytes | None) -> Waiter:
        """Appends a command that has a reply; wait() gets it."""
        waiter = Waiter()
        with self.lock:
            self._check()
            self.waiters[self.first + len(self.heads)] = waiter
            self.emit(head, ids, tape)
        return waiter

    def wait(self, waiter: Waiter) -> Any:
        """The Reply a waiter was made for. Raises what the server answered instead."""
        if waiter.reply is None and waiter.failure is None:
            with self.lock:
                self._flush()
            try:
                waiter.gate.acquire()
            except KeyboardInterrupt:
                self.cancel()
                raise
        if waiter.failure is not None:
            raise waiter.failure
        reply = waiter.reply
        if reply.HasField("error"):
            self.forget(reply.error)
            raise errors.decode(reply.error)
        self.raise_refused()
        return reply

    def raise_refused(self) -> None:
        """Raises what the daemon refused (a backward, an in-place op, a step) since the last
        read: in torch the call itself would have raised."""
        if self.events:
            refused, self.events = self.events, []
            error = errors.decode(refused[0])
            if len(refused) > 1:
                more = f"\n({len(refused) - 1} later commands were refused too)"
                error.args = (str(error.args[0]) + more,)
            raise error

    def forget(self, error: Any) -> None:
        """An error that somebody has been told of is not reported again."""
        if self.events:
            self.events = [e for e in self.events if e.number != error.number]

    def flush(self) -> None:
        with self.lock:
            self._flush()

    def cancel(self) -> int:
        """Drops what the daemon has queued and not run; what was committed stays."""
        request = session_pb2.CancelRequest(key=self.key)
        response = self._unary("Cancel", request, session_pb2.CancelResponse, 5.0)
        return int(response.cancelled)

    # Ends.

    def settle(self, timeout: float) -> None:
        """Waits a while for what was sent, so that an error in it is told and not dropped."""
        with self.lock:
            if self.closed or self.broken is not None:
                return
            waiter = self.ask(frame.head(self.synchronize_command, 0, False, 0, 0), [], None)
            self._flush()
        waiter.gate.acquire(timeout=timeout)

    def close(self, timeout: float = 5.0) -> list[Any]:
        """Sends what is left, ends the session, returns the errors that were never read."""
        with self.lock:
            if self.closed:
                return []
            self.closed = True
            healthy = self.broken is None
            if healthy:
                self._append_releases()
                self._flush()
        self._outgoing.put(None)
        self._wake.set()
        self._reader.join(timeout)  # what it still brings may be a refusal
        unread: list[Any] = list(self.events)
        if healthy:
            try:
                response = self._unary(
                    "Close",
                    session_pb2.CloseRequest(key=self.key, end_session=True),
                    session_pb2.CloseResponse,
                    timeout,
                )
                seen = {e.number for e in unread}
                unread += [e for e in response.unread if not e.number or e.number not in seen]
            except Exception:
                pass
        self._stream.cancel()
        self._fail(errors.ConnectionLost("the connection is closed"))
        self.channel.close()
        return unread

    # Inside.

    def _unary(self, method: str, request: Any, response: Any, timeout: float) -> Any:
        call = self.channel.unary_unary(
            PREFIX + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        deadline = time.monotonic() + timeout
        while True:
            left = max(deadline - time.monotonic(), 0.01)
            try:
                return call(request, metadata=self.metadata, timeout=left)
            except grpc.RpcError as error:
                # A daemon that is just starting refuses for a moment; one that is not there should
                # not cost the whole timeout.
                starting = method == "Hello" and error.code() is grpc.StatusCode.UNAVAILABLE
                if starting and time.monotonic() < deadline - timeout + CONNECT_SECONDS:
                    time.sleep(0.05)
                    continue
                if method in ("Hello", "Open"):
                    self.channel.close()
                    raise errors.from_connect(error, self.address) from None
                raise errors.from_rpc(error, self.address) from None

    def _check(self) -> None:
        if self.broken is not None:
            raise type(self.broken)(*self.broken.args)

    def _append_releases(self) -> None:
        while released:
            ids: list[int] = []
            try:
                while len(ids) < RELEASE_MOST:
                    ids.append(released.popleft())
            except IndexError:
                pass
            self.heads.append(self.released_command | len(ids) << 24)
            self.ids += ids

    def _flush(self) -> None:
        if released:
            self._append_releases()
        if not self.heads:
            return
        self._check()
        sites = self.sites
        unsent, sites.unsent = sites.unsent, []
        raw = frame.request(
            self.first, self.heads, self.ids, bytes(self.tape), unsent, self.acknowledged
        )
        self.first += len(self.heads)
        self.heads, self.ids, self.tape = [], [], bytearray()
        self._outgoing.put(raw)
        while self.first - self.applied > CREDIT and self.broken is None:
            self._credit.wait(1.0)

    def _flush_late(self) -> None:
        while not self.closed and self.broken is None:
            self._wake.wait()
            self._wake.clear()
            time.sleep(FLUSH_SECONDS)
            try:
                with self.lock:
                    self._flush()
            except Exception:
                return  # the next command says so

    def _read(self) -> None:
        try:
            for replies in self._stream:
                self._take(replies)
            self._fail(errors.ConnectionLost(f"{self.address} closed the stream"))
        except grpc.RpcError as error:
            self._fail(errors.from_rpc(error, self.address))
        except Exception as error:
            self._fail(errors.ConnectionLost(f"{self.address}: {error}"))

    def _take(self, replies: Any) -> None:
        for reply in replies.replies:
            if reply.number:
                waiter = self.waiters.pop(reply.number, None)
                if waiter is not None:
                    waiter.answer(reply)
                elif reply.HasField("error"):
                    self.events.append(reply.error)
            elif reply.HasField("event"):
                if reply.event.HasField("error"):
                    self.events.append(reply.event.error)
                elif reply.event.code and self.forgotten_code is not None:
                    self.forgotten_code(reply.event.code)
        if replies.first and replies.replies:
            self.acknowledged = replies.first + len(replies.replies) - 1
        if replies.applied > self.applied:
            behind = self.first - self.applied > CREDIT
            self.applied = replies.applied
            if behind:
                with self._credit:
                    self._credit.notify_all()

    def _fail(self, error: Exception) -> None:
        with self.lock:
            if self.broken is None:
                if self.closed:
                    error = errors.ConnectionLost("the connection is closed")
                self.broken = error
            waiters, self.waiters = list(self.waiters.values()), {}
            self._credit.notify_all()
        for waiter in waiters:
            waiter.fail(error)
        self._wake.set()
