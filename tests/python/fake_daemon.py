"""A daemon in numpy, enough to test the client alone: protocol v1 over a real socket.

It applies commands one by one as proto/gradwire/v1 says, keeps tensors as arrays (views share
memory, as in the real one), poisons the outputs of what fails, and records what it was sent.
"""

from __future__ import annotations

import struct
import threading
from concurrent import futures
from typing import Any

import grpc
import numpy as np
from gradwire import _dtype
from gradwire._rows import MODULES, ROWS
from gradwire.v1 import error_pb2, frame_pb2, session_pb2, tensor_pb2

BY_NUMBER = {row.number: row for row in ROWS.values()}
TOKEN = "secret"


class Failure(Exception):
    def __init__(self, kind: int, message: str):
        super().__init__(message)
        self.kind = kind


class Poison:
    def __init__(self, error: Any):
        self.error = error


def read_tape(tape: bytes, at: int) -> tuple[list[Any], int]:
    count, at = tape[at], at + 1
    values = []
    for _ in range(count):
        value, at = read_value(tape, at)
        values.append(value)
    return values, at


def read_value(tape: bytes, at: int) -> tuple[Any, int]:
    tag, at = tape[at], at + 1
    if tag <= 2:
        return (None, False, True)[tag], at
    if tag == 3 or tag == 4:
        return struct.unpack_from("<q" if tag == 3 else "<d", tape, at)[0], at + 8
    if tag == 9:
        return _dtype.BY_NUMBER[tape[at]], at + 1
    (size,) = struct.unpack_from("<I", tape, at)
    at += 4
    if tag == 5:
        return tape[at : at + size].decode(), at + size
    if tag == 6:
        return bytes(tape[at : at + size]), at + size
    if tag == 8 or tag == 10:
        kind = "q" if tag == 8 else "d"
        return list(struct.unpack_from(f"<{size}{kind}", tape, at)), at + 8 * size
    assert tag == 7, tag
    values = []
    for _ in range(size):
        value, at = read_value(tape, at)
        values.append(value)
    return values, at


def bind(row: Any, ids: list[int], attributes: list[Any], find: Any) -> list[Any]:
    """Arguments in signature order, as the daemon binds them."""
    lists = [k for k in row.kinds if k in (3, 4)]
    lengths = []
    if len(lists) > 1:
        lengths, attributes = attributes[: len(lists)], attributes[len(lists) :]
    elif lists:
        lengths = [len(ids) - sum(k in (0, 1, 2, 5) for k in row.kinds)]
    values: list[Any] = []
    next_id = next_attribute = 0
    for kind, default in zip(row.kinds, row.defaults, strict=True):
        if kind in (3, 4):
            count = lengths.pop(0)
            values.append([find(i) for i in ids[next_id : next_id + count]])
            next_id += count
            continue
        if kind == 5:
            values.append(ids[next_id])
            next_id += 1
            continue
        if kind <= 1:
            values.append(find(ids[next_id]))
            next_id += 1
            continue
        given = attributes[next_attribute] if next_attribute < len(attributes) else default
        next_attribute += 1
        if kind == 2:
            id = ids[next_id]
            next_id += 1
            values.append(find(id) if id else given)
        else:
            values.append(given)
    assert next_id == len(ids), (row.name, ids)
    return values


def index_of(indices: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def cut(x: np.ndarray, sizes: list[int], dim: int) -> list[np.ndarray]:
    return list(np.split(x, np.cumsum(sizes)[:-1].tolist(), axis=dim))


def axis(dims: Any) -> Any:
    return None if not dims and dims != 0 else tuple(dims) if isinstance(dims, list) else dims


def divide(a: Any, b: Any) -> Any:
    kind = np.result_type(a, b)
    return np.true_divide(a, b, dtype=kind if kind.kind == "f" else np.float32)


OPS: dict[str, Any] = {
    "nn.functional.linear": lambda x, w, b: x @ w.T + (0 if b is None else b),
    "add": lambda a, b, alpha: a + b * alpha if alpha != 1 else a + b,
    "sub": lambda a, b, alpha: a - b * alpha if alpha != 1 else a - b,
    "mul": lambda a, b: a * b,
    "true_divide": divide,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "abs": np.abs,
    "relu": lambda a: np.maximum(a, 0),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_not": lambda a: ~a,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
    "matmul": lambda a, b: a @ b,
    "mm": lambda a, b: a @ b,
    "sum": lambda a, dim, keep, kind: a.sum(
        axis(dim),
        keepdims=bool(keep),
        dtype=kind.numpy if kind else a.dtype if a.dtype.kind == "f" else "i8",
    ),
    "mean": lambda a, dim, keep, kind: a.mean(axis(dim), keepdims=bool(keep)),
    "any": lambda a, dim, keep: a.any(axis(dim), keepdims=bool(keep)),
    "all": lambda a, dim, keep: a.all(axis(dim), keepdims=bool(keep)),
    "view": lambda a, size: a.reshape(size),
    "reshape": lambda a, size: a.reshape(size),
    "permute": lambda a, dims: a.transpose(dims),
    "transpose": lambda a, i, j: a.swapaxes(i, j) if a.ndim else a,
    "expand": lambda a, size: np.broadcast_to(a, [
        a.shape[i - len(size)] if n == -1 else n for i, n in enumerate(size)
    ]),
    "squeeze": lambda a, dim: a.squeeze() if dim is None else a.squeeze(tuple(dim)),
    "unsqueeze": np.expand_dims,
    "select": lambda a, dim, i: a[(slice(None),) * (dim % a.ndim) + (i, ...)],
    "slice": lambda a, dim, start, end, step: a[
        (slice(None),) * (dim % a.ndim) + (slice(start, end, step),)
    ],
    "index": lambda a, indices: a[index_of(indices)],
    "cat": lambda xs, dim: np.concatenate(xs, dim),
    "stack": lambda xs, dim: np.stack(xs, dim),
    "split_with_sizes": cut,
    "unbind": lambda a, dim: [a.take(i, dim) for i in range(a.shape[dim])],
    "clone": lambda a: a.copy(),
    "contiguous": np.ascontiguousarray,
    "detach": lambda a: a.view(),
    "to": lambda a, kind: a.astype(kind.numpy),
    "full": lambda size, value, kind: np.full(size, value, kind.numpy),
    "arange": lambda start, end, step, kind: np.arange(start, end, step).astype(kind.numpy),
    "session.constant": lambda data, kind, shape, inference=False: np.frombuffer(data, kind.numpy)
    .reshape(shape)
    .copy(),
    "session.alias": lambda a: a,
}  # fmt: skip


class FakeDaemon:
    def __init__(self, inline_bytes: int = 4096):
        self.inline_bytes = inline_bytes
        self.tensors: dict[int, Any] = {}
        self.commands: list[tuple[str, int, list[int], list[int], list[Any], str]] = []
        self.frames: list[Any] = []
        self.uploads: dict[int, bytes] = {}
        self.downloads: dict[int, bytes] = {}
        self.arrived = threading.Condition()
        self.next_reply = 1
        self.applied = 0
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        methods = {
            "Hello": self._unary(self.hello, session_pb2.HelloRequest),
            "Open": self._unary(self.open, session_pb2.OpenRequest),
            "Close": self._unary(self.close, session_pb2.CloseRequest),
            "Stream": grpc.stream_stream_rpc_method_handler(
                self.stream,
                session_pb2.StreamRequest.FromString,
                frame_pb2.Replies.SerializeToString,
            ),
        }
        data = {
            "Upload": grpc.stream_unary_rpc_method_handler(
                self.upload,
                session_pb2.UploadChunk.FromString,
                session_pb2.UploadResponse.SerializeToString,
            ),
            "Download": grpc.unary_stream_rpc_method_handler(
                self.download,
                session_pb2.DownloadRequest.FromString,
                session_pb2.DownloadChunk.SerializeToString,
            ),
        }
        for service, handlers in (("Gradwire", methods), ("Data", data)):
            handler = grpc.method_handlers_generic_handler(f"gradwire.v1.{service}", handlers)
            self.server.add_generic_rpc_handlers((handler,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def stop(self) -> None:
        self.server.stop(0).wait()

    @staticmethod
    def _unary(function: Any, request: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            function, request.FromString, lambda m: m.SerializeToString()
        )

    def _check(self, context: Any) -> None:
        if dict(context.invocation_metadata()).get("authorization") != f"Bearer {TOKEN}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no valid token")

    def hello(self, request: Any, context: Any) -> Any:
        limits = session_pb2.Limits(
            frame_bytes=4 << 20, frame_commands=4096, inline_bytes=self.inline_bytes
        )
        return session_pb2.HelloResponse(protocol=1, server="fake", limits=limits)

    def open(self, request: Any, context: Any) -> Any:
        self._check(context)
        key = session_pb2.SlotKey(session=7, slot=1, secret=b"s" * 32, epoch=1)
        return session_pb2.OpenResponse(key=key, devices=["cpu"])

    def close(self, request: Any, context: Any) -> Any:
        return session_pb2.CloseResponse()

    def upload(self, chunks: Any, context: Any) -> Any:
        self._check(context)
        parts, transfer = [], 0
        for chunk in chunks:
            transfer = transfer or chunk.transfer
            parts.append(chunk.data)
        with self.arrived:
            self.uploads[transfer] = b"".join(parts)
            self.arrived.notify_all()
        return session_pb2.UploadResponse(received=len(self.uploads[transfer]))

    def download(self, request: Any, context: Any) -> Any:
        import google_crc32c

        data = self.downloads[request.transfer]
        for at in range(0, len(data), 1000):
            part = data[at : at + 1000]
            yield session_pb2.DownloadChunk(
                offset=at, total=len(data), data=part, crc32c=google_crc32c.value(part)
            )

    def stream(self, requests: Any, context: Any) -> Any:
        self._check(context)
        sites: dict[int, str] = {}
        assert next(requests).start.session == 7
        for request in requests:
            frame = request.frame
            self.frames.append(frame)
            assert frame.first == self.applied + 1, (frame.first, self.applied)
            sites.update((s.id, s.text) for s in frame.sites)
            ids, tape, at_id, at_tape = list(frame.ids), frame.tape, 0, 0
            replies = []
            for i, head in enumerate(frame.heads):
                row = BY_NUMBER[head & 0xFFFF]
                form, has_tape = head >> 16 & 15, head >> 20 & 1
                inputs, outputs, site = head >> 24 & 4095, head >> 36 & 4095, head >> 48
                attributes: list[Any] = []
                if has_tape:
                    attributes, at_tape = read_tape(tape, at_tape)
                mine = ids[at_id : at_id + inputs]
                theirs = ids[at_id + inputs : at_id + inputs + outputs]
                at_id += inputs + outputs
                where = sites.get(site, "")
                self.commands.append((row.name, form, mine, theirs, attributes, where))
                number = frame.first + i
                reply = self.apply(row, form, mine, theirs, list(attributes), where, number)
                if reply is not None:
                    reply.number = number
                    replies.append(reply)
            assert at_id == len(ids) and at_tape == len(tape)
            self.applied = frame.first + len(frame.heads) - 1
            yield frame_pb2.Replies(
                applied=self.applied, durable=self.applied, replies=replies, first=self.next_reply
            )
            self.next_reply += len(replies)

    def apply(self, row: Any, form: int, inputs: Any, outputs: Any, attributes: Any, where: str,
              number: int) -> Any:  # fmt: skip
        if row.name == "session.release":
            for id in inputs:
                self.tensors.pop(id, None)
            return None
        try:
            return self._apply(row, form, inputs, outputs, attributes)
        except Failure as failure:
            error = error_pb2.Error(
                kind=failure.kind, message=str(failure), op=row.name, number=number, site=where
            )
        except Exception as failure:
            error = error_pb2.Error(
                kind=1, message=f"[{row.name}] {failure}", op=row.name, number=number, site=where
            )
        for id in outputs:
            self.tensors[id] = Poison(error)
        if row.name in ("session.read", "session.meta"):
            return frame_pb2.Reply(error=error)
        return None

    def _find(self, id: int) -> Any:
        if id == 0:
            return None
        if id not in self.tensors:
            raise Failure(1, f"tensor id {id} was released or never existed")
        return self.tensors[id]

    def _apply(self, row: Any, form: int, inputs: Any, outputs: Any, attributes: Any) -> Any:
        if row.name in ("session.read", "session.meta"):
            found = [self._find(i) for i in inputs]
            for value in found:
                if isinstance(value, Poison):
                    return frame_pb2.Reply(error=value.error)
            if row.name == "session.meta":
                return frame_pb2.Reply(metas=frame_pb2.Metas(metas=map(self._meta, found)))
            return frame_pb2.Reply(values=frame_pb2.Values(values=map(self._value, found)))
        values = bind(row, inputs, attributes, self._find)
        if row.name == "session.upload":
            transfer, kind, shape, _ = values
            with self.arrived:
                self.arrived.wait_for(lambda: transfer in self.uploads, 10)
                data = self.uploads.pop(transfer)
            self.tensors[outputs[0]] = np.frombuffer(data, kind.numpy).reshape(shape).copy()
            return None
        if row.name == "session.grad":
            return frame_pb2.Reply(metas=frame_pb2.Metas(metas=[tensor_pb2.TensorMeta()]))
        if row.name == "session.optimizer_state":
            metas = [tensor_pb2.TensorMeta() for _ in outputs]
            return frame_pb2.Reply(metas=frame_pb2.Metas(metas=metas))
        if row.name == "session.synchronize":
            return frame_pb2.Reply(metas=frame_pb2.Metas())
        if row.name.startswith("session.") and row.name not in OPS:
            return None
        if row.name == "copy_":
            values[0][...] = values[1]
            return None
        if row.name == "fill_":
            values[0][...] = values[1]
            return None
        if row.name == "index_put_":
            values[0][index_of(values[2])] = values[1]
            return None
        if row.name in MODULES:
            self._make_state(row, values, outputs)
            return None
        if row.name.startswith("optim."):
            return None
        for value in values:
            if isinstance(value, Poison):
                for id in outputs:
                    self.tensors[id] = value
                return None
        made = OPS[row.name](*values)
        if form == 1:
            values[0][...] = made
        elif isinstance(made, (list, tuple)):
            self.tensors.update(zip(outputs, made, strict=True))
        elif form == 2:
            self.tensors[outputs[0]][...] = made
        else:
            self.tensors[outputs[0]] = np.asarray(made)
        return None

    def _make_state(self, row: Any, values: list[Any], outputs: list[int]) -> None:
        """A module's state: only its sizes matter here."""
        named = dict(zip(row.names, values, strict=True))
        kind = named["dtype"].numpy
        if row.name == "nn.Linear":
            shapes: Any = [(named["out_features"], named["in_features"]), (named["out_features"],)]
        elif row.name == "nn.Conv2d":
            channels = named["in_channels"] // named["groups"]
            shapes = [
                (named["out_channels"], channels, *named["kernel_size"]),
                (named["out_channels"],),
            ]
        elif row.name == "nn.BatchNorm2d":
            shapes = [(named["num_features"],)] * 4 + [()]
        elif row.name == "nn.Embedding":
            shapes = [(named["num_embeddings"], named["embedding_dim"])]
        else:
            shapes = [tuple(named["normalized_shape"])] * 2
        module = MODULES[row.name]
        names = [*module["parameters"], *module["buffers"]]
        if named.get("bias") is False:
            names, shapes = names[:1], shapes[:1]
        if named.get("affine") is False:
            names, shapes = names[2:], shapes[2:]
        if named.get("track_running_stats") is False:
            names, shapes = names[:-3], shapes[:-3]
        draw = np.random.default_rng(0)
        for id, name, shape in zip(outputs, names, shapes, strict=True):
            values_of = draw.random(shape).astype(kind)
            self.tensors[id] = np.zeros(shape, "i8") if name.startswith("num_") else values_of

    def _meta(self, value: np.ndarray) -> Any:
        return tensor_pb2.TensorMeta(
            dtype=_dtype.from_numpy_dtype(value.dtype).number,
            shape=value.shape,
            strides=[s // value.itemsize for s in value.strides],
            device="cpu",
            is_leaf=True,
            defined=True,
        )

    def _value(self, value: np.ndarray) -> Any:
        data = value.tobytes()
        made = tensor_pb2.TensorValue(meta=self._meta(value), bytes=len(data))
        if len(data) > self.inline_bytes:
            made.transfer = len(self.downloads) + 1
            self.downloads[made.transfer] = data
        else:
            made.data = data
        return made
