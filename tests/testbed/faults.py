"""Requests of a test for faults, which the server of the fake EC2 reads at any time."""

from __future__ import annotations

import json
from pathlib import Path

TRUTH = "starmint-truth"  # in the user agent of a client that sees everything at once


def put(folder: Path, name: str, value: object) -> None:
    """Write a JSON file to ``folder``/faults, of which the server never reads a part."""
    new = folder / "faults" / f".{name}"
    new.write_text(json.dumps(value))
    new.replace(new.with_name(name))
