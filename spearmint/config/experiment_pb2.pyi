from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Language(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATLAB: _ClassVar[Language]
    PYTHON: _ClassVar[Language]
    SHELL: _ClassVar[Language]
    MCR: _ClassVar[Language]
    TORCH: _ClassVar[Language]

class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MINIMIZE: _ClassVar[Direction]
    MAXIMIZE: _ClassVar[Direction]
MATLAB: Language
PYTHON: Language
SHELL: Language
MCR: Language
TORCH: Language
MINIMIZE: Direction
MAXIMIZE: Direction

class Parameter(_message.Message):
    __slots__ = ("name", "int_val", "str_val", "dbl_val")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INT_VAL_FIELD_NUMBER: _ClassVar[int]
    STR_VAL_FIELD_NUMBER: _ClassVar[int]
    DBL_VAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    int_val: _containers.RepeatedScalarFieldContainer[int]
    str_val: _containers.RepeatedScalarFieldContainer[str]
    dbl_val: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., int_val: _Optional[_Iterable[int]] = ..., str_val: _Optional[_Iterable[str]] = ..., dbl_val: _Optional[_Iterable[float]] = ...) -> None: ...

class Experiment(_message.Message):
    __slots__ = ("language", "name", "variable", "direction", "seed_point", "resources", "constraint", "objective", "fidelity", "require")
    class ParameterSpec(_message.Message):
        __slots__ = ("name", "size", "type", "options", "min", "max", "log", "when", "guess", "spread")
        class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            INT: _ClassVar[Experiment.ParameterSpec.Type]
            FLOAT: _ClassVar[Experiment.ParameterSpec.Type]
            ENUM: _ClassVar[Experiment.ParameterSpec.Type]
        INT: Experiment.ParameterSpec.Type
        FLOAT: Experiment.ParameterSpec.Type
        ENUM: Experiment.ParameterSpec.Type
        NAME_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        OPTIONS_FIELD_NUMBER: _ClassVar[int]
        MIN_FIELD_NUMBER: _ClassVar[int]
        MAX_FIELD_NUMBER: _ClassVar[int]
        LOG_FIELD_NUMBER: _ClassVar[int]
        WHEN_FIELD_NUMBER: _ClassVar[int]
        GUESS_FIELD_NUMBER: _ClassVar[int]
        SPREAD_FIELD_NUMBER: _ClassVar[int]
        name: str
        size: int
        type: Experiment.ParameterSpec.Type
        options: _containers.RepeatedScalarFieldContainer[str]
        min: float
        max: float
        log: bool
        when: _containers.RepeatedScalarFieldContainer[str]
        guess: float
        spread: float
        def __init__(self, name: _Optional[str] = ..., size: _Optional[int] = ..., type: _Optional[_Union[Experiment.ParameterSpec.Type, str]] = ..., options: _Optional[_Iterable[str]] = ..., min: _Optional[float] = ..., max: _Optional[float] = ..., log: bool = ..., when: _Optional[_Iterable[str]] = ..., guess: _Optional[float] = ..., spread: _Optional[float] = ...) -> None: ...
    class SeedPoint(_message.Message):
        __slots__ = ("param",)
        PARAM_FIELD_NUMBER: _ClassVar[int]
        param: _containers.RepeatedCompositeFieldContainer[Parameter]
        def __init__(self, param: _Optional[_Iterable[_Union[Parameter, _Mapping]]] = ...) -> None: ...
    class Resources(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Constraint(_message.Message):
        __slots__ = ("name", "min", "max")
        NAME_FIELD_NUMBER: _ClassVar[int]
        MIN_FIELD_NUMBER: _ClassVar[int]
        MAX_FIELD_NUMBER: _ClassVar[int]
        name: str
        min: float
        max: float
        def __init__(self, name: _Optional[str] = ..., min: _Optional[float] = ..., max: _Optional[float] = ...) -> None: ...
    class Objective(_message.Message):
        __slots__ = ("name", "direction", "reference")
        NAME_FIELD_NUMBER: _ClassVar[int]
        DIRECTION_FIELD_NUMBER: _ClassVar[int]
        REFERENCE_FIELD_NUMBER: _ClassVar[int]
        name: str
        direction: Direction
        reference: float
        def __init__(self, name: _Optional[str] = ..., direction: _Optional[_Union[Direction, str]] = ..., reference: _Optional[float] = ...) -> None: ...
    class Fidelity(_message.Message):
        __slots__ = ("name", "min", "max", "reduction_factor")
        NAME_FIELD_NUMBER: _ClassVar[int]
        MIN_FIELD_NUMBER: _ClassVar[int]
        MAX_FIELD_NUMBER: _ClassVar[int]
        REDUCTION_FACTOR_FIELD_NUMBER: _ClassVar[int]
        name: str
        min: int
        max: int
        reduction_factor: int
        def __init__(self, name: _Optional[str] = ..., min: _Optional[int] = ..., max: _Optional[int] = ..., reduction_factor: _Optional[int] = ...) -> None: ...
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SEED_POINT_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    FIDELITY_FIELD_NUMBER: _ClassVar[int]
    REQUIRE_FIELD_NUMBER: _ClassVar[int]
    language: Language
    name: str
    variable: _containers.RepeatedCompositeFieldContainer[Experiment.ParameterSpec]
    direction: Direction
    seed_point: _containers.RepeatedCompositeFieldContainer[Experiment.SeedPoint]
    resources: Experiment.Resources
    constraint: _containers.RepeatedCompositeFieldContainer[Experiment.Constraint]
    objective: _containers.RepeatedCompositeFieldContainer[Experiment.Objective]
    fidelity: Experiment.Fidelity
    require: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, language: _Optional[_Union[Language, str]] = ..., name: _Optional[str] = ..., variable: _Optional[_Iterable[_Union[Experiment.ParameterSpec, _Mapping]]] = ..., direction: _Optional[_Union[Direction, str]] = ..., seed_point: _Optional[_Iterable[_Union[Experiment.SeedPoint, _Mapping]]] = ..., resources: _Optional[_Union[Experiment.Resources, _Mapping]] = ..., constraint: _Optional[_Iterable[_Union[Experiment.Constraint, _Mapping]]] = ..., objective: _Optional[_Iterable[_Union[Experiment.Objective, _Mapping]]] = ..., fidelity: _Optional[_Union[Experiment.Fidelity, _Mapping]] = ..., require: _Optional[_Iterable[str]] = ...) -> None: ...
