"""A small tmpfs that trials fill completely."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spearmint.conftest import MakeExperiment

pytestmark = pytest.mark.mount

FILL = """
def main(job_id, params):
    if job_id == 2:
        with open("filler", "wb") as file:
            while True:
                file.write(b"x" * 4096)
                file.flush()
    return float(params["x"][0])
"""
FILL_AND_TIDY = """
import os

def main(job_id, params):
    if job_id == 2:
        try:
            with open("filler", "wb") as file:
                while True:
                    file.write(b"x" * 4096)
                    file.flush()
        finally:
            os.unlink("filler")
    return float(params["x"][0])
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "disk"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(root)], check=True)
    try:
        yield root
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


def test_a_trial_that_fills_the_disk_and_tidies_up_is_one_broken_trial(
    make_experiment: MakeExperiment, small_disk: Path
) -> None:
    experiment = make_experiment(FILL_AND_TIDY, root=small_disk / "search")
    done = experiment.run("--max-finished-jobs=4")
    assert done.returncode == 0, done.stderr
    status = json.loads(experiment.command("status", "--json").stdout)
    expected = {"running": 0, "queued": 0, "complete": 4, "pruned": 0, "broken": 1}
    assert status["trials"] == expected
    assert "No space left on device (trial.py:" in status["broken"][0]["reason"]


def test_a_disk_that_stays_full_stops_the_search_and_loses_nothing(
    make_experiment: MakeExperiment, small_disk: Path
) -> None:
    experiment = make_experiment(FILL, root=small_disk / "search")
    done = experiment.run("--max-finished-jobs=4")
    assert done.returncode == 1, done.stdout
    of_sqlite = ("disk is full", "disk I/O error", "No space left", "unable to open")
    assert any(words in done.stderr for words in of_sqlite)
    assert "Traceback" not in done.stderr
    results = {
        int(path.parent.name): json.loads(path.read_text())
        for path in experiment.root.glob("jobs/*/result.json")
    }
    assert "No space left on device (trial.py:" in results[2]["reason"], "its result was lost"
    (experiment.root / "filler").unlink()
    again = experiment.run("--max-finished-jobs=4")
    assert again.returncode == 0, again.stderr
    status = json.loads(experiment.command("status", "--json").stdout)
    expected = {"running": 0, "queued": 0, "complete": 4, "pruned": 0, "broken": 1}
    assert status["trials"] == expected
    rows = json.loads(experiment.command("export", "--json").stdout)
    assert rows[0]["value"] == results[1]["value"]


MODEL = """
def main(job_id, params):
    return float(params["x"][0])

def final(job_id, params, model_dir):
    (model_dir / "model.bin").write_bytes(b"x" * (2 << 20))
    return 0.5
"""


def test_a_model_is_trained_once_and_promoted_when_the_disk_has_room(
    make_experiment: MakeExperiment, small_disk: Path
) -> None:
    experiment = make_experiment(MODEL, root=small_disk / "search")
    assert experiment.run("--max-finished-jobs=1").returncode == 0
    models = experiment.root / "models" / "trial"
    full = experiment.command("final")
    assert full.returncode == 1
    assert "cannot copy the model" in full.stderr
    assert "No space left on device\n" in full.stderr
    assert "2.0 MiB" in full.stderr
    assert not list(models.iterdir()), "a partial copy fills the disk"
    (experiment.root / "trial.py").write_text(MODEL.replace("0.5", "1 / 0"))  # is not called
    remount = ("mount", "-o", "remount,size=8m", str(small_disk))
    subprocess.run(remount, check=True)
    assert experiment.command("final").returncode == 0

    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    full = experiment.command("promote")
    assert full.returncode == 1
    assert "No space left on device: '" in full.stderr, "which file"
    assert not (models / "current").exists()
    filler.unlink()
    assert experiment.command("promote").returncode == 0
    assert (models / "current" / "files" / "model.bin").stat().st_size == 2 << 20
