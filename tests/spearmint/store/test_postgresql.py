"""Searches in PostgreSQL. Needs its programs, and psycopg."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

import spearmint
from spearmint.config.reader import load_experiment
from spearmint.errors import InputError
from spearmint.model import TrialState
from spearmint.store.opening import open_study, study_names
from spearmint.store.study import Study
from tests import commands
from tests.waiting import until

pytestmark = pytest.mark.postgresql
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))  # a client has none
ROOT = os.geteuid() == 0
OWNER: dict[str, str | int] = {"user": "nobody", "group": 65534} if ROOT else {}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Yield the URL of a server that listens at a socket only."""
    psycopg: Any = importlib.import_module("psycopg")
    # Optuna leaves its pool of connections to the end of the process, of which psycopg would warn.
    psycopg.Connection.__del__ = lambda self: None
    # The path of a socket has at most 107 bytes, and another user must reach it: not in TMPDIR.
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as place:
        if ROOT:  # PostgreSQL refuses to run as root
            shutil.chown(place, "nobody")
        data, control = f"{place}/data", str(PROGRAMS[-1].with_name("pg_ctl"))
        options = f"-c listen_addresses= -k {place} -c fsync=off"
        subprocess.run(
            [control, "-D", data, "-o", "-A trust -U ann", "initdb"],
            check=True, capture_output=True, cwd=place, **OWNER,
        )  # fmt: skip
        log = f"{place}/log"
        subprocess.run(
            [control, "-D", data, "-w", "-l", log, "-o", options, "start"],
            check=True, stdout=subprocess.DEVNULL, cwd=place, **OWNER,
        )  # fmt: skip
        try:
            yield f"postgresql+psycopg://ann@/postgres?host={place}"
        finally:
            stop = [control, "-D", data, "-m", "immediate", "stop"]
            subprocess.run(stop, check=True, capture_output=True, cwd=place, **OWNER)


def config(folder: Path) -> Path:
    folder.mkdir()
    (folder / f"{folder.name}.py").write_text("def main(job_id, params):\n    return 0.0\n")
    variables = "".join(f'variable {{ name: "{v}" type: FLOAT min: 0 max: 1 }}\n' for v in "xy")
    path = folder / "config.pb"
    path.write_text(f'language: PYTHON\nname: "{folder.name}"\n{variables}')
    return path


def tried(search: spearmint.Search, trials: int, centre: float) -> None:
    for _ in range(trials):
        trial = search.ask()
        search.tell(trial, sum(float(v[0] - centre) ** 2 for v in trial.params.values()))


def test_a_search_in_postgresql_learns_from_another(server: str, tmp_path: Path) -> None:
    old, new = config(tmp_path / "old"), config(tmp_path / "new")
    with spearmint.Search(old, method="RandomChooser", storage=server) as search:
        tried(search, 12, 0.3)
    for source in (str(old.parent), f"{server}#old"):
        with spearmint.Search(
            new, storage=server, learn_from=source, method_args="mcmc_iters=3,burnin=2"
        ) as search:
            name = source.partition("#")[0]
            assert search.lessons[0].startswith(f"learns from {name}: 12 trials, variables x, y")
            tried(search, 5, 0.4)
    assert f"Learns from 1 search: {server} (weight " in commands.spearmint("status", new).stdout
    with pytest.raises(InputError, match="several studies"):
        spearmint.Search(new, storage=server, learn_from=server)


def test_a_cleanup_that_was_killed_is_run_again(server: str, tmp_path: Path) -> None:
    path = config(tmp_path / "dropped")
    with spearmint.Search(path, method="RandomChooser", storage=server) as search:
        tried(search, 5, 0.3)
    engine = create_engine(server)
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND query LIKE 'DELETE FROM study_directions%'"
    )
    argv = [sys.executable, "-m", "spearmint", "cleanup", "--yes", str(path)]
    with engine.connect() as blocking, engine.connect() as watching:
        blocking.execute(text("LOCK TABLE study_directions IN SHARE MODE"))
        with subprocess.Popen(argv) as cleanup:

            def is_deleting() -> bool:  # its trials are deleted, and nothing is committed
                assert cleanup.poll() is None
                watching.rollback()
                return bool(watching.execute(waiting).scalar())

            until(is_deleting)
            cleanup.kill()
        blocking.rollback()
    engine.dispose()
    left = commands.spearmint("status", "--json", path)
    assert json.loads(left.stdout)["trials"]["complete"] == 5
    assert commands.spearmint("cleanup", path).returncode == 0
    assert "dropped" not in study_names(server)


def test_two_processes_use_each_number_once(server: str, tmp_path: Path) -> None:
    experiment = load_experiment(config(tmp_path / "shared"))
    studies = [open_study(experiment, server) for _ in range(2)]

    def add(study: Study) -> list[int]:
        return [study.add_running({"x": 0.5, "y": 0.25}).id for _ in range(20)]

    with ThreadPoolExecutor(2) as pool:
        numbers = [number for found in pool.map(add, studies) for number in found]
    assert sorted(numbers) == list(range(1, 41))
    assert studies[0].counts()[TrialState.RUNNING] == 40
