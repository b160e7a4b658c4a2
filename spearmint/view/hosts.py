"""The hosts that the trials of a search avoid."""

from __future__ import annotations

import time
from collections.abc import Iterator

from spearmint.formatting import format_duration, plain
from spearmint.layout import Layout, read_json


def avoided_hosts(layout: Layout) -> list[dict[str, object]]:
    """Return ``host``, ``reason``, ``failed`` starts, ``since`` and ``until`` of each host."""
    found = read_json(layout.avoided_hosts) or {}
    names = ("reason", "failed", "since", "until")
    return [
        {"host": host, **{name: values.get(name) for name in names}}
        for host, values in sorted(found.items())
        if isinstance(values, dict) and float(values.get("until") or 0) > time.time()
    ]


def avoided_lines(layout: Layout) -> Iterator[str]:
    """Yield a line for each host."""
    for row in avoided_hosts(layout):
        left = format_duration(float(str(row["until"])) - time.time())
        yield (
            f"{row['host']}, for {left} more: {row['failed']} jobs in a row could not start there: "
            f"{plain(str(row['reason']))}"
        )
