from gradwire.v1 import error_pb2 as _error_pb2
from gradwire.v1 import tensor_pb2 as _tensor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

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
    def __init__(self, first: _Optional[int] = ..., heads: _Optional[_Iterable[int]] = ..., ids: _Optional[_Iterable[int]] = ..., tape: _Optional[bytes] = ..., sites: _Optional[_Iterable[_Union[Site, _Mapping]]] = ..., acknowledged: _Optional[int] = ...) -> None: ...

class Site(_message.Message):
    __slots__ = ("id", "text")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    id: int
    text: str
    def __init__(self, id: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

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
    def __init__(self, number: _Optional[int] = ..., op: _Optional[str] = ..., inputs: _Optional[_Iterable[int]] = ..., outputs: _Optional[_Iterable[int]] = ..., attributes: _Optional[_Iterable[_Union[Value, _Mapping]]] = ..., form: _Optional[int] = ..., site: _Optional[str] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("boolean", "integer", "number", "text", "data", "list", "ints", "floats", "dtype")
    class List(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedCompositeFieldContainer[Value]
        def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...
    class Ints(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...
    class Floats(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...
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
    def __init__(self, boolean: _Optional[bool] = ..., integer: _Optional[int] = ..., number: _Optional[float] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ..., list: _Optional[_Union[Value.List, _Mapping]] = ..., ints: _Optional[_Union[Value.Ints, _Mapping]] = ..., floats: _Optional[_Union[Value.Floats, _Mapping]] = ..., dtype: _Optional[_Union[_tensor_pb2.DType, str]] = ...) -> None: ...

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
    def __init__(self, applied: _Optional[int] = ..., durable: _Optional[int] = ..., replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ..., first: _Optional[int] = ...) -> None: ...

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
    def __init__(self, number: _Optional[int] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ..., values: _Optional[_Union[Values, _Mapping]] = ..., metas: _Optional[_Union[Metas, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., text: _Optional[bytes] = ..., callback: _Optional[_Union[Callback, _Mapping]] = ...) -> None: ...

class Values(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[_tensor_pb2.TensorValue]
    def __init__(self, values: _Optional[_Iterable[_Union[_tensor_pb2.TensorValue, _Mapping]]] = ...) -> None: ...

class Metas(_message.Message):
    __slots__ = ("metas",)
    METAS_FIELD_NUMBER: _ClassVar[int]
    metas: _containers.RepeatedCompositeFieldContainer[_tensor_pb2.TensorMeta]
    def __init__(self, metas: _Optional[_Iterable[_Union[_tensor_pb2.TensorMeta, _Mapping]]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("kind", "error", "text", "code")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Event.Kind]
        DRAINING: _ClassVar[Event.Kind]
        UNREAD_ERROR: _ClassVar[Event.Kind]
        FENCED: _ClassVar[Event.Kind]
        FORGOTTEN: _ClassVar[Event.Kind]
    KIND_UNSPECIFIED: Event.Kind
    DRAINING: Event.Kind
    UNREAD_ERROR: Event.Kind
    FENCED: Event.Kind
    FORGOTTEN: Event.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    kind: Event.Kind
    error: _error_pb2.Error
    text: str
    code: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kind: _Optional[_Union[Event.Kind, str]] = ..., error: _Optional[_Union[_error_pb2.Error, _Mapping]] = ..., text: _Optional[str] = ..., code: _Optional[_Iterable[int]] = ...) -> None: ...

class Callback(_message.Message):
    __slots__ = ("callback", "code", "tensors", "kind", "split", "metas")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Callback.Kind]
        FUNCTION: _ClassVar[Callback.Kind]
        TENSOR_HOOK: _ClassVar[Callback.Kind]
        BEFORE_NODE: _ClassVar[Callback.Kind]
        AFTER_NODE: _ClassVar[Callback.Kind]
        ACCUMULATED: _ClassVar[Callback.Kind]
        CHECKPOINT: _ClassVar[Callback.Kind]
    KIND_UNSPECIFIED: Callback.Kind
    FUNCTION: Callback.Kind
    TENSOR_HOOK: Callback.Kind
    BEFORE_NODE: Callback.Kind
    AFTER_NODE: Callback.Kind
    ACCUMULATED: Callback.Kind
    CHECKPOINT: Callback.Kind
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    METAS_FIELD_NUMBER: _ClassVar[int]
    callback: int
    code: int
    tensors: _containers.RepeatedScalarFieldContainer[int]
    kind: Callback.Kind
    split: int
    metas: _containers.RepeatedCompositeFieldContainer[_tensor_pb2.TensorMeta]
    def __init__(self, callback: _Optional[int] = ..., code: _Optional[int] = ..., tensors: _Optional[_Iterable[int]] = ..., kind: _Optional[_Union[Callback.Kind, str]] = ..., split: _Optional[int] = ..., metas: _Optional[_Iterable[_Union[_tensor_pb2.TensorMeta, _Mapping]]] = ...) -> None: ...
