"""Which search and which trials a command is about: ``[DIR] 7 9``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spearmint.errors import InputError, next_command

if TYPE_CHECKING:
    from spearmint.model import Trial
    from spearmint.store.session import Session


def split_directory(
    words: Sequence[str], is_other: Callable[[str], bool]
) -> tuple[Path, list[str]]:
    """Return the first word as a directory, unless ``is_other``, and the other words."""
    if words and not is_other(words[0]):
        return Path(words[0]), list(words[1:])
    return Path(), list(words)


def read_numbers(words: Sequence[str]) -> tuple[Path, list[int]]:
    """Return the directory and the numbers of ``[DIR] TRIAL...``.

    Raises:
        click.UsageError: A word is not the number of a trial, or there is none.
    """
    directory, rest = split_directory(words, str.isdecimal)
    if not rest:
        raise click.UsageError("Missing argument 'TRIAL': the number of a trial, such as 7.")
    return directory, [read_number(word) for word in rest]


def read_number(word: str) -> int:
    """Return the number of a trial. Raises click.UsageError for another word."""
    if not (word.isdecimal() and word.isascii() and int(word[:12]) > 0 and len(word) <= 9):
        raise click.UsageError(f"invalid number of a trial: {word!r}. Write for example 7.")
    return int(word)


def one_session(directory: Path, storage: str | None, region: str | None) -> Session:
    """Return the search of a directory, or of one of its regions.

    Raises:
        InputError: There is no search, or it has regions and none is named.
    """
    from spearmint.store.session import read_sessions

    sessions = read_sessions(directory, storage, region)
    if len(sessions) > 1:
        names = ", ".join(session.experiment.region for session in sessions)
        raise InputError(
            f"no region given for {sessions[0].layout.root}", f"Add --region with one of: {names}."
        )
    return sessions[0]


def find_trials(session: Session, numbers: Sequence[int]) -> list[Trial]:
    """Return trials by their numbers. Raises InputError if one does not exist."""
    found = {number: session.study.find(number) for number in numbers}
    trials = [trial for trial in found.values() if trial is not None]
    if len(trials) < len(found):
        missing = ", ".join(str(number) for number, trial in found.items() if trial is None)
        raise InputError(
            f"no trial {missing} in {session.layout.root}",
            f"Show all: {next_command('export', session.layout.root)}",
        )
    return trials
