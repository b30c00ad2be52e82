from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf.internal import containers as _containers

from gradwire.v1 import catalog_pb2 as _catalog_pb2
from gradwire.v1 import error_pb2 as _error_pb2
from gradwire.v1 import frame_pb2 as _frame_pb2

DESCRIPTOR: _descriptor.FileDescriptor

class HelloRequest(_message.Message):
    __slots__ = ("protocol_min", "protocol_max", "client")
    PROTOCOL_MIN_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MAX_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    protocol_min: int
    protocol_max: int
    client: str
    def __init__(
        self,
        protocol_min: int | None = ...,
        protocol_max: int | None = ...,
        client: str | None = ...,
    ) -> None: ...

class HelloResponse(_message.Message):
    __slots__ = ("protocol", "server", "catalog_hash", "features", "limits", "error")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    CATALOG_HASH_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    server: str
    catalog_hash: str
    features: _containers.RepeatedScalarFieldContainer[str]
    limits: Limits
    error: _error_pb2.Error
    def __init__(
        self,
        protocol: int | None = ...,
        server: str | None = ...,
        catalog_hash: str | None = ...,
        features: _Iterable[str] | None = ...,
        limits: Limits | _Mapping | None = ...,
        error: _error_pb2.Error | _Mapping | None = ...,
    ) -> None: ...

class Limits(_message.Message):
    __slots__ = ("frame_bytes", "frame_commands", "inline_bytes", "chunk_bytes", "rank")
    FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
    FRAME_COMMANDS_FIELD_NUMBER: _ClassVar[int]
    INLINE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    frame_bytes: int
    frame_commands: int
    inline_bytes: int
    chunk_bytes: int
    rank: int
    def __init__(
        self,
        frame_bytes: int | None = ...,
        frame_commands: int | None = ...,
        inline_bytes: int | None = ...,
        chunk_bytes: int | None = ...,
        rank: int | None = ...,
    ) -> None: ...

class OpenRequest(_message.Message):
    __slots__ = ("name", "client")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    client: str
    def __init__(self, name: str | None = ..., client: str | None = ...) -> None: ...

class SlotKey(_message.Message):
    __slots__ = ("session", "slot", "secret", "epoch")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    session: int
    slot: int
    secret: bytes
    epoch: int
    def __init__(
        self,
        session: int | None = ...,
        slot: int | None = ...,
        secret: bytes | None = ...,
        epoch: int | None = ...,
    ) -> None: ...

class OpenResponse(_message.Message):
    __slots__ = ("key", "devices", "applied", "lease_seconds")
    KEY_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    LEASE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    devices: _containers.RepeatedScalarFieldContainer[str]
    applied: int
    lease_seconds: float
    def __init__(
        self,
        key: SlotKey | _Mapping | None = ...,
        devices: _Iterable[str] | None = ...,
        applied: int | None = ...,
        lease_seconds: float | None = ...,
    ) -> None: ...

class AttachRequest(_message.Message):
    __slots__ = ("key", "new_slot")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_SLOT_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    new_slot: bool
    def __init__(
        self, key: SlotKey | _Mapping | None = ..., new_slot: bool | None = ...
    ) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("key", "end_session")
    KEY_FIELD_NUMBER: _ClassVar[int]
    END_SESSION_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    end_session: bool
    def __init__(
        self, key: SlotKey | _Mapping | None = ..., end_session: bool | None = ...
    ) -> None: ...

class CloseResponse(_message.Message):
    __slots__ = ("unread",)
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    unread: _containers.RepeatedCompositeFieldContainer[_error_pb2.Error]
    def __init__(self, unread: _Iterable[_error_pb2.Error | _Mapping] | None = ...) -> None: ...

class StreamRequest(_message.Message):
    __slots__ = ("start", "frame")
    START_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    start: SlotKey
    frame: _frame_pb2.Frame
    def __init__(
        self,
        start: SlotKey | _Mapping | None = ...,
        frame: _frame_pb2.Frame | _Mapping | None = ...,
    ) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("key", "commands")
    KEY_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    commands: _containers.RepeatedCompositeFieldContainer[_frame_pb2.Command]
    def __init__(
        self,
        key: SlotKey | _Mapping | None = ...,
        commands: _Iterable[_frame_pb2.Command | _Mapping] | None = ...,
    ) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    def __init__(self, key: SlotKey | _Mapping | None = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("cancelled",)
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    cancelled: int
    def __init__(self, cancelled: int | None = ...) -> None: ...

class UploadChunk(_message.Message):
    __slots__ = ("key", "transfer", "total", "offset", "crc32c", "data")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    transfer: int
    total: int
    offset: int
    crc32c: int
    data: bytes
    def __init__(
        self,
        key: SlotKey | _Mapping | None = ...,
        transfer: int | None = ...,
        total: int | None = ...,
        offset: int | None = ...,
        crc32c: int | None = ...,
        data: bytes | None = ...,
    ) -> None: ...

class UploadResponse(_message.Message):
    __slots__ = ("received", "error")
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    received: int
    error: _error_pb2.Error
    def __init__(
        self, received: int | None = ..., error: _error_pb2.Error | _Mapping | None = ...
    ) -> None: ...

class UploadStatusRequest(_message.Message):
    __slots__ = ("key", "transfer")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    transfer: int
    def __init__(
        self, key: SlotKey | _Mapping | None = ..., transfer: int | None = ...
    ) -> None: ...

class DownloadRequest(_message.Message):
    __slots__ = ("key", "transfer", "offset", "chunk_bytes")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    transfer: int
    offset: int
    chunk_bytes: int
    def __init__(
        self,
        key: SlotKey | _Mapping | None = ...,
        transfer: int | None = ...,
        offset: int | None = ...,
        chunk_bytes: int | None = ...,
    ) -> None: ...

class DownloadChunk(_message.Message):
    __slots__ = ("offset", "total", "crc32c", "data", "error")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    offset: int
    total: int
    crc32c: int
    data: bytes
    error: _error_pb2.Error
    def __init__(
        self,
        offset: int | None = ...,
        total: int | None = ...,
        crc32c: int | None = ...,
        data: bytes | None = ...,
        error: _error_pb2.Error | _Mapping | None = ...,
    ) -> None: ...

class ListOpsRequest(_message.Message):
    __slots__ = ("prefix",)
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: str | None = ...) -> None: ...

class ListOpsResponse(_message.Message):
    __slots__ = ("ops", "catalog_hash")
    OPS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_HASH_FIELD_NUMBER: _ClassVar[int]
    ops: _containers.RepeatedCompositeFieldContainer[_catalog_pb2.Op]
    catalog_hash: str
    def __init__(
        self,
        ops: _Iterable[_catalog_pb2.Op | _Mapping] | None = ...,
        catalog_hash: str | None = ...,
    ) -> None: ...
