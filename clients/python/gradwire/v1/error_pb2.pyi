from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_KIND_UNSPECIFIED: _ClassVar[ErrorKind]
    RUNTIME_ERROR: _ClassVar[ErrorKind]
    TYPE_ERROR: _ClassVar[ErrorKind]
    VALUE_ERROR: _ClassVar[ErrorKind]
    INDEX_ERROR: _ClassVar[ErrorKind]
    NOT_IMPLEMENTED_ERROR: _ClassVar[ErrorKind]
    OUT_OF_MEMORY_ERROR: _ClassVar[ErrorKind]
    LINALG_ERROR: _ClassVar[ErrorKind]
    CANCELLED_ERROR: _ClassVar[ErrorKind]
    INTERNAL_ERROR: _ClassVar[ErrorKind]
    ZERO_DIVISION_ERROR: _ClassVar[ErrorKind]
    KEY_ERROR: _ClassVar[ErrorKind]
    CONNECTION_ERROR: _ClassVar[ErrorKind]
    PERMISSION_ERROR: _ClassVar[ErrorKind]
ERROR_KIND_UNSPECIFIED: ErrorKind
RUNTIME_ERROR: ErrorKind
TYPE_ERROR: ErrorKind
VALUE_ERROR: ErrorKind
INDEX_ERROR: ErrorKind
NOT_IMPLEMENTED_ERROR: ErrorKind
OUT_OF_MEMORY_ERROR: ErrorKind
LINALG_ERROR: ErrorKind
CANCELLED_ERROR: ErrorKind
INTERNAL_ERROR: ErrorKind
ZERO_DIVISION_ERROR: ErrorKind
KEY_ERROR: ErrorKind
CONNECTION_ERROR: ErrorKind
PERMISSION_ERROR: ErrorKind

class Error(_message.Message):
    __slots__ = ("kind", "message", "op", "number", "slot", "site")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    kind: ErrorKind
    message: str
    op: str
    number: int
    slot: int
    site: str
    def __init__(self, kind: _Optional[_Union[ErrorKind, str]] = ..., message: _Optional[str] = ..., op: _Optional[str] = ..., number: _Optional[int] = ..., slot: _Optional[int] = ..., site: _Optional[str] = ...) -> None: ...
