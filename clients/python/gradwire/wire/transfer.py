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

    def upload(self, data: np.ndarray, owned: bool) -> int:
        """Sends contiguous data: behind the caller when nobody else writes to it, else at once,
        which costs less than a copy. Returns the transfer.
        """
        transfer = next(self.numbers)
        if not owned:
            self._send(transfer, data)
            return transfer
        future = self.pool.submit(self._send, transfer, data)
        with self.lock:
            self.pending.add(future)
        future.add_done_callback(self._done)
        return transfer

    def download(self, transfer: int, total: int) -> np.ndarray:
        """The bytes of a value that was too large for a reply."""
        out = np.empty(total, np.uint8)
        request = session_pb2.DownloadRequest(
            key=self.session.key, transfer=transfer, chunk_bytes=self.chunk
        )
        call = self.channel.unary_stream(
            PREFIX + "Download",
            request_serializer=session_pb2.DownloadRequest.SerializeToString,
            response_deserializer=None,
        )
        received = 0
        try:
            for raw in call(request, metadata=self.session.metadata):
                offset, checksum, data = _read_chunk(raw)
                if google_crc32c.value(data) != checksum:
                    raise errors.ConnectionLost(f"download: bad checksum at {offset}")
                out[offset : offset + len(data)] = data
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


def _read_chunk(raw: bytes) -> tuple[int, int, np.ndarray]:
    """Offset, checksum and data of a DownloadChunk, its data in place. Raises its error."""
    at = offset = checksum = 0
    while at < len(raw):
        tag, at = raw[at], at + 1
        if tag == 0x1D:
            checksum, at = int.from_bytes(raw[at : at + 4], "little"), at + 4
            continue
        value = shift = 0
        while True:
            byte, at = raw[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if tag == 0x08:
            offset = value
        elif tag == 0x22 and at + value == len(raw):
            return offset, checksum, np.frombuffer(raw, np.uint8, value, at)
        elif tag != 0x10:
            break
    chunk = session_pb2.DownloadChunk.FromString(raw)
    if chunk.HasField("error"):
        raise errors.decode(chunk.error)
    return chunk.offset, chunk.crc32c, np.frombuffer(chunk.data, np.uint8)
