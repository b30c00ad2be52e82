from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Op(_message.Message):
    __slots__ = ("number", "name", "doc", "signature", "params", "returns", "shape_rule", "type_rule", "differentiable", "in_place", "out", "method", "kind", "module", "outputs")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    RETURNS_FIELD_NUMBER: _ClassVar[int]
    SHAPE_RULE_FIELD_NUMBER: _ClassVar[int]
    TYPE_RULE_FIELD_NUMBER: _ClassVar[int]
    DIFFERENTIABLE_FIELD_NUMBER: _ClassVar[int]
    IN_PLACE_FIELD_NUMBER: _ClassVar[int]
    OUT_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    name: str
    doc: str
    signature: str
    params: _containers.RepeatedCompositeFieldContainer[Param]
    returns: str
    shape_rule: str
    type_rule: str
    differentiable: bool
    in_place: bool
    out: bool
    method: bool
    kind: str
    module: Module
    outputs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., name: _Optional[str] = ..., doc: _Optional[str] = ..., signature: _Optional[str] = ..., params: _Optional[_Iterable[_Union[Param, _Mapping]]] = ..., returns: _Optional[str] = ..., shape_rule: _Optional[str] = ..., type_rule: _Optional[str] = ..., differentiable: _Optional[bool] = ..., in_place: _Optional[bool] = ..., out: _Optional[bool] = ..., method: _Optional[bool] = ..., kind: _Optional[str] = ..., module: _Optional[_Union[Module, _Mapping]] = ..., outputs: _Optional[_Iterable[str]] = ...) -> None: ...

class Param(_message.Message):
    __slots__ = ("name", "type", "optional", "has_default", "default_text", "keyword_only")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    HAS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TEXT_FIELD_NUMBER: _ClassVar[int]
    KEYWORD_ONLY_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    optional: bool
    has_default: bool
    default_text: str
    keyword_only: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., optional: _Optional[bool] = ..., has_default: _Optional[bool] = ..., default_text: _Optional[str] = ..., keyword_only: _Optional[bool] = ...) -> None: ...

class Module(_message.Message):
    __slots__ = ("name", "parameters", "buffers", "forward", "forward_doc")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    BUFFERS_FIELD_NUMBER: _ClassVar[int]
    FORWARD_FIELD_NUMBER: _ClassVar[int]
    FORWARD_DOC_FIELD_NUMBER: _ClassVar[int]
    name: str
    parameters: _containers.RepeatedScalarFieldContainer[str]
    buffers: _containers.RepeatedScalarFieldContainer[str]
    forward: str
    forward_doc: str
    def __init__(self, name: _Optional[str] = ..., parameters: _Optional[_Iterable[str]] = ..., buffers: _Optional[_Iterable[str]] = ..., forward: _Optional[str] = ..., forward_doc: _Optional[str] = ...) -> None: ...
