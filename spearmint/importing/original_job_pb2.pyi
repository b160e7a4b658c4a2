from spearmint.config import experiment_pb2 as _experiment_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OriginalJob(_message.Message):
    __slots__ = ("id", "expt_dir", "name", "language", "status", "param", "submit_t", "start_t", "end_t", "value", "duration")
    ID_FIELD_NUMBER: _ClassVar[int]
    EXPT_DIR_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PARAM_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_T_FIELD_NUMBER: _ClassVar[int]
    START_T_FIELD_NUMBER: _ClassVar[int]
    END_T_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    id: int
    expt_dir: str
    name: str
    language: _experiment_pb2.Language
    status: str
    param: _containers.RepeatedCompositeFieldContainer[_experiment_pb2.Parameter]
    submit_t: int
    start_t: int
    end_t: int
    value: float
    duration: float
    def __init__(self, id: _Optional[int] = ..., expt_dir: _Optional[str] = ..., name: _Optional[str] = ..., language: _Optional[_Union[_experiment_pb2.Language, str]] = ..., status: _Optional[str] = ..., param: _Optional[_Iterable[_Union[_experiment_pb2.Parameter, _Mapping]]] = ..., submit_t: _Optional[int] = ..., start_t: _Optional[int] = ..., end_t: _Optional[int] = ..., value: _Optional[float] = ..., duration: _Optional[float] = ...) -> None: ...
