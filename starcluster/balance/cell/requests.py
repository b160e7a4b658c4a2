"""Compare requests with the values of places, as Grid Engine does."""

from __future__ import annotations

import contextlib
import math
from fnmatch import fnmatchcase

from sge_jobs import read_size
from starcluster.balance.cell.model import Attribute

_TEXTS = ("STRING", "CSTRING", "RESTRING", "HOST")
_WORDS = {"true": 1.0, "false": 0.0, "infinity": math.inf, "none": 0.0}


def number(text: str) -> float:
    """Return the number of ``4``, ``20.5G``, ``-4.000G``, ``1:30:00``, ``TRUE`` or ``INFINITY``.

    NaN, which is not in any relation, for another text.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    with contextlib.suppress(ValueError):  # a complex that is overbooked is negative
        return -read_size(text[1:]) if text.startswith("-") else read_size(text)
    try:
        total = 0.0
        for part in text.split(":"):
            total = total * 60 + float(part or 0)
    except ValueError:
        return math.nan
    return total


def matches(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern with ``*``, ``?``, ``[]``, ``|``, ``&`` and ``!``."""
    return any(
        all(_matches_one(part.strip("() "), text) for part in choice.split("&"))
        for choice in pattern.split("|")
    )


def _matches_one(pattern: str, text: str) -> bool:
    if pattern.startswith("!"):
        return not fnmatchcase(text, pattern[1:].strip("() "))
    return fnmatchcase(text, pattern)


def matches_queue(pattern: str, queue: str, host: str) -> bool:
    """Return whether ``-q`` with a pattern allows ``queue@host``; each node is in @allhosts."""
    wanted, at, where = pattern.partition("@")
    if not matches(wanted, queue):
        return False
    return not at or where == "@allhosts" or (where[:1] != "@" and matches(where, host))


def satisfied(attribute: Attribute, wanted: str, has: str) -> bool:
    """Return whether a value satisfies a request for one slot."""
    if attribute.kind in _TEXTS:
        fold = str.lower if attribute.kind in ("CSTRING", "HOST") else str
        return matches(fold(wanted), fold(has)) == (attribute.relation != "!=")
    left, right = number(wanted), number(has)
    return {
        "<=": left <= right,
        "<": left < right,
        ">=": left >= right,
        ">": left > right,
        "==": left == right,
        "!=": left != right,
        "EXCL": left <= right,
    }.get(attribute.relation, False)
