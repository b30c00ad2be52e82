from gradwire.v1 import catalog_pb2 as _catalog_pb2
from gradwire.v1 import error_pb2 as _error_pb2
from gradwire.v1 import frame_pb2 as _frame_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HelloRequest(_message.Message):
    __slots__ = ("protocol_min", "protocol_max", "client")
    PROTOCOL_MIN_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MAX_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    protocol_min: int
    protocol_max: int
    client: str
    def __init__(self, protocol_min: _Optional[int] = ..., protocol_max: _Optional[int] = ..., client: _Optional[str] = ...) -> None: ...

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
    def __init__(self, protocol: _Optional[int] = ..., server: _Optional[str] = ..., catalog_hash: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ...) -> None: ...

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
    def __init__(self, frame_bytes: _Optional[int] = ..., frame_commands: _Optional[int] = ..., inline_bytes: _Optional[int] = ..., chunk_bytes: _Optional[int] = ..., rank: _Optional[int] = ...) -> None: ...

class OpenRequest(_message.Message):
    __slots__ = ("name", "client")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    client: str
    def __init__(self, name: _Optional[str] = ..., client: _Optional[str] = ...) -> None: ...

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
    def __init__(self, session: _Optional[int] = ..., slot: _Optional[int] = ..., secret: _Optional[bytes] = ..., epoch: _Optional[int] = ...) -> None: ...

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
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ..., devices: _Optional[_Iterable[str]] = ..., applied: _Optional[int] = ..., lease_seconds: _Optional[float] = ...) -> None: ...

class AttachRequest(_message.Message):
    __slots__ = ("key", "new_slot")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_SLOT_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    new_slot: bool
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ..., new_slot: _Optional[bool] = ...) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("key", "end_session")
    KEY_FIELD_NUMBER: _ClassVar[int]
    END_SESSION_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    end_session: bool
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ..., end_session: _Optional[bool] = ...) -> None: ...

class CloseResponse(_message.Message):
    __slots__ = ("unread",)
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    unread: _containers.RepeatedCompositeFieldContainer[_error_pb2.Error]
    def __init__(self, unread: _Optional[_Iterable[_Union[_error_pb2.Error, _Mapping]]] = ...) -> None: ...

class StreamRequest(_message.Message):
    __slots__ = ("start", "frame")
    START_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    start: SlotKey
    frame: _frame_pb2.Frame
    def __init__(self, start: _Optional[_Union[SlotKey, _Mapping]] = ..., frame: _Optional[_Union[_frame_pb2.Frame, _Mapping]] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("key", "commands")
    KEY_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    commands: _containers.RepeatedCompositeFieldContainer[_frame_pb2.Command]
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ..., commands: _Optional[_Iterable[_Union[_frame_pb2.Command, _Mapping]]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("cancelled",)
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    cancelled: int
    def __init__(self, cancelled: _Optional[int] = ...) -> None: ...

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
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ..., transfer: _Optional[int] = ..., total: _Optional[int] = ..., offset: _Optional[int] = ..., crc32c: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class UploadResponse(_message.Message):
    __slots__ = ("received", "error")
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    received: int
    error: _error_pb2.Error
    def __init__(self, received: _Optional[int] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ...) -> None: ...

class UploadStatusRequest(_message.Message):
    __slots__ = ("key", "transfer")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    key: SlotKey
    transfer: int
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ..., transfer: _Optional[int] = ...) -> None: ...

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
    def __init__(self, key: _Optional[_Union[SlotKey, _Mapping]] = ..., transfer: _Optional[int] = ..., offset: _Optional[int] = ..., chunk_bytes: _Optional[int] = ...) -> None: ...

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
    def __init__(self, offset: _Optional[int] = ..., total: _Optional[int] = ..., crc32c: _Optional[int] = ..., data: _Optional[bytes] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ...) -> None: ...

class ListOpsRequest(_message.Message):
    __slots__ = ("prefix",)
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class ListOpsResponse(_message.Message):
    __slots__ = ("ops", "catalog_hash")
    OPS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_HASH_FIELD_NUMBER: _ClassVar[int]
    ops: _containers.RepeatedCompositeFieldContainer[_catalog_pb2.Op]
    catalog_hash: str
    def __init__(self, ops: _Optional[_Iterable[_Union[_catalog_pb2.Op, _Mapping]]] = ..., catalog_hash: _Optional[str] = ...) -> None: ...
