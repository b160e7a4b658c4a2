"""Errors of the spearmint package.

SpearmintError                  exit code 1
├── InputError                  exit code 2: the user can fix it
│   ├── ConfigError             config.pb: file, line and column
│   ├── NoSearch                the experiment was never run
│   ├── StudyMismatch           the stored search has other variables
│   ├── NotWritable             the directory of the experiment cannot be written
│   └── AlreadyRunning          another controller runs the experiment
├── SearchFailed                too many trials failed in a row
├── CannotStart                 the queue can never run a trial of the search
├── OutputClosed                nobody reads the output of the search any more
├── Interrupted                 exit code 130: Ctrl-C stopped a command
│   └── SearchStopped           Ctrl-C, or exit code 143: SIGTERM stopped the search
├── StorageError                the database cannot be read or written
└── DriverError                 a job could not be submitted
    ├── QueueFull               the queue accepts no more jobs at present
    └── DriverUnreachable       the queue does not answer; the state of all jobs is unknown
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class SpearmintError(Exception):
    """Base of all errors of this package.

    Args:
        what: What happened.
        fix: What the user can do; empty for nothing.
    """

    exit_code: int = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what

    def __reduce__(self) -> tuple[object, ...]:
        # Constructors have different arguments, and a worker process must be able to send errors.
        return type(self).__new__, (type(self), *self.args), vars(self)


class InputError(SpearmintError):
    """The command line, a file or a call is invalid; nothing was started."""

    exit_code = 2


class ConfigError(InputError):
    """config.pb is invalid at ``line`` and ``column``, counted from 1 (0: the whole file)."""

    def __init__(
        self, path: Path, what: str, fix: str = "", *, line: int = 0, column: int = 0
    ) -> None:
        place = f"{path}:{line}:{column}" if line else f"{path}"
        super().__init__(f"{place}: {what}", fix)
        self.path, self.line, self.column = path, line, column


class NoSearch(InputError):
    """The experiment was never run, so there is nothing to show."""


class NotWritable(InputError):
    """The directory of the experiment cannot be written."""


class StudyMismatch(InputError):
    """The stored search has other variables than config.pb."""


class AlreadyRunning(InputError):
    """Another controller runs this experiment."""


class SearchFailed(SpearmintError):
    """The search stopped because too many trials failed in a row."""


class CannotStart(SpearmintError):
    """The queue can never run a trial of the search, as it is configured now."""


class OutputClosed(SpearmintError):
    """Nobody reads the output of a search any more, as in ``spearmint ... | head``."""


class Interrupted(SpearmintError):
    """Ctrl-C stopped a command."""

    exit_code = 128 + signal.SIGINT


class SearchStopped(Interrupted):
    """A signal stopped the search before it was complete.

    Args:
        what: What happened.
        fix: What the user can do.
        number: The signal.
    """

    def __init__(self, what: str, fix: str = "", *, number: int = signal.SIGINT) -> None:
        super().__init__(what, fix)
        self.exit_code = 128 + number


class StorageError(SpearmintError):
    """The database of trials cannot be read or written."""


class DriverError(SpearmintError):
    """A job could not be submitted, or the queue did not answer."""


class QueueFull(DriverError):
    """The queue accepts no more jobs at present, because of a limit on their number."""


class DriverUnreachable(DriverError):
    """The queue does not answer, so the state of all jobs is unknown."""


def next_command(*words: object) -> str:
    """Return ``spearmint`` and ``words`` as a line of shell."""
    return shlex.join(["spearmint", *map(str, words)])


def reason_of(error: Exception) -> str:
    """Return why a file cannot be used, without its path: "Permission denied"."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text (byte {error.start})"
    return getattr(error, "strerror", None) or str(error)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return "Did you mean CHOICE?" if a choice is similar to ``word``, or an empty string."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return f"Did you mean {by_lower[near[0]]!r}?" if near else ""
