"""The files of this checkout that git tracks, or would."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def source_files() -> list[str]:
    """Return the paths of all files but the ignored ones, relative to ``ROOT``."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]
