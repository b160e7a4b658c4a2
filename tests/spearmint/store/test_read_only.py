"""Commands that show a search write nothing, and do not need write permission."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from spearmint.store.sql.sqlite import TrialConnection
from tests.spearmint.conftest import MakeExperiment

WAITS = (
    "import os, time\n"
    "def main(job_id, params):\n"
    "    while job_id > 1 and not os.path.exists('go'):\n"
    "        time.sleep(0.05)\n"
    "    return 0.5\n"
)


def test_a_reader_makes_no_tables_in_the_way_of_the_search(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment()
    database = experiment.root / "spearmint.db"
    database.touch()  # the state while a search starts
    done = experiment.command("status")
    assert done.returncode == 2
    assert "'trial'" in done.stderr
    with closing(sqlite3.connect(database)) as connection:
        assert not connection.execute("SELECT * FROM sqlite_master").fetchall()


@pytest.mark.mount
@pytest.mark.parametrize("runs", [True, False])
def test_a_search_can_be_looked_at_where_it_cannot_be_written(
    make_experiment: MakeExperiment, tmp_path: Path, runs: bool
) -> None:
    experiment = make_experiment(WAITS)
    controller = experiment.start("--max-finished-jobs=2")
    assert controller.stdout is not None
    while "trial 1: 0.5" not in controller.stdout.readline():
        pass
    go = experiment.root / "go"
    if not runs:
        go.touch()
        controller.communicate()
    with read_only(experiment.root, tmp_path / "seen"):
        experiment.root = tmp_path / "seen"
        found = {name: experiment.command(name) for name in ("best", "export")}
        done = experiment.command("status", "--json")
    if runs:
        go.touch()
        controller.communicate()
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["controller"] is not None) == runs
    assert seen["trials"]["complete"] == (1 if runs else 2)
    assert [each.returncode for each in found.values()] == [0, 0]


@pytest.mark.mount
def test_a_reader_keeps_the_locks_of_a_database_without_a_log(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    path = tmp_path / "home/trials.db"  # as on a network file system
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as writer,
        read_only(path.parent, tmp_path / "seen"),
    ):
        writer.execute("CREATE TABLE trials (id)")
        seen = str(tmp_path / "seen/trials.db")
        with closing(TrialConnection(seen, timeout=0)) as reader:
            assert not reader.execute("SELECT * FROM trials").fetchall()
            writer.execute("BEGIN EXCLUSIVE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                reader.execute("SELECT * FROM trials")


@contextmanager
def read_only(folder: Path, at: Path) -> Iterator[None]:
    """Mount ``folder`` read-only at ``at``."""
    at.mkdir()
    subprocess.run(["mount", "--bind", str(folder), str(at)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(at)], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)
