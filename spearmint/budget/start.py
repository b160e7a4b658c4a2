"""When a search was first charged: reruns continue the same budget."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from spearmint.errors import InputError
from spearmint.layout import read_json, write_json


def started_at(path: Path) -> datetime:
    """Return the time of the first start with a budget; write it if this is the first.

    Raises:
        InputError: The file is damaged.
    """
    found = read_json(path)
    if found is None and not path.exists():
        now = datetime.now(UTC)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"since": now.isoformat()})
        return now
    try:
        since = datetime.fromisoformat((found or {})["since"])
        return since.astimezone(UTC)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is damaged", f"To count the budget from now on, delete it: rm {path}"
        ) from error
