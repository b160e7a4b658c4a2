"""The SQLite file at the end of a command, and a file that is not a database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spearmint.conftest import MakeExperiment


def test_a_command_closes_the_log_of_the_database(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    controller = experiment.start("--max-finished-jobs=1")
    controller.communicate()
    assert controller.returncode == 0
    found = sorted(path.name for path in experiment.root.glob("spearmint.db*"))
    assert found == ["spearmint.db"], "a copy of the file lacks the last trials"


@pytest.mark.parametrize("command", ["status", "best", "run"])
def test_a_damaged_database_is_named(make_experiment: MakeExperiment, command: str) -> None:
    experiment = make_experiment()
    database = experiment.root / "spearmint.db"
    database.write_bytes(b"no database " * 400)
    done = experiment.command(command)
    assert done.returncode == 1
    assert f"{database}: file is not a database" in done.stderr
    assert "move it" in done.stderr
    assert "Traceback" not in done.stderr


FORKS = """
import os, sys
from spearmint.store.opening import open_storage

storage = open_storage(f"sqlite:///{sys.argv[1]}")
engine = storage._backend.engine
engine.dispose = lambda: print("closed by", "parent" if os.getpid() == parent else "child")
parent = os.getpid()
if os.fork():
    os.wait()
sys.exit()
"""


def test_a_forked_process_closes_no_connection_of_its_parent(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", FORKS, str(tmp_path / "trials.db")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert done.stdout == "closed by parent\n"
