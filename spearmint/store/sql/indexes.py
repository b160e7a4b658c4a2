"""Indexes on Optuna's table of trials, which has none by state or number.

With 100,000 trials, a query of the queued trials or of one number otherwise reads all of them.
"""

from __future__ import annotations

from contextlib import suppress

from optuna.storages import RDBStorage
from sqlalchemy import Column, Enum, Index, Integer, MetaData, Table
from sqlalchemy.exc import SQLAlchemyError

_COLUMNS = {
    "ix_spearmint_trials_state": ("study_id", "state", "number"),
    "ix_spearmint_trials_number": ("study_id", "number"),
}


def create_indexes(storage: RDBStorage) -> None:
    """Create the indexes that are missing. If the database refuses, queries are only slower."""
    table = Table(
        "trials",
        MetaData(),  # not that of Optuna, which would then expect the indexes everywhere
        Column("study_id", Integer),
        Column("number", Integer),
        Column("state", Enum()),
    )
    for name, columns in _COLUMNS.items():
        index = Index(name, *(table.c[column] for column in columns))
        with suppress(SQLAlchemyError):
            index.create(storage.engine, checkfirst=True)
