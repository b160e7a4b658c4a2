"""Convert database errors to StorageError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from optuna.exceptions import OptunaError
from sqlalchemy.exc import SQLAlchemyError

from spearmint.errors import StorageError

_SIGNS_OF_A_FULL_DISK = ("disk is full", "disk I/O error", "No space left")
_RERUN = "and rerun the command; finished trials are safe."
_DAMAGED = (
    "Restore the file from a copy. Without one, move it to another directory; the same command "
    "then starts a new search."
)
_FIXES = {
    **dict.fromkeys(_SIGNS_OF_A_FULL_DISK, f"Free disk space {_RERUN}"),
    **dict.fromkeys(("is not a database", "is malformed"), _DAMAGED),
    "unable to open": f"Create its directory, or free disk space, {_RERUN}",
}


@contextmanager
def wraps_storage_errors() -> Iterator[None]:
    """Convert database errors to StorageError; a context manager and a decorator.

    Example:
        >>> @wraps_storage_errors()
        ... def trials(self): ...
    """
    try:
        yield
    except (SQLAlchemyError, OptunaError) as error:
        cause = error.__cause__ or error.__context__ or error
        text = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        fix = next((fix for sign, fix in _FIXES.items() if sign in text), f"Fix this {_RERUN}")
        raise StorageError(f"database of trials: {text}", fix) from error
