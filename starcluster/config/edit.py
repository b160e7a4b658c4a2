"""Write config files by rename, so that other users can never read them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from starcluster.config.syntax import short
from starcluster.errors import InputError


def append_section(file: Path, title: str, values: Mapping[str, str]) -> None:
    """Append a section to ``file``; create the file if it does not exist."""
    lines = [f"[{title}]", *(f"{key} = {value}" for key, value in values.items())]
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    _write(file, f"{before}{gap}" + "\n".join(lines) + "\n")


def write_new(file: Path, text: str) -> None:
    """Write ``file``, for its owner only. Raises InputError if it exists."""
    if file.exists():
        raise InputError(f"{short(file)} already exists", "It was not changed.")
    _write(file, text)


def _write(file: Path, text: str) -> None:
    target = file.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".config-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as temporary:
            temporary.write(text)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
