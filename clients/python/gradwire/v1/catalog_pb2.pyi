from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf.internal import containers as _containers

DESCRIPTOR: _descriptor.FileDescriptor

class Op(_message.Message):
    __slots__ = (
        "number",
        "name",
        "doc",
        "signature",
        "params",
        "returns",
        "shape_rule",
        "type_rule",
        "differentiable",
        "in_place",
        "out",
        "method",
        "kind",
        "module",
        "outputs",
    )
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
    def __init__(
        self,
        number: int | None = ...,
        name: str | None = ...,
        doc: str | None = ...,
        signature: str | None = ...,
        params: _Iterable[Param | _Mapping] | None = ...,
        returns: str | None = ...,
        shape_rule: str | None = ...,
        type_rule: str | None = ...,
        differentiable: bool | None = ...,
        in_place: bool | None = ...,
        out: bool | None = ...,
        method: bool | None = ...,
        kind: str | None = ...,
        module: Module | _Mapping | None = ...,
        outputs: _Iterable[str] | None = ...,
    ) -> None: ...

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
    def __init__(
        self,
        name: str | None = ...,
        type: str | None = ...,
        optional: bool | None = ...,
        has_default: bool | None = ...,
        default_text: str | None = ...,
        keyword_only: bool | None = ...,
    ) -> None: ...

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
    def __init__(
        self,
        name: str | None = ...,
        parameters: _Iterable[str] | None = ...,
        buffers: _Iterable[str] | None = ...,
        forward: str | None = ...,
        forward_doc: str | None = ...,
    ) -> None: ...
