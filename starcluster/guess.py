"""A wrong name, and the right one that looks like it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``Did you mean 'x'?``, or an empty text where nothing is near."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"Did you mean '{by_lower[near[0]]}'?" if near else ""
