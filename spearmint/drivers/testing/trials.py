"""Trials for tests of drivers, and functions that wait for their events."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spearmint.drivers.base import Driver, Job, JobRequest, JobState
from spearmint.errors import DriverUnreachable
from spearmint.layout import TrialFolder, write_json

_LIMIT_S = 200  # hosts of a real queue can be busy
QUICK = "def main(job_id, params):\n    print('hello')\n    return 0.5\n"
SLOW = "import time\ndef main(job_id, params):\n    time.sleep(600)\n    return 0.5\n"
COUNTED = "def main(job_id, params):\n    open('starts', 'a').write('x')\n    return 0.5\n"
PARENT = (
    "import subprocess, time\ndef main(job_id, params):\n"
    "    child = subprocess.Popen(['env', '-i', 'sleep', '600'])\n"
    "    open('child.pid', 'w').write(f'{child.pid}.')\n    time.sleep(600)\n"
)
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('deaf', 'w')\n" + SLOW
PATIENT = (
    "import os, time\ndef main(job_id, params):\n"
    "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 0.5\n"
)


def make_request(root: Path, code: str, trial_id: int = 1) -> JobRequest:
    """Write the folder of a trial in ``root`` that runs ``code``, and return its request."""
    # A driver may run the trial in a copy of the directory.
    (root / "wrapper.py").write_text(f"import os\nos.chdir({str(root)!r})\n{code}")
    folder = TrialFolder(root / f"a 'quoted': trial {trial_id}")
    folder.path.mkdir()
    spec = {"key": "k", "job_id": trial_id, "directory": str(root), "name": "wrapper"}
    write_json(folder.spec, {**spec, "language": "PYTHON", "params": {}})
    return JobRequest(
        name=f"wrapper-{trial_id:08d}", folder=folder, directory=root, output=root / "out put.txt"
    )


def until(happens: Callable[[], object], what: str) -> None:
    """Wait until ``happens`` returns a true value; fail after some minutes."""
    deadline = time.monotonic() + _LIMIT_S
    while not happens():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {_LIMIT_S} s: {what}")
        time.sleep(0.01)


def until_gone(driver: Driver, job: Job) -> None:
    """Wait until ``job`` has ended."""
    until(lambda: driver.poll([job])[job] is JobState.GONE, "the job is GONE")


def expect(condition: object, rule: str) -> None:
    """Fail with the text ``rule`` unless ``condition`` is true."""
    if not condition:
        pytest.fail(rule)


def child_of(root: Path) -> int:
    """Return the id of the process that the trial PARENT started."""
    path = root / "child.pid"
    until(lambda: path.exists() and path.read_text().endswith("."), "the trial starts its child")
    return int(path.read_text().rstrip("."))


def value_of(request: JobRequest) -> float:
    """Return the value in the trial's result file."""
    return float(json.loads(request.folder.result.read_text())["value"])


def submit_again(driver: Driver, request: JobRequest) -> Job:
    """Retry the submission, as a controller does, until the queue is reachable."""
    submitted: list[Job] = []

    def submit() -> bool:
        with contextlib.suppress(DriverUnreachable):
            submitted.append(driver.submit(request))
        return bool(submitted)

    until(submit, "the trial is submitted")
    return submitted[0]


def poll_until(driver: Driver, job: Job, path: Path) -> None:
    """Poll, as a controller does, until the trial has created ``path``."""

    def polled() -> bool:
        driver.poll([job])
        return path.exists()

    until(polled, f"the trial creates {path.name}")
