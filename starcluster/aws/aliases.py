"""The aliases of instances launched together, in one tag that is the same for all of them; pure.

Each knows its own by its number in the launch. So no instance is ever without its name, and the
names of a hundred nodes cost no request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LENGTH = 255
_END = re.compile(r"\d+$")


def packed(aliases: Sequence[str]) -> str:
    """Return ``aliases`` as ``master node001:199``; empty where that is too long for a tag."""
    words: list[list[str]] = []
    for alias in aliases:
        if words and _after(words[-1][0], len(words[-1])) == alias:
            words[-1].append(alias)
        else:
            words.append([alias])
    text = " ".join(run[0] + (f":{len(run)}" if len(run) > 1 else "") for run in words)
    return text if len(text) <= _LENGTH else ""


def alias_at(text: str, index: int) -> str:
    """Return the alias of instance ``index`` of a launch, from 0 on; empty where it has none."""
    for word in text.split():
        first, _, number = word.partition(":")
        count = int(number) if number.isdigit() else 1
        if index < count:
            return _after(first, index) if index else first
        index -= count
    return ""


def _after(alias: str, steps: int) -> str:
    """Return the alias that many steps after another; empty where it has no number."""
    end = _END.search(alias)
    if end is None:
        return ""
    return f"{alias[: end.start()]}{int(end[0]) + steps:0{len(end[0])}d}"
