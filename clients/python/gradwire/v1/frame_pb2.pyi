from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper

from gradwire.v1 import error_pb2 as _error_pb2
from gradwire.v1 import tensor_pb2 as _tensor_pb2

DESCRIPTOR: _descriptor.FileDescriptor

class Frame(_message.Message):
    __slots__ = ("first", "heads", "ids", "tape", "sites", "acknowledged")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    TAPE_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    first: int
    heads: _containers.RepeatedScalarFieldContainer[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    tape: bytes
    sites: _containers.RepeatedCompositeFieldContainer[Site]
    acknowledged: int
    def __init__(
        self,
        first: int | None = ...,
        heads: _Iterable[int] | None = ...,
        ids: _Iterable[int] | None = ...,
        tape: bytes | None = ...,
        sites: _Iterable[Site | _Mapping] | None = ...,
        acknowledged: int | None = ...,
    ) -> None: ...

class Site(_message.Message):
    __slots__ = ("id", "text")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    id: int
    text: str
    def __init__(self, id: int | None = ..., text: str | None = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("number", "op", "inputs", "outputs", "attributes", "form", "site")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    number: int
    op: str
    inputs: _containers.RepeatedScalarFieldContainer[int]
    outputs: _containers.RepeatedScalarFieldContainer[int]
    attributes: _containers.RepeatedCompositeFieldContainer[Value]
    form: int
    site: str
    def __init__(
        self,
        number: int | None = ...,
        op: str | None = ...,
        inputs: _Iterable[int] | None = ...,
        outputs: _Iterable[int] | None = ...,
        attributes: _Iterable[Value | _Mapping] | None = ...,
        form: int | None = ...,
        site: str | None = ...,
    ) -> None: ...

class Value(_message.Message):
    __slots__ = ("boolean", "integer", "number", "text", "data", "list", "ints", "floats", "dtype")
    class List(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedCompositeFieldContainer[Value]
        def __init__(self, values: _Iterable[Value | _Mapping] | None = ...) -> None: ...

    class Ints(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, values: _Iterable[int] | None = ...) -> None: ...

    class Floats(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, values: _Iterable[float] | None = ...) -> None: ...

    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    INTS_FIELD_NUMBER: _ClassVar[int]
    FLOATS_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    boolean: bool
    integer: int
    number: float
    text: str
    data: bytes
    list: Value.List
    ints: Value.Ints
    floats: Value.Floats
    dtype: _tensor_pb2.DType
    def __init__(
        self,
        boolean: bool | None = ...,
        integer: int | None = ...,
        number: float | None = ...,
        text: str | None = ...,
        data: bytes | None = ...,
        list: Value.List | _Mapping | None = ...,
        ints: Value.Ints | _Mapping | None = ...,
        floats: Value.Floats | _Mapping | None = ...,
        dtype: _tensor_pb2.DType | str | None = ...,
    ) -> None: ...

class Replies(_message.Message):
    __slots__ = ("applied", "durable", "replies", "first")
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    applied: int
    durable: int
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    first: int
    def __init__(
        self,
        applied: int | None = ...,
        durable: int | None = ...,
        replies: _Iterable[Reply | _Mapping] | None = ...,
        first: int | None = ...,
    ) -> None: ...

class Reply(_message.Message):
    __slots__ = ("number", "error", "values", "metas", "event", "text", "callback")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    METAS_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    number: int
    error: _error_pb2.Error
    values: Values
    metas: Metas
    event: Event
    text: bytes
    callback: Callback
    def __init__(
        self,
        number: int | None = ...,
        error: _error_pb2.Error | _Mapping | None = ...,
        values: Values | _Mapping | None = ...,
        metas: Metas | _Mapping | None = ...,
        event: Event | _Mapping | None = ...,
        text: bytes | None = ...,
        callback: Callback | _Mapping | None = ...,
    ) -> None: ...

class Values(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[_tensor_pb2.TensorValue]
    def __init__(
        self, values: _Iterable[_tensor_pb2.TensorValue | _Mapping] | None = ...
    ) -> None: ...

class Metas(_message.Message):
    __slots__ = ("metas",)
    METAS_FIELD_NUMBER: _ClassVar[int]
    metas: _containers.RepeatedCompositeFieldContainer[_tensor_pb2.TensorMeta]
    def __init__(
        self, metas: _Iterable[_tensor_pb2.TensorMeta | _Mapping] | None = ...
    ) -> None: ...

class Event(_message.Message):
    __slots__ = ("kind", "error", "text")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Event.Kind]
        DRAINING: _ClassVar[Event.Kind]
        UNREAD_ERROR: _ClassVar[Event.Kind]
        FENCED: _ClassVar[Event.Kind]

    KIND_UNSPECIFIED: Event.Kind
    DRAINING: Event.Kind
    UNREAD_ERROR: Event.Kind
    FENCED: Event.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: Event.Kind
    error: _error_pb2.Error
    text: str
    def __init__(
        self,
        kind: Event.Kind | str | None = ...,
        error: _error_pb2.Error | _Mapping | None = ...,
        text: str | None = ...,
    ) -> None: ...

class Callback(_message.Message):
    __slots__ = ("callback", "hook", "tensors")
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    HOOK_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    callback: int
    hook: int
    tensors: _containers.RepeatedScalarFieldContainer[int]
    def __init__(
        self,
        callback: int | None = ...,
        hook: int | None = ...,
        tensors: _Iterable[int] | None = ...,
    ) -> None: ...
