"""Settings: one dataclass field declares an option, a key of config.pb and their reference."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_METADATA = "setting"


def parse_duration(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``15m``, ``2h`` or ``1d``.

    Raises:
        ValueError: The text has another form, or is 0.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None or float(match.group(1)) <= 0:
        raise ValueError(f"invalid duration {text!r}: expected 90, 90s, 15m, 2h or 1d")
    return float(match.group(1)) * _UNITS_S[match.group(2)]


def split_variable(text: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``.

    Raises:
        ValueError: The text has another form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or not name.isascii():
        raise ValueError(f"invalid variable {text!r}: expected NAME=VALUE")
    return name, value


def _seconds(value: float) -> float:
    if not value > 0:
        raise ValueError(f"invalid duration {value:g}: expected seconds, above 0")
    return value


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"invalid number {text!r}: expected a finite number")
    return number


def parse_gpus(value: str | float) -> float:
    """Return a number of GPUs, or a share of one GPU with at most two decimal places.

    Raises:
        ValueError: ``value`` is something else.
    """
    number = _finite(str(value))
    if number.is_integer() and number >= 0:
        return int(number)
    if 0 < number < 1 and round(number, 2) == number:
        return number
    raise ValueError(
        f"invalid number of GPUs {value!r}: expected a whole number, or a share of one GPU from "
        "0.01 to 0.99"
    )


def parse_decision(text: str) -> str:
    """Return ``yes``, ``no`` or ``auto``. Raises ValueError for another text."""
    if text not in ("yes", "no", "auto"):
        raise ValueError(f"invalid value {text!r}: expected yes, no or auto")
    return text


def parse_launcher(text: str) -> str:
    """Return ``torchrun``, in any case. Raises ValueError for another text."""
    if text.lower() != "torchrun":
        raise ValueError(f"invalid launcher {text!r}: expected torchrun")
    return "torchrun"


def parse_ending(text: str) -> str:
    """Return ``terminate``. Raises ValueError for another text."""
    if text != "terminate":
        raise ValueError(f"invalid value {text!r}: expected terminate")
    return text


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of the values of a setting.

    Attributes:
        name: Name in help texts and reference pages.
        key_type: Type of its key in config.pb, as in a .proto file.
        parse: Returns the value of a text, or of a number in config.pb. Raises ValueError with
            the values that are accepted.
        example: A value as written in config.pb.
    """

    name: str
    key_type: str
    parse: Callable[[Any], Any]
    example: str


INTEGER = ValueType("integer", "uint32", int, "1")
NUMBER = ValueType("number", "double", _finite, "0.5")
GPUS = ValueType("number", "double", parse_gpus, "1")
SECONDS = ValueType("seconds", "double", _seconds, "3600")
TEXT = ValueType("text", "string", str, '"TEXT"')
DURATION = ValueType("duration", "string", parse_duration, '"2h"')
PATH = ValueType("path", "string", Path, '"FOLDER"')
VARIABLE = ValueType("variable", "string", split_variable, '"NAME=VALUE"')
DECISION = ValueType("yes, no or auto", "string", parse_decision, '"yes"')
ENDING = ValueType("terminate", "string", parse_ending, '"terminate"')
LAUNCHER = ValueType("torchrun", "string", parse_launcher, '"torchrun"')
SWITCH = ValueType("switch", "bool", bool, "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The key of a setting in config.pb.

    Attributes:
        number: Number of the field in the protobuf message; never reused.
        name: Name of the key; empty for the name of the setting.
        kind: Type of the value; None for the type of the option.
        repeated: Whether the key can be given several times; None for the same as the option.
        sets: Attribute that holds its value; empty for the name of the setting.
        help: Description; empty for the help of the option.
    """

    number: int
    name: str = ""
    kind: ValueType | None = None
    repeated: bool | None = None
    sets: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A field of a dataclass that users can set.

    Attributes:
        name, default: Name and default of the field.
        kind: Type of its values.
        flags: Its options, ``("-n", "--max-concurrent")``.
        help: What it does, in sentences.
        absent: Text of its default in help, if ``default`` does not say it.
        metavar: Placeholder of its value in help; empty for the name of the type.
        minimum, maximum: Bounds of a number, inclusive; None for no bound.
        is_open: Whether ``minimum`` itself is excluded.
        repeated: Whether it can be given several times; its value is then a tuple.
        group: Heading of options that belong together.
        is_common: Whether most users need it; help lists it first.
        needs: Name of another setting that it requires, or ``QUEUE``; empty for none.
        limit: Field of SearchLimits or StudyLimits that holds its value; empty for its own name.
        environment: Environment variable that can also set it.
        registry: ``package.module:NAME`` of a mapping whose keys help lists as built-in values;
            empty for none.
        plugins: Group of entry points that add values; empty for none.
        key: Its key in config.pb; None if it has none.
        submit: Arguments of a driver's submit command, by the driver's name; ``{value}`` in them
            is the value. Empty if the driver handles the field itself.
    """

    name: str = ""
    default: Any = None
    kind: ValueType
    flags: tuple[str, ...]
    help: str
    absent: str = ""
    metavar: str = ""
    minimum: float | None = None
    maximum: float | None = None
    is_open: bool = False
    repeated: bool = False
    group: str = ""
    is_common: bool = False
    needs: str = ""
    limit: str = ""
    environment: str = ""
    registry: str = ""
    plugins: str = ""
    key: Key | None = None
    submit: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def flag(self) -> str:
        """The long option."""
        return self.flags[-1]

    @property
    def fallback(self) -> str:
        """The default as a text; empty for a flag."""
        if self.absent or self.default in (None, "", ()) or self.kind is SWITCH:
            return self.absent
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    def sentences(self, fallback: str, *more: str) -> str:
        """Return the help, ``more`` sentences, and ``fallback`` as the default."""
        repeated = "Repeatable." if self.repeated else ""
        default = f"Default: {fallback}." if fallback else ""
        return " ".join(filter(None, (self.help, *more, repeated, default)))


QUEUE = "queue"
"""``Setting.needs`` of a setting that only drivers with a queue can use."""


def setting(default: Any, kind: ValueType, *flags: str, **metadata: Any) -> Any:
    """Return a dataclass field with this default; ``metadata`` are attributes of Setting."""
    declared = Setting(kind=kind, flags=flags, **metadata)
    return dataclasses.field(default=default, metadata={_METADATA: declared})


_SETTINGS: dict[type, tuple[Setting, ...]] = {}


def settings_of(cls: type) -> tuple[Setting, ...]:
    """Return the settings that the dataclass ``cls`` declares, in order."""
    if cls not in _SETTINGS:  # each submission asks for them
        _SETTINGS[cls] = tuple(
            dataclasses.replace(field.metadata[_METADATA], name=field.name, default=field.default)
            for field in dataclasses.fields(cls)
            if _METADATA in field.metadata
        )
    return _SETTINGS[cls]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """A key of config.pb and its setting; see :class:`Key`."""

    setting: Setting
    number: int
    name: str
    kind: ValueType
    repeated: bool
    sets: str
    help: str


def key_of(declared: Setting) -> ConfigKey | None:
    """Return the key of a setting in config.pb, or None."""
    key = declared.key
    if key is None:
        return None
    return ConfigKey(
        setting=declared,
        number=key.number,
        name=key.name or declared.name,
        kind=key.kind or declared.kind,
        repeated=declared.repeated if key.repeated is None else key.repeated,
        sets=key.sets or declared.name,
        help=key.help or declared.help,
    )


def keys_of(cls: type) -> tuple[ConfigKey, ...]:
    """Return the keys of config.pb that the dataclass ``cls`` declares, in order."""
    return tuple(key for declared in settings_of(cls) if (key := key_of(declared)))
