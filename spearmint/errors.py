"""Errors of the spearmint package.

SpearmintError                  exit code 1
├── InputError                  exit code 2: the user can fix it
│   ├── ConfigError             config.pb: file, line and column
│   ├── NoSearch                the experiment was never run
│   ├── StudyMismatch           the stored search has other variables
│   ├── NotWritable             the experiment's directory
│   └── AlreadyRunning          another controller holds the experiment
├── SearchFailed                trials broke one after the other
├── SearchStopped               ended by Ctrl-C before it was done
├── StorageError                the database cannot be read or written
└── DriverError                 a job could not be submitted
    └── DriverUnreachable       the queue does not answer: it says nothing about any job
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar


class SpearmintError(Exception):
    """What happened and what to do next, for people; base of all errors here."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what

    def __reduce__(self) -> tuple[object, ...]:
        # As it is, whatever its constructor takes: it may come from a worker process.
        return type(self).__new__, (type(self), *self.args), vars(self)


class InputError(SpearmintError):
    """The command line, a file or a call is wrong; nothing was started."""

    exit_code = 2


class ConfigError(InputError):
    """config.pb is wrong at ``line`` and ``column``, both counted from 1 (0: the whole file)."""

    def __init__(
        self, path: Path, what: str, fix: str = "", *, line: int = 0, column: int = 0
    ) -> None:
        place = f"{path}:{line}:{column}" if line else f"{path}"
        super().__init__(f"{place}: {what}", fix)
        self.path, self.line, self.column = path, line, column


class NoSearch(InputError):
    """The experiment was never run; there is nothing to look at."""


class NotWritable(InputError):
    """The experiment's directory cannot be written."""


class StudyMismatch(InputError):
    """The stored search was made for other variables than config.pb now declares."""


class AlreadyRunning(InputError):
    """Another controller runs this experiment."""


class SearchFailed(SpearmintError):
    """The search ended because its trials break."""


class SearchStopped(SpearmintError):
    """The user stopped the search before it was done."""


class StorageError(SpearmintError):
    """The database of trials cannot be read or written."""


class DriverError(SpearmintError):
    """A job could not be submitted, or its queue did not answer."""


class DriverUnreachable(DriverError):
    """The queue does not answer for now; nothing is known of any job."""


def next_command(*words: object) -> str:
    """Return ``spearmint`` and ``words`` as a line to paste into a shell."""
    return shlex.join(["spearmint", *map(str, words)])


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a question naming the choice nearest to ``word``, or an empty string."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return f"Did you mean {by_lower[near[0]]!r}?" if near else ""
