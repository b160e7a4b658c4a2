"""Searches on disk that others learn from, and what is read of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import create_trial

from spearmint.store.earlier import earlier_searches
from spearmint.store.sql.sqlite import sqlite_url
from spearmint.transfer import EarlierSearch
from tests.spearmint.store.studies import opened, point

HERE = Path("/nowhere")
SPACE = {"x": FloatDistribution(0.0, 1.0), "act": CategoricalDistribution(["relu", None, 3])}


def read(*names: str | Path) -> list[EarlierSearch]:
    return earlier_searches([str(name) for name in names], HERE)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return times and bytes of all files; the time of a folder shows files that came and went."""
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in (folder, *folder.rglob("*"))
    }


def searched(root: Path) -> Path:
    root.mkdir()
    study = opened(root, sqlite_url(root / "spearmint.db"))
    for i in range(6):
        study.add_complete({"X": (i / 10, 0.5), "act": ("tanh",)}, float(i), source="test")
    study.add_running(point())
    study._sql.engine.dispose()  # as at the end of a command, not when garbage is collected
    return root


def made(path: Path, *names: str, directions: tuple[str, ...] = ("minimize",)) -> str:
    """Make a database with studies of one trial each, and return its URL."""
    for name in names:
        study = optuna.create_study(
            storage=f"sqlite:///{path}", study_name=name, directions=directions
        )
        values = [0.5] * len(directions)
        study.add_trial(
            create_trial(params={"x": 0.25, "act": 3}, distributions=SPACE, values=values)
        )
    return f"sqlite:///{path}"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a write lock on the database, as a running search does while it stores a result."""
    with closing(sqlite3.connect(folder / "spearmint.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE trial_values SET value = value + 1")
        connection.commit()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE trial_values SET value = 99")
        yield
