"""Trials on a shared GPU, one of which has a fatal GPU error."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from spearmint.trial.neighbours import MOST_RERUNS, culprit
from tests.spearmint.trial.test_runner import run_trial

# The log of nvidia-cuda-mps-server 580, with the process that had the error.
LOG = """\
[{at} Server   552] Client {{PID: {pid}, Context: 1}} encountered a fatal GPU error.
[{at} Server   552] Server is handling a fatal GPU error.
[{at} Server   552] The following client process have a sticky error set:
[{at} Server   552] 535
"""
FOREIGN = 9_999_999  # larger than any process id
FAILS = f"""
import datetime, os, pathlib
LOG = {LOG!r}

def main(job_id, params):
    runs = pathlib.Path(os.environ["SPEARMINT_TRIAL_DIR"], "runs")
    count = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (count + 1))
    if count >= TIMES:
        return 2.5
    at = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    with open(os.environ["CUDA_MPS_PIPE_DIRECTORY"] + "/server.log", "a") as log:
        log.write(LOG.format(at=at, pid=PID))
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
"""


@pytest.fixture
def pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "pipes"
    found.mkdir()
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(found))
    return found


def test_a_trial_that_a_neighbour_ended_runs_again(tmp_path: Path, pipes: Path) -> None:
    result, output = run_trial(
        tmp_path, FAILS.replace("TIMES", "2").replace("pid=PID", f"pid={FOREIGN}")
    )
    assert result["value"] == 2.5
    assert output.count(str(FOREIGN)) == 2
    assert not list((tmp_path / "jobs" / "00000007").glob(".result*"))


def test_a_trial_that_is_ended_again_and_again_fails(tmp_path: Path, pipes: Path) -> None:
    result, output = run_trial(
        tmp_path, FAILS.replace("TIMES", "99").replace("pid=PID", f"pid={FOREIGN}")
    )
    assert "illegal memory access" in result["reason"]
    assert output.count(str(FOREIGN)) == MOST_RERUNS


def test_a_trial_with_an_error_of_its_own_fails_at_once(tmp_path: Path, pipes: Path) -> None:
    result, _ = run_trial(
        tmp_path, FAILS.replace("TIMES", "1").replace("pid=PID", "pid=os.getpid()")
    )
    assert "illegal memory access" in result["reason"]


def test_only_errors_during_the_trial_count(tmp_path: Path) -> None:
    at = "2026-11-22 21:49:21.840"
    (tmp_path / "server.log").write_text(LOG.format(at=at, pid=561))
    shared = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    seconds = datetime.fromisoformat(at).timestamp()
    assert culprit(seconds - 1, shared) == 561
    assert culprit(seconds + 1, shared) == 0
    assert culprit(seconds - 1, {}) == 0
    (tmp_path / "server.log").write_text(LOG.format(at=at, pid=os.getpid()))
    assert culprit(seconds - 1, shared) == 0
    assert culprit(time.time(), {"CUDA_MPS_PIPE_DIRECTORY": "/nowhere"}) == 0
