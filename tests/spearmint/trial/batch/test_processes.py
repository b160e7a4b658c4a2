"""Threads and child processes of a job that tell results of its trials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spearmint.layout import Layout
from tests.spearmint.trial.batch.batch_jobs import result, run


def test_results_of_forked_processes_count(tmp_path: Path) -> None:
    code = """
import os
def main_batch(trials):
    for trial in trials:
        child = os.fork()
        if child == 0:
            trial.tell(trial.id)
            os._exit(0)
        os.waitpid(child, 0)
        assert trial.has_ended and not trial.is_stopped
        trial.tell(7)
"""
    run(tmp_path, code)
    assert [result(tmp_path, n).get("value") for n in (1, 2, 3)] == [1.0, 2.0, 3.0]
    assert not list(Layout(tmp_path).jobs.rglob(".result*"))
    whole = json.loads(Layout(tmp_path).batch(1).result.read_text())["seconds"]
    assert sum(result(tmp_path, n)["seconds"] for n in (1, 2, 3)) <= whole


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_tells_results_and_changes_no_other_file(
    tmp_path: Path, method: str
) -> None:
    """A descriptor of the job has the number of another file in a process that is not forked."""
    code = f"""
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

def train(trial):
    files = [open(f"other-{{n}}", "w+") for n in range(64)]
    for file in files:
        file.write("kept")
        file.flush()
    trial.tell(trial.id)
    return [file for file in files if not file.seek(0) and file.read() != "kept"] == []

def main_batch(trials):
    context = multiprocessing.get_context("{method}")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert all(pool.map(train, trials))
"""
    run(tmp_path, code)
    assert [result(tmp_path, n).get("value") for n in (1, 2, 3)] == [1.0, 2.0, 3.0]


def test_threads_can_tell_results_at_the_same_time(tmp_path: Path) -> None:
    code = """
import pathlib, time
from concurrent.futures import ThreadPoolExecutor
exists = pathlib.Path.exists

def slowly_exists(path):
    time.sleep(0.05)
    return exists(path)

def main_batch(trials):
    pathlib.Path.exists = slowly_exists
    with ThreadPoolExecutor(6) as pool:
        for told in [pool.submit(trial.tell, trial.id) for trial in [*trials, *trials]]:
            told.result()
"""
    run(tmp_path, code)
    assert [result(tmp_path, n).get("value") for n in (1, 2, 3)] == [1.0, 2.0, 3.0]
    assert "reason" not in json.loads(Layout(tmp_path).batch(1).result.read_text())


def test_a_value_that_raises_breaks_its_trial_only(tmp_path: Path) -> None:
    code = """
class Lost:
    def __float__(self):
        raise RuntimeError("the GPU is lost")
def main_batch(trials):
    for trial in trials:
        trial.tell(Lost() if trial.id == 2 else 1)
"""
    run(tmp_path, code)
    assert result(tmp_path, 2)["reason"] == "RuntimeError: the GPU is lost (wrapper.py:4)"
    assert result(tmp_path, 1)["value"] == result(tmp_path, 3)["value"] == 1.0
