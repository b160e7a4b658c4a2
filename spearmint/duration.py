"""Durations as people write and read them."""

from __future__ import annotations

import re

_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``15m``, ``2h`` or ``1d``.

    Raises:
        ValueError: It is none of these, or 0.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None or float(match.group(1)) <= 0:
        raise ValueError(f"{text!r} is no duration; expected 90, 90s, 15m, 2h or 1d")
    return float(match.group(1)) * _UNITS_S[match.group(2)]


def format_duration(seconds: float) -> str:
    """Return ``4.2 s``, ``3 min 5 s``, ``2 h 15 min`` or ``3 d 4 h``."""
    if seconds < 59.95:  # what rounds to 60.0 is a minute
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part_size} {part}"
    return f"{whole // 60} min {whole % 60} s"
