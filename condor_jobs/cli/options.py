"""Arguments that the commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from condor_jobs.errors import InputError
from spearmint.config import load_experiment
from spearmint.errors import SpearmintError


def directory_of(path: Path) -> Path:
    """Return the directory of a config.pb; raises InputError if it cannot be read."""
    try:
        load_experiment(path)
    except SpearmintError as error:
        raise InputError(error.what, error.fix) from error
    return path.resolve() if path.is_dir() else path.resolve().parent


def search_options(options: Sequence[str]) -> tuple[str, ...]:
    """Return the options of a search: its driver is HTCONDOR unless they name another."""
    is_named = any(word.partition("=")[0] == "--driver" for word in options)
    return tuple(options) if is_named else ("--driver=HTCONDOR", *options)
