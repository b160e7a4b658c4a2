"""A problem of a cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem and how to fix it."""

    what: str
    fix: str
