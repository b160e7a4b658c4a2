"""Declare a key of the config file once, in the metadata of a dataclass field.

The reader and its checks, the options of ``starcluster start``, the reference page and
``cluster.config.example`` all use that declaration::

    spot_bid: float | None = field(
        default=None,
        metadata=setting(dollars, "Use spot instances, at most at this price.", example="0.60",
                         unit="dollars per hour", unset="on-demand instances",
                         option="-b, --bid DOLLARS"),
    )
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any

from starcluster.config.parsers import Parser

_METADATA = "starcluster key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key of the config file.

    Attributes:
        name: Name in the file, in lower case.
        parse: Convert the text to a value; raises ValueError that says what is expected.
        help: Sentences that say what the key does; reStructuredText.
        example: A value as a user would write it.
        unit: Unit of a number.
        default: The value without the key.
        unset: What applies without the key, if the default value does not say it.
        required: Whether a section must have the key.
        hidden: Whether messages must not show the value: for a field without ``repr``.
        refers_to: Kind of the sections that the value names, such as ``volume``.
        option: Option of ``starcluster start`` that overrides the key: ``-s, --cluster-size N``.
    """

    name: str
    parse: Parser
    help: str
    example: str
    unit: str = ""
    default: Any = None
    unset: str = ""
    required: bool = False
    hidden: bool = False
    refers_to: str = ""
    option: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of ``option``: ``("-s", "--cluster-size")``."""
        words = self.option.replace(",", " ").split()
        return tuple(word for word in words if word.startswith("-"))

    @property
    def metavar(self) -> str | None:
        """Name of the value of ``option`` in ``--help``; None for a flag."""
        last = self.option.rpartition(" ")[2]
        return None if last.startswith("-") else last

    @property
    def summary(self) -> str:
        """The first sentence of ``help``, as plain text."""
        return f"{self.help.partition('. ')[0].rstrip('.')}.".replace("``", "")

    @property
    def option_help(self) -> str:
        """Help of ``option``: the summary, the unit, and the key as the default."""
        unit = f" Unit: {self.unit}." if self.unit else ""
        return f"{self.summary}{unit} Default: {self.name} in the config."

    @property
    def default_text(self) -> str:
        """The default as text of the file; empty if the key has no default value."""
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if self.required or self.default in (None, "", ()):
            return ""
        if isinstance(self.default, tuple):
            return ", ".join(self.default)
        return str(self.default)


def setting(parse: Parser, help: str, *, name: str = "", **more: Any) -> Mapping[str, ConfigKey]:
    """Return the metadata that makes a dataclass field a key of the config file.

    Args:
        parse, help: As in :class:`ConfigKey`.
        name: Name of the key, if it differs from the field.
        more: Other attributes of :class:`ConfigKey`.
    """
    return {_METADATA: ConfigKey(name=name, parse=parse, help=help, **more)}


def keys_of(section: type) -> dict[str, ConfigKey]:
    """Return the keys that the fields of a dataclass declare, by name."""
    declared = [
        _completed(field, field.metadata[_METADATA])
        for field in fields(section)
        if _METADATA in field.metadata
    ]
    return {key.name: key for key in declared}


def _completed(field: Field[Any], key: ConfigKey) -> ConfigKey:
    required = field.default is MISSING
    return replace(
        key,
        name=key.name or field.name,
        default=None if required else field.default,
        required=required,
        hidden=not field.repr,
    )
