"""Pack the aliases of instances that are launched together into one tag; pure.

All instances of a launch get the same tag, and each finds its alias by its launch index. An
instance therefore always has an alias, and naming a hundred nodes needs no extra request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LENGTH = 255
_END = re.compile(r"\d+$")


def packed(aliases: Sequence[str]) -> str:
    """Return ``aliases`` as ``master node001:199``; empty if that is too long for a tag."""
    words: list[list[str]] = []
    for alias in aliases:
        if words and _after(words[-1][0], len(words[-1])) == alias:
            words[-1].append(alias)
        else:
            words.append([alias])
    text = " ".join(run[0] + (f":{len(run)}" if len(run) > 1 else "") for run in words)
    return text if len(text) <= _LENGTH else ""


def unpacked(text: str) -> list[str]:
    """Return the aliases that :func:`packed` has packed."""
    found: list[str] = []
    while alias := alias_at(text, len(found)):
        found.append(alias)
    return found


def alias_at(text: str, index: int) -> str:
    """Return the alias of instance ``index`` (from 0) of a launch; empty if it has none."""
    for word in text.split():
        first, _, number = word.partition(":")
        count = int(number) if number.isdigit() else 1
        if index < count:
            return _after(first, index) if index else first
        index -= count
    return ""


def _after(alias: str, steps: int) -> str:
    """Return ``alias`` with its number increased by ``steps``; empty without a number."""
    end = _END.search(alias)
    if end is None:
        return ""
    return f"{alias[: end.start()]}{int(end[0]) + steps:0{len(end[0])}d}"
