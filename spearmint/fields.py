"""Settings declared once: the metadata of a field makes its option, its key and its reference."""

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
        ValueError: It is none of these, or 0.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None or float(match.group(1)) <= 0:
        raise ValueError(f"{text!r} is no duration; expected 90, 90s, 15m, 2h or 1d")
    return float(match.group(1)) * _UNITS_S[match.group(2)]


def split_variable(text: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``.

    Raises:
        ValueError: It is not of this form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or not name.isascii():
        raise ValueError(f"{text!r} is no variable; expected NAME=VALUE")
    return name, value


def _seconds(value: float) -> float:
    if not value > 0:
        raise ValueError(f"{value:g} is not a number of seconds above 0")
    return value


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is no finite number")
    return number


@dataclass(frozen=True, slots=True)
class ValueType:
    """What values a setting takes.

    Attributes:
        name: Of the kind, for people.
        key_type: Type of its key in config.pb, as a .proto file writes it.
        parse: Returns the value of a text, or of a number in config.pb. It raises ValueError with
            what was expected.
        example: A value as config.pb holds it.
    """

    name: str
    key_type: str
    parse: Callable[[Any], Any]
    example: str


INTEGER = ValueType("integer", "uint32", int, "1")
NUMBER = ValueType("number", "double", _finite, "0.5")
SECONDS = ValueType("seconds", "double", _seconds, "3600")
TEXT = ValueType("text", "string", str, '"TEXT"')
DURATION = ValueType("duration", "string", parse_duration, '"2h"')
PATH = ValueType("path", "string", Path, '"FOLDER"')
VARIABLE = ValueType("variable", "string", split_variable, '"NAME=VALUE"')
SWITCH = ValueType("switch", "bool", bool, "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The key of a setting in config.pb.

    Attributes:
        number: Of the field in the protobuf message; never reused.
        name: Empty for the name of the setting.
        kind: None for the kind of the option.
        repeated: Whether it may be given several times; None for what the option does.
        sets: The attribute that holds its value; empty for the name of the setting.
        help: Empty for the help of the option.
    """

    number: int
    name: str = ""
    kind: ValueType | None = None
    repeated: bool | None = None
    sets: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One field of a dataclass, as users meet it.

    Attributes:
        name, default: Of the field.
        kind: What values it takes.
        flags: Its options, ``("-n", "--max-concurrent")``.
        help: What it does, a phrase without a full stop.
        note: Further sentences.
        absent: What happens without it, where ``default`` does not say that.
        metavar: Stands for its value in help texts; empty for that of the kind.
        minimum, maximum: Bounds of a number, included; None for none.
        is_open: Whether ``minimum`` itself is excluded.
        repeated: Whether it may be given several times; its value is a tuple then.
        group: Heading of the options that belong together.
        needs: Name of the setting without which it does nothing, or ``QUEUE``; empty for none.
        limit: Field of SearchLimits or StudyLimits that holds its value; empty for its own name.
        environment: Variable that gives its value too.
        registry: ``package.module:NAME`` of the mapping whose keys are its own values, listed in
            the help; empty for none.
        plugins: Group of the entry points that name further values; empty for none.
        key: Its key in config.pb; None when it has none.
        submit: Arguments of a driver's submit command, by the driver's name; ``{value}`` in them
            is the value. Empty where the driver itself knows the field.
    """

    name: str = ""
    default: Any = None
    kind: ValueType
    flags: tuple[str, ...]
    help: str
    note: str = ""
    absent: str = ""
    metavar: str = ""
    minimum: float | None = None
    maximum: float | None = None
    is_open: bool = False
    repeated: bool = False
    group: str = ""
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
        """What holds without it, for people; empty for nothing."""
        if self.absent or self.default in (None, "", ()) or self.kind is SWITCH:
            return self.absent
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    def sentences(self, fallback: str) -> str:
        """Return the help with ``fallback`` as its default, and the note."""
        default = f"; default: {fallback}" if fallback else ""
        repeated = "; may be repeated" if self.repeated else ""
        return f"{self.help}{default}{repeated}. {self.note}".rstrip()


QUEUE = "queue"
"""What a setting ``needs`` that is for drivers with a queue."""


def setting(default: Any, kind: ValueType, *flags: str, **metadata: Any) -> Any:
    """Return a dataclass field with this default; ``metadata`` are attributes of Setting."""
    declared = Setting(kind=kind, flags=flags, **metadata)
    return dataclasses.field(default=default, metadata={_METADATA: declared})


def settings_of(cls: type) -> tuple[Setting, ...]:
    """Return the settings that the dataclass ``cls`` declares, in order."""
    return tuple(
        dataclasses.replace(field.metadata[_METADATA], name=field.name, default=field.default)
        for field in dataclasses.fields(cls)
        if _METADATA in field.metadata
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """A key of config.pb, with the setting it belongs to; see :class:`Key`."""

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
