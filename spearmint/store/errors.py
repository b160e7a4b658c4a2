"""Storages of Optuna by URL, and their failures as StorageError."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import optuna
from optuna.storages import BaseStorage, get_storage
from sqlalchemy import create_engine, inspect
from sqlalchemy import text as sql
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from spearmint.errors import InputError, StorageError
from spearmint.store.fast_reads import BulkReadStorage
from spearmint.store.sqlite import TrialConnection

P = ParamSpec("P")
R = TypeVar("R")

_SQLITE = {"timeout": 60, "factory": TrialConnection}
_SIGNS_OF_A_FULL_DISK = ("disk is full", "disk I/O error", "No space left", "unable to open")


def door(function: Callable[P, R]) -> Callable[P, R]:
    """Make every failure of the database a StorageError."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with translated():
            return function(*args, **kwargs)

    return guarded


@contextmanager
def translated() -> Iterator[None]:
    """Make failures of the database inside a StorageError."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        cause = error.__cause__ or error.__context__ or error
        text = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        fix = "Finished trials are safe; mend this and run the same command to go on."
        if any(sign in text for sign in _SIGNS_OF_A_FULL_DISK):
            fix = "Free some space, then run the same command: finished trials are safe."
        raise StorageError(f"the database of trials failed: {text}", fix) from error


def has_tables(url: str) -> bool:
    """Tell whether Optuna has made all tables of an SQLite file; True for other storages.

    Who opens it before would make them, in the way of the search that does.
    """
    if not url.startswith("sqlite"):
        return True
    engine = create_engine(url, connect_args=_SQLITE)
    try:
        with engine.connect() as connection:
            names = set(inspect(connection).get_table_names())
            if not {"version_info", "alembic_version"} <= names:
                return False
            last = connection.execute(sql("SELECT version_num FROM alembic_version"))
            return last.first() is not None
    finally:
        engine.dispose()


def open_storage(url: str) -> BaseStorage:
    """Return the storage at ``url``. Raises InputError for a URL that makes no sense."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        if url.startswith("sqlite"):
            return get_storage(BulkReadStorage(url, engine_kwargs={"connect_args": _SQLITE}))
        return get_storage(url)
    except ImportError as error:
        raise InputError(
            f"the storage needs a database driver: {error.__cause__ or error}",
            "Install it, for instance: pip install 'psycopg[binary]' for postgresql://, "
            "pymysql for mysql+pymysql://.",
        ) from None
    except (ValueError, ArgumentError) as error:
        raise InputError(
            f"the storage cannot be used: {error}",
            "Expected a URL such as sqlite:////path/to/file.db or postgresql://HOST/DATABASE.",
        ) from None
