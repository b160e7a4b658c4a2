"""Convert the text of a config key to its value.

A parser raises ValueError that says what is expected, such as "expected a whole number".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starcluster.config.syntax import expand

Parser = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """An item of ``node_instance_type``, ``type[:image][:n]``.

    Attributes:
        image_id: Id, name or SSM parameter; empty for ``node_image_id`` of the template.
        count: Number of nodes; None in the last item, which applies to all other nodes.
    """

    instance_type: str
    image_id: str = ""
    count: int | None = None


def text(value: str) -> str:
    """Return ``value`` if it is not empty."""
    if not value:
        raise ValueError("expected a value")
    return value


def boolean(value: str) -> bool:
    """Return True for true, yes, on and 1; False for false, no, off and 0."""
    words = {"true": True, "yes": True, "on": True, "1": True}
    words |= {"false": False, "no": False, "off": False, "0": False}
    try:
        return words[value.lower()]
    except KeyError:
        raise ValueError("expected true or false") from None


def whole(least: int, most: int | None = None) -> Parser:
    """Return a parser of whole numbers from ``least`` to ``most``, both included."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", value):
            raise ValueError("expected a whole number")
        number = int(value)
        if number < least:
            raise ValueError(f"must be at least {least}")
        if most is not None and number > most:
            raise ValueError(f"must be at most {most}")
        return number

    return parse


def dollars(value: str) -> float:
    """Return a positive amount in dollars per hour."""
    return _amount(value, "dollars per hour")


def total_dollars(value: str) -> float:
    """Return a positive amount in dollars."""
    return _amount(value, "dollars")


def _amount(value: str, unit: str) -> float:
    try:
        amount = float(value.removeprefix("$"))
    except ValueError:
        raise ValueError(f"expected {unit}, such as 0.35") from None
    if not 0 < amount < float("inf"):
        raise ValueError(f"must be above 0 {unit}")
    return amount


def names(value: str) -> tuple[str, ...]:
    """Return the items of a list separated by commas."""
    return tuple(item for item in (part.strip() for part in value.split(",")) if item)


def path(value: str) -> Path:
    """Return a path with ``~`` and ``$NAME`` expanded."""
    return expand(text(value))


def paths(value: str) -> tuple[Path, ...]:
    """Return the paths of a list separated by commas."""
    return tuple(expand(part) for part in names(value))


def is_url(value: str) -> bool:
    """Return whether ``value`` is an address with http:// or https://."""
    return value.startswith(("http://", "https://"))


def directory_or_url(value: str) -> str:
    """Return an address as it is, or the path of a directory with ``~`` and ``$NAME`` expanded."""
    if "://" in value and not re.fullmatch(r"https?://[^\s@?#]+", value):
        raise ValueError("expected a directory, or an address with http:// or https://")
    return value if is_url(value) else str(expand(text(value)))


def prefix(value: str) -> str:
    """Return the prefix of S3 keys with a slash at its end and none at its start."""
    found = f"{value.strip('/')}/"
    if not re.fullmatch(r"[\w./=@:+-]+", found) or found == "/" or "//" in found:
        raise ValueError("expected a prefix such as imagenet/train/")
    return found


def matching(pattern: str, wanted: str) -> Parser:
    """Return a parser of text that matches all of ``pattern``; ``wanted`` is the error."""

    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(wanted)
        return value

    return parse


def one_of(*choices: str) -> Parser:
    """Return a parser that accepts only ``choices``."""

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return value

    return parse


_INSTANCE_TYPE = r"[a-z][a-z0-9-]*\.[a-z0-9-]+"
instance_type = matching(_INSTANCE_TYPE, "expected an instance type such as g5.xlarge")


def instance_types(value: str) -> tuple[str, ...]:
    """Return the instance types of a list separated by commas."""
    return tuple(instance_type(part) for part in names(value))


def node_types(value: str) -> tuple[NodeType, ...]:
    """Return the items of ``type[:image][:n], ..., default``."""
    items = names(value)
    if not items:
        raise ValueError("expected a value")
    found = [_node_type(item) for item in items]
    for item, node_type in zip(items[:-1], found[:-1], strict=True):
        if node_type.count is None:
            raise ValueError(f"'{item}' requires a number of nodes, e.g. {item}:2")
    if found[-1].count is not None:
        last = items[-1]
        raise ValueError(f"remove the number of '{last}': the last item is for all other nodes")
    return tuple(found)


def _node_type(item: str) -> NodeType:
    name, *rest = item.split(":")
    count: int | None = None
    if rest and re.fullmatch(r"-?\d+", rest[-1]):
        count = int(rest.pop())
        if count < 1:
            raise ValueError(f"'{item}': the number of nodes must be at least 1")
    if len(rest) > 1:
        forms = "type, type:image, type:n or type:image:n"
        raise ValueError(f"invalid item '{item}': expected {forms}")
    image = rest[0] if rest else ""
    return NodeType(instance_type=instance_type(name), image_id=image, count=count)
