"""A study is deleted as a whole, and others stay."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from optuna.storages import RDBStorage

from spearmint.errors import StorageError
from spearmint.model import Result
from spearmint.store.opening import delete_study, study_names
from spearmint.store.study import Study
from tests.spearmint.store.studies import CONFIG, opened, point, stored


def fill(study: Study) -> None:
    """Store rows in all tables."""
    trial = study.report(study.add_running(point()), {1: 0.5})
    study.complete(trial, Result(value=1.0, seconds=2.0))
    study.enqueue({"act": "relu"})
    study.add_running(point(0.25))
    study.add_note(1, "kept")
    study._storage.set_study_system_attr(study._study._study_id, "a", 1)
    study._storage.set_trial_system_attr(2, "b", 1)


def rows(url: str) -> dict[str, int]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [name for (name,) in tables if name.startswith(("trial", "stud"))]
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
            for name in names
        }


def test_a_deleted_study_leaves_no_row_and_others_stay(
    study: Study, url: str, tmp_path: Path
) -> None:
    fill(study)
    (tmp_path / "b").mkdir()
    other = opened(tmp_path / "b", url, CONFIG.replace("mine", "other"))
    other.complete(other.add_running(point()), Result(value=3.0, seconds=1.0))
    before = optuna.load_study(study_name="other", storage=RDBStorage(url)).get_trials()
    delete_study("mine", url)
    assert study_names(url) == ["other"]
    assert optuna.load_study(study_name="other", storage=RDBStorage(url)).get_trials() == before
    delete_study("other", url)
    assert not any(rows(url).values()), rows(url)


def test_a_deletion_that_fails_at_its_end_deletes_nothing(study: Study, url: str) -> None:
    fill(study)
    before, known = stored(url), rows(url)
    engine = study._sql.engine
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE DELETE ON studies "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    with pytest.raises(StorageError, match="Free disk space"):
        delete_study("mine", url)
    assert stored(url) == before
    assert rows(url) == known
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER full")
    delete_study("mine", url)
    assert study_names(url) == []
