"""Convert database errors to StorageError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from optuna.exceptions import OptunaError
from sqlalchemy.exc import SQLAlchemyError

from spearmint.errors import StorageError

_SIGNS_OF_A_FULL_DISK = ("disk is full", "disk I/O error", "No space left", "unable to open")


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
        fix = "Fix this and rerun the command; finished trials are safe."
        if any(sign in text for sign in _SIGNS_OF_A_FULL_DISK):
            fix = "Free disk space and rerun the command; finished trials are safe."
        raise StorageError(f"database of trials: {text}", fix) from error
