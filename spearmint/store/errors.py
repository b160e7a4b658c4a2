"""Failures of the database as StorageError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from optuna.exceptions import OptunaError
from sqlalchemy.exc import SQLAlchemyError

from spearmint.errors import StorageError

_SIGNS_OF_A_FULL_DISK = ("disk is full", "disk I/O error", "No space left", "unable to open")


@contextmanager
def wraps_storage_errors() -> Iterator[None]:
    """Raise StorageError for failures of the database; a context manager and a decorator.

    Example:
        >>> @wraps_storage_errors()
        ... def trials(self): ...
    """
    try:
        yield
    except (SQLAlchemyError, OptunaError) as error:
        cause = error.__cause__ or error.__context__ or error
        text = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        fix = "Finished trials are safe; fix this and run the same command to go on."
        if any(sign in text for sign in _SIGNS_OF_A_FULL_DISK):
            fix = "Free some space, then run the same command: finished trials are safe."
        raise StorageError(f"the database of trials failed: {text}", fix) from error
