"""The journal of the balancer, a file on the master; other machines read it with ``status``."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from starcluster.balance.journal.money import Entry
from starcluster.node.shell import Shell

PATH = "/var/lib/starcluster/balance.jsonl"
_KEPT = 2000  # lines; more than a day of checks
_APPEND = f"""mkdir -p {PATH.rpartition("/")[0]} &&
{{ tail -n {_KEPT - 1} {PATH} 2>/dev/null; cat; }} >{PATH}.new && mv {PATH}.new {PATH}"""


def last_entries(ssh: Shell, count: int) -> list[Entry]:
    """Return the last entries, the oldest first; lines that are not entries are skipped."""
    answer = ssh.run(["tail", "-n", str(count), PATH])
    found = map(_entry, answer.stdout.splitlines())
    return [entry for entry in found if entry is not None]


def append(ssh: Shell, entry: Entry) -> None:
    """Add an entry; a reader sees the old or the new journal."""
    values = {
        name: value.isoformat(timespec="seconds") if isinstance(value, datetime) else value
        for name, value in asdict(entry).items()
    }
    ssh.checked(["sh", "-c", _APPEND], stdin=json.dumps(values) + "\n")


def _entry(line: str) -> Entry | None:
    try:
        values: dict[str, Any] = json.loads(line)
        idle = values["idle_since"]
        return Entry(
            **values
            | {
                "time": datetime.fromisoformat(values["time"]),
                "idle_since": datetime.fromisoformat(idle) if idle else None,
                "unknown": tuple(values["unknown"]),
            }
        )
    except (ValueError, TypeError, KeyError):
        return None
