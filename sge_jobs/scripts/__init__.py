"""Job scripts for plain qsub, and their paths."""

from __future__ import annotations

from pathlib import Path

from sge_jobs.errors import InputError

_HERE = Path(__file__).parent


def script_names() -> tuple[str, ...]:
    """Return the names of the job scripts."""
    return tuple(sorted(path.stem for path in _HERE.glob("*.sh")))


def script_path(name: str) -> Path:
    """Return the file of job script ``name``, for ``qsub "$(sge-jobs scripts NAME)"``.

    Raises:
        InputError: No script has this name.
    """
    if name not in script_names():
        raise InputError(f"no job script '{name}'", f"Choose one of {', '.join(script_names())}")
    return _HERE / f"{name}.sh"
