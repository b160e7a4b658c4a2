"""The real runner with a job of several trials."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from spearmint.layout import Layout
from spearmint.trial.reporting import read_reports
from spearmint.trial.results import TOGETHER
from tests.spearmint.trial.batch.batch_jobs import prepare, result, run
from tests.waiting import until


def test_each_trial_has_its_parameters_reports_files_and_result(tmp_path: Path) -> None:
    code = """
def main_batch(trials):
    for trial in trials:
        assert not trial.report(1, 0.5)
        (trial.files / "model").write_text(str(trial.id))
        trial.tell(trial.params["x"])
"""
    run(tmp_path, code)
    for n in (1, 2, 3):
        folder = Layout(tmp_path).folder(n)
        assert result(tmp_path, n).items() >= {"value": n / 10, "key": f"k{n}"}.items()
        assert read_reports(folder.reports) == {1: 0.5}
        assert (folder.files / "model").read_text() == str(n)
        assert not list(folder.path.glob(".result*"))
        runner = json.loads(folder.runner.read_text())
        assert runner == json.loads(Layout(tmp_path).batch(1).runner.read_text())


def test_the_time_of_the_job_is_that_of_its_trials(tmp_path: Path) -> None:
    code = """
import time
def main_batch(trials):
    for trial in trials:
        time.sleep(0.3)
        trial.tell(1)
"""
    run(tmp_path, code)
    first, second, third = (result(tmp_path, n)["seconds"] for n in (1, 2, 3))
    assert first < second < third
    whole = json.loads(Layout(tmp_path).batch(1).result.read_text())["seconds"]
    assert 0.9 <= first + second + third <= whole


def test_a_clock_that_is_set_back_changes_no_seconds(tmp_path: Path) -> None:
    code = """
import time
def main_batch(trials):
    time.time = lambda: 0.0
    for trial in trials:
        trial.tell(1)
"""
    run(tmp_path, code)
    assert all(0.0 <= result(tmp_path, n)["seconds"] < 60.0 for n in (1, 2, 3))
    assert 0.0 <= json.loads(Layout(tmp_path).batch(1).result.read_text())["seconds"] < 60.0


def test_main_batch_can_return_the_values(tmp_path: Path) -> None:
    code = """
import numpy as np
def main_batch(trials):
    trials[0].fail("no")
    return np.array([trial.params["x"][0] for trial in trials])
"""
    run(tmp_path, code)
    assert result(tmp_path, 1)["reason"] == "no"
    assert [result(tmp_path, n)["value"] for n in (2, 3)] == [0.2, 0.3]


def test_a_child_process_that_returns_tells_nothing(tmp_path: Path) -> None:
    code = """
import os
def main_batch(trials):
    child = os.fork()
    if not child:
        return [0.0, 0.0, 0.0]
    os.waitpid(child, 0)
    return [1.0, 2.0, 3.0]
"""
    run(tmp_path, code)
    assert [result(tmp_path, n)["value"] for n in (1, 2, 3)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("returned", ["[1.0, 2.0]", "0.5", "{1: 0.5}", "'abc'", "iter('abc')"])
def test_other_returned_values_are_the_reason_of_trials_without_a_result(
    tmp_path: Path, returned: str
) -> None:
    code = f"""
def main_batch(trials):
    trials[0].tell(1)
    return {returned}
"""
    run(tmp_path, code)
    assert result(tmp_path, 1)["value"] == 1.0
    reason = result(tmp_path, 2)["reason"]
    assert reason.startswith("main_batch returned ")
    assert reason.endswith(", expected a list of 3 values, one for each trial")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("trial.tell(float('nan'))", "trial 2 got NaN"),
        ("trial.tell('good')", "trial 2 got 'good', expected one number"),
        ("trial.fail('diverged\\n at 7')", "diverged at 7"),
        ("trial.fail(ValueError('no'))", "ValueError: no"),
        ("trial.fail('x' * 100000)", "x" * 2000),
        ("pass", "main_batch returned without a result of this trial"),
    ],
)
def test_a_trial_that_fails_does_not_change_the_others(
    tmp_path: Path, call: str, reason: str
) -> None:
    code = f"""
def main_batch(trials):
    for trial in trials:
        if trial.id == 2:
            {call}
        else:
            trial.tell(1)
        trial.tell(7) if trial.has_ended else None
"""
    run(tmp_path, code)
    assert result(tmp_path, 2)["reason"] == reason
    assert TOGETHER not in result(tmp_path, 2)
    assert result(tmp_path, 1)["value"] == result(tmp_path, 3)["value"] == 1.0


def test_an_exception_can_be_about_any_trial_without_a_result(tmp_path: Path) -> None:
    code = """
def main_batch(trials):
    trials[0].tell(1)
    raise MemoryError("too many")
"""
    output = run(tmp_path, code)
    assert "MemoryError" in output
    assert result(tmp_path, 1)["value"] == 1.0
    for n in (2, 3):
        assert result(tmp_path, n)[TOGETHER] is True
        assert result(tmp_path, n)["reason"] == "MemoryError: too many (wrapper.py:4)"


def test_an_exception_with_one_trial_left_is_about_it(tmp_path: Path) -> None:
    run(tmp_path, "def main_batch(trials):\n    raise ValueError('no')\n", (4,))
    assert result(tmp_path, 4)["reason"] == "ValueError: no (wrapper.py:2)"
    assert TOGETHER not in result(tmp_path, 4)


@pytest.mark.parametrize("code", ["import no_such_module\n", "def main(job_id, params): ...\n"])
def test_what_happens_before_the_call_is_not_retried(tmp_path: Path, code: str) -> None:
    run(tmp_path, code)
    for n in (1, 2, 3):
        assert result(tmp_path, n)["reason"].startswith(("ModuleNotFound", "wrapper.py has no"))
        assert TOGETHER not in result(tmp_path, n)


def test_names_of_several_values_are_those_of_the_search(tmp_path: Path) -> None:
    code = """
def main_batch(trials):
    trials[0].tell({"objective": 1, "memory": 2})
    trials[1].tell({"objective": 1})
"""
    run(tmp_path, code, (1, 2), outputs=["memory"])
    assert result(tmp_path, 1)["constraints"] == {"memory": 2.0}
    assert "no 'memory'" in result(tmp_path, 2)["reason"]


def test_steps_end_at_the_rung_of_the_trial(tmp_path: Path) -> None:
    code = """
def main_batch(trials):
    for trial in trials:
        trial.tell(len(trial.steps(20, after=2)))
"""
    run(tmp_path, code, (1,), steps=[1, 9])
    assert result(tmp_path, 1)["value"] == 7.0


STOPPABLE = """
import time
from pathlib import Path

def main_batch(trials):
    step = 0
    while not all(trial.has_ended for trial in trials):
        step += 1
        for trial in trials:
            if trial.id != 2 or not trial.report(step, 1.0):
                if Path("end").exists():
                    trial.tell(1.0)
        time.sleep(0.01)
"""


def test_a_stopped_trial_has_no_result(tmp_path: Path) -> None:
    argv = prepare(tmp_path, STOPPABLE, (1, 2))
    layout = Layout(tmp_path)
    with subprocess.Popen(argv) as job:
        until(lambda: read_reports(layout.folder(2).reports))
        layout.folder(2).stop.touch()
        until(lambda: not list(layout.folder(2).path.glob(".result*")))
        (tmp_path / "end").touch()
        assert job.wait() == 0
    assert result(tmp_path, 1)["value"] == 1.0
    assert not layout.folder(2).result.exists()


def test_a_trial_that_was_stopped_before_the_job_began_is_not_trained(tmp_path: Path) -> None:
    code = "def main_batch(trials):\n    [trial.tell(len(trials)) for trial in trials]\n"
    argv = prepare(tmp_path, code, (1, 2, 3))
    Layout(tmp_path).folder(2).stop.touch()
    assert subprocess.run(argv, check=False).returncode == 0
    assert [result(tmp_path, n)["value"] for n in (1, 3)] == [2.0, 2.0]
    assert not Layout(tmp_path).folder(2).result.exists()


def test_a_result_after_the_stop_is_not_stored(tmp_path: Path) -> None:
    code = """
def main_batch(trials):
    trials[0].folder.stop.touch()
    trials[0].tell(1)
"""
    run(tmp_path, code, (1,))
    assert not Layout(tmp_path).folder(1).result.exists()


def test_a_job_that_its_queue_restarts_continues_with_the_rest(tmp_path: Path) -> None:
    code = """
import os, signal
def main_batch(trials):
    trials[0].tell(trials[0].id)
    if len(trials) > 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    argv = prepare(tmp_path, code, (1, 2))
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
    assert not Layout(tmp_path).folder(2).result.exists()
    assert subprocess.run(argv, check=False).returncode == 0
    assert (result(tmp_path, 1)["value"], result(tmp_path, 2)["value"]) == (1.0, 2.0)


def test_a_full_disk_loses_no_result(tmp_path: Path) -> None:
    """The disk space of each result is reserved before ``main_batch`` is called."""
    code = """
import errno, os
def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")
def main_batch(trials):
    from spearmint.trial import result_file
    result_file.write_json = full
    for trial in trials:
        trial.tell(trial.id)
"""
    run(tmp_path, code)
    assert [result(tmp_path, n)["value"] for n in (1, 2, 3)] == [1.0, 2.0, 3.0]


def test_the_gpu_of_the_job_is_that_of_each_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-3f7a")
    run(tmp_path, "def main_batch(trials):\n    [trial.tell(1) for trial in trials]\n")
    for n in (1, 2, 3):
        runner = json.loads(Layout(tmp_path).folder(n).runner.read_text())
        assert (runner["gpus"], runner["host"]) == ("GPU-3f7a", os.uname().nodename)
