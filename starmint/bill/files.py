"""A bill as text, and as a file that only root or this user can have written."""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starmint.bill.model import Bill, NodeRun, Price

VERSION = 1
PUBLISHED = Path("/var/lib/starmint/bill.json")
"""The bill on the master of a cluster."""
_MOST_BYTES = 16 * 2**20
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)  # later ones have no room for sums of times
_TIMES = ("start", "seen", "end", "gone", "time")


class BillError(Exception):
    """A bill cannot be read or is not trusted; says why."""


def bill_text(bill: Bill) -> str:
    """Return a bill as JSON, one run and one price on each line."""
    head = {"version": VERSION, "cluster": bill.cluster, "region": bill.region}
    lines = [f'"updated": {json.dumps(bill.updated.isoformat())}']
    for name, items in (("runs", bill.runs), ("prices", bill.prices)):
        rows = ",\n".join(json.dumps(_plain(item)) for item in items)
        lines.append(f'"{name}": [\n{rows}\n]')
    return json.dumps(head)[:-1] + ",\n" + ",\n".join(lines) + "}\n"


def bill_from_text(text: str) -> Bill:
    """Return the bill in a text. Raises BillError."""
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise BillError(f"it has version {found['version']}, this program knows {VERSION}")
        return Bill(
            cluster=_word(found["cluster"]),
            region=_word(found["region"]),
            updated=_time(found["updated"]),
            runs=tuple(_item(NodeRun, each) for each in found["runs"]),
            prices=tuple(_item(Price, each) for each in found["prices"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BillError(f"it is not a bill: {type(error).__name__}: {error}") from error


def read_bill(path: Path) -> Bill:
    """Return the bill in a file.

    Raises:
        FileNotFoundError: There is none.
        BillError: The file cannot be read, is not a bill, or another user can have written it.
    """
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            _require_trusted(os.fstat(file.fileno()))
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise BillError("it is too large")
        return bill_from_text(data.decode())
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise BillError(f"cannot read {path}: {error}") from error
    except BillError as error:
        raise BillError(f"cannot use {path}: {error}") from None


def _require_trusted(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise BillError("it is not a regular file")
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
        raise BillError("another user can write it; only root or you may")


def _plain(item: NodeRun | Price) -> dict[str, Any]:
    values = {field.name: getattr(item, field.name) for field in fields(item)}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _item(cls: type[Any], found: object) -> Any:
    """Return one run or price, each value of the type of its field."""
    if not isinstance(found, dict):
        raise TypeError(f"{found!r} is not an object")
    values = {}
    for field in fields(cls):
        value = found.get(field.name, field.default)
        if field.name in _TIMES and value is not None:
            value = _time(value)
        elif field.name == "dollars":
            value = _dollars(value)
        elif field.name in ("spot", "free"):
            value = value is True
        elif field.name not in _TIMES:
            value = _word(value)
        values[field.name] = value
    if values.get("start", 0) is None or values.get("seen", 0) is None:
        raise ValueError("a run has no start")
    return cls(**values)


def _time(value: object) -> datetime:
    found = datetime.fromisoformat(_word(value))
    if found.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    found = found.astimezone(UTC)
    if found > _LATEST:
        raise ValueError(f"{value} is too late")
    return found


def _dollars(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is not a price")
    return float(value)


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
