"""Tables, durations and JSON on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence


def say(text: str = "") -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def say_json(value: object) -> None:
    """Print ``value`` as JSON."""
    say(json.dumps(value, indent=2, ensure_ascii=False))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns are as wide as their longest entry."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    padded = (
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def ago(since: float, now: float) -> str:
    """Return the time since ``since``, such as ``3m10s``; empty if ``since`` is 0."""
    if not since:
        return ""
    seconds = max(0, int(now - since))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"
