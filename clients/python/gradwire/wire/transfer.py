"""Bulk data: uploads and downloads of whole tensors, on a channel of their own."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import google_crc32c
import grpc
import numpy as np

from ..v1 import session_pb2
from . import errors
from .frame import varint
from .session import Session

CHUNK = 4 << 20
PREFIX = "/gradwire.v1.Data/"


class Transfers:
    """Uploads run behind the caller, two at a time; downloads where they are asked for."""

    def __init__(self, session: Session):
        self.session = session
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.pending: set[Future[None]] = set()
        self.failure: Exception | None = None
        self.channel = grpc.insecure_channel(
            session.address,
            [
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
                ("grpc.use_local_subchannel_pool", 1),
            ],
        )
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="gradwire-upload")
        self.chunk = min(CHUNK, int(session.limits.frame_bytes or CHUNK) - 1024)

    def upload(self, data: np.ndarray) -> int:
        """Starts sending; `data` is contiguous and nobody writes to it. Returns the transfer."""
        transfer = next(self.numbers)
        future = self.pool.submit(self._send, transfer, data)
        with self.lock:
            self.pending.add(future)
        future.add_done_callback(self._done)
        return transfer

    def download(self, transfer: int, total: int) -> bytearray:
        """The bytes of a value that was too large for a reply."""
        out = bytearray(total)
        view = memoryview(out)
        request = session_pb2.DownloadRequest(
            key=self.session.key, transfer=transfer, chunk_bytes=self.chunk
        )
        call = self.channel.unary_stream(
            PREFIX + "Download",
            request_serializer=session_pb2.DownloadRequest.SerializeToString,
            response_deserializer=session_pb2.DownloadChunk.FromString,
        )
        received = 0
        try:
            for chunk in call(request, metadata=self.session.metadata):
                if chunk.HasField("error"):
                    raise errors.decode(chunk.error)
                data = chunk.data
                if google_crc32c.value(data) != chunk.crc32c:
                    raise errors.ConnectionLost(f"download: bad checksum at {chunk.offset}")
                view[chunk.offset : chunk.offset + len(data)] = data
                received += len(data)
        except grpc.RpcError as error:
            raise errors.from_rpc(error, self.session.address) from None
        if received != total:
            raise errors.ConnectionLost(f"download: {received} bytes of {total} arrived")
        return out

    def close(self, timeout: float = 60.0) -> None:
        """Waits for uploads under way."""
        self.pool.shutdown(wait=True)
        self.channel.close()

    def _send(self, transfer: int, data: np.ndarray) -> None:
        call = self.channel.stream_unary(
            PREFIX + "Upload",
            request_serializer=None,
            response_deserializer=session_pb2.UploadResponse.FromString,
        )
        try:
            response = call(self._chunks(transfer, data), metadata=self.session.metadata)
        except grpc.RpcError as error:
            raise errors.from_rpc(error, self.session.address) from None
        if response.HasField("error"):
            raise errors.decode(response.error)

    def _chunks(self, transfer: int, data: np.ndarray) -> Iterator[bytes]:
        view: Any = data.reshape(-1).view(np.uint8) if data.size else np.empty(0, np.uint8)
        total = len(view)
        start = session_pb2.UploadChunk(key=self.session.key, transfer=transfer, total=total)
        header = start.SerializeToString()
        for offset in range(0, max(total, 1), self.chunk):
            part = view[offset : offset + self.chunk]
            yield b"".join(
                (
                    header,
                    b"\x20" + varint(offset),
                    b"\x2d" + google_crc32c.value(part).to_bytes(4, "little"),
                    b"\x32" + varint(len(part)),
                    part,
                )
            )
            header = b""

    def _done(self, future: Future[None]) -> None:
        with self.lock:
            self.pending.discard(future)
        error = future.exception()
        if isinstance(error, Exception):
            self.failure = error
