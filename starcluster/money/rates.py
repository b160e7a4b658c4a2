"""How fast instance types train, from a file of a benchmark."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starcluster.errors import InputError

_FORMAT = (
    "Write CSV with the columns type and seconds (of one training) or per_hour (trainings), and "
    'optionally gpus, or the same as JSON: [{"type": "g5.xlarge", "seconds": 840}]'
)
_KEYS = ("seconds", "per_hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Time of one training on an instance type.

    Attributes:
        seconds: Of one training.
        gpus: GPUs that it uses; None for all GPUs of the instance.
    """

    seconds: float
    gpus: float | None = None

    def dollars(self, per_hour: float, gpus: float) -> float:
        """Return the dollars of one training on an instance with ``gpus`` GPUs in use."""
        part = 1.0 if self.gpus is None or not gpus else min(self.gpus / gpus, 1.0)
        return per_hour * part * self.seconds / 3600


def read_rates(path: Path) -> dict[str, Rate]:
    """Return the rates in a CSV or JSON file by instance type.

    Raises:
        InputError: The file cannot be read or has another format.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise InputError(f"cannot read {path}: {reason}", _FORMAT) from error
    rates: dict[str, Rate] = {}
    for where, row in _rows(path, text):
        name = str(row.get("type") or row.get("instance_type") or "").strip()
        if not name:
            raise InputError(f"{path}, {where}: it has no instance type", _FORMAT)
        if name in rates:
            raise InputError(f"{path}, {where}: duplicate instance type '{name}'")
        rates[name] = _rate(path, where, row)
    if not rates:
        raise InputError(f"{path} has no rates", _FORMAT)
    return rates


def _rows(path: Path, text: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    if not text.lstrip().startswith(("{", "[")):
        rows = csv.DictReader(io.StringIO(text), skipinitialspace=True)
        return [(f"line {rows.line_num}", row) for row in rows]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}", _FORMAT) from error
    if isinstance(found, dict):
        found = [
            {"type": name, **(row if isinstance(row, dict) else {})} for name, row in found.items()
        ]
    if not all(isinstance(row, dict) for row in found):
        raise InputError(f"{path} is not a list of objects", _FORMAT)
    return [(f"item {number}", row) for number, row in enumerate(found, 1)]


def _rate(path: Path, where: str, row: Mapping[str, Any]) -> Rate:
    given = [key for key in _KEYS if row.get(key) not in (None, "")]
    if len(given) != 1:
        raise InputError(f"{path}, {where}: it needs one of seconds and per_hour", _FORMAT)
    value = _positive(path, where, given[0], row[given[0]])
    gpus = None
    if row.get("gpus") not in (None, ""):
        gpus = _positive(path, where, "gpus", row["gpus"])
    return Rate(seconds=value if given[0] == "seconds" else 3600 / value, gpus=gpus)


def _positive(path: Path, where: str, key: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        raise InputError(f"{path}, {where}: {key} is '{value}', not a number above 0", _FORMAT)
    return number
