"""A pending trial is claimed once; between two trials a pilot ends leftover processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spearmint.layout import TrialFolder, write_json
from spearmint.trial.environment import DONE_FILE, JOB_ID_VARIABLE, PENDING_DIR
from spearmint.trial.pending import PendingTrials
from tests.waiting import is_running, until

CODE = {
    "quick": "def main(job_id, params):\n    print('ran', job_id)\n    return float(job_id)\n",
    "leaves": (
        "import os, subprocess\ndef main(job_id, params):\n"
        "    child = subprocess.Popen(['setsid', 'sleep', '60'], start_new_session=True)\n"
        "    open(f'child-{job_id}', 'w').write(str(child.pid))\n    return 0.0\n"
    ),
    "dies": "import os, signal\ndef main(job_id, params):\n    os.kill(os.getpid(), 9)\n",
    "waits": (
        "import os, time\ndef main(job_id, params):\n"
        "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 0.0\n"
    ),
    "slow": (
        "import time\ndef main(job_id, params):\n"
        "    open('begun', 'w').close()\n    time.sleep(600)\n"
    ),
}


def trial(root: Path, trial_id: int, name: str = "quick") -> TrialFolder:
    (root / f"{name}.py").write_text(CODE[name])
    folder = TrialFolder(root / f"{trial_id:08d}")
    folder.path.mkdir()
    spec = {"key": "k", "job_id": trial_id, "directory": str(root), "name": name}
    write_json(folder.spec, {**spec, "language": "PYTHON", "params": {}})
    return folder


def offer(pending: PendingTrials, root: Path, folder: TrialFolder, token: str) -> None:
    content = {
        "folder": str(folder.path),
        "output": str(root / f"out-{token}"),
        "ended": str(root / f"done-{token}"),
    }
    pending.offer(token, int(folder.path.name), content)


def start(root: Path, token: str, folder: TrialFolder, job: str = "11") -> subprocess.Popen[bytes]:
    done = str(root / f"done-{token}")
    environment = {
        **os.environ,
        PENDING_DIR: str(root / "t"),
        JOB_ID_VARIABLE: "QUEUE_S_OWN",
        "QUEUE_S_OWN": job,
        DONE_FILE: done,
    }
    argv = [sys.executable, "-P", "-m", "spearmint.trial.pilot", token, str(folder.path)]
    return subprocess.Popen(argv, env=environment)


def value(folder: TrialFolder) -> float:
    return json.loads(folder.result.read_text())["value"]


@pytest.fixture
def pending(tmp_path: Path) -> PendingTrials:
    return PendingTrials(tmp_path / "t")


def test_of_many_jobs_one_gets_a_trial(pending: PendingTrials, tmp_path: Path) -> None:
    for i in range(20):
        offer(pending, tmp_path, trial(tmp_path, i), f"token{i}")
    got: list[str] = []
    barrier = threading.Barrier(8)

    def take(job: str) -> None:
        barrier.wait()
        while (trial := pending.take_next(job)) is not None:
            write_json(Path(trial["folder"]) / "result.json", {})
            got.append(trial["folder"])

    threads = [threading.Thread(target=take, args=(str(i),)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(got) == [str(tmp_path / f"{i:08d}") for i in range(20)]


def test_claims(pending: PendingTrials, tmp_path: Path) -> None:
    offer(pending, tmp_path, TrialFolder(tmp_path / "00000001"), "a")
    assert pending.claim("a", "7")
    assert pending.claim("a", "7"), "the job restarted after its host was lost"
    assert not pending.claim("a", "8")
    assert pending.claim("never offered", "8")
    assert pending.withdraw("never offered")
    assert not pending.withdraw("a")
    offer(pending, tmp_path, TrialFolder(tmp_path / "00000001"), "a")
    assert pending.withdraw("a")
    assert pending.take_next("9") is None


def test_a_job_goes_on_with_what_waits_in_order(pending: PendingTrials, tmp_path: Path) -> None:
    folders = {token: trial(tmp_path, i) for i, token in enumerate("abc", start=1)}
    for token in "cba":
        offer(pending, tmp_path, folders[token], token)
    job = start(tmp_path, "a", folders["a"])
    assert job.wait() == 0
    assert [value(folder) for folder in folders.values()] == [1.0, 2.0, 3.0]
    assert pending.claims() == dict.fromkeys("abc", "11")
    assert all((tmp_path / f"done-{token}").exists() for token in "abc")
    assert (tmp_path / "out-b").read_text() == "ran 2\n", "each trial has its own output file"
    ends = [folders[token].result.stat().st_mtime for token in "abc"]
    assert ends == sorted(ends)


def test_a_trial_that_another_job_has_is_not_run(pending: PendingTrials, tmp_path: Path) -> None:
    folder = trial(tmp_path, 1)
    offer(pending, tmp_path, folder, "a")
    assert pending.claim("a", "7")
    assert start(tmp_path, "a", folder).wait() == 0
    assert not folder.result.exists()


def test_what_a_trial_left_is_ended_before_the_next(pending: PendingTrials, tmp_path: Path) -> None:
    first, second = trial(tmp_path, 1, "leaves"), trial(tmp_path, 2)
    offer(pending, tmp_path, second, "b")
    assert start(tmp_path, "a", first).wait() == 0
    assert value(second) == 2.0
    child = int((tmp_path / "child-1").read_text())
    assert not Path(f"/proc/{child}").exists()


def test_a_trial_that_is_killed_ends_the_job_by_the_same_signal(pending, tmp_path: Path) -> None:
    first, second = trial(tmp_path, 1, "dies"), trial(tmp_path, 2)
    offer(pending, tmp_path, second, "b")
    assert start(tmp_path, "a", first).wait() == -signal.SIGKILL
    assert not second.result.exists(), "another job must run the second trial"


def test_a_job_that_starts_again_goes_on_with_what_it_had_taken(pending, tmp_path: Path) -> None:
    first, second = trial(tmp_path, 1), trial(tmp_path, 2)
    write_json(first.result, {"value": 0.5, "key": "k"})
    offer(pending, tmp_path, second, "b")
    assert pending.take_next("11") is not None
    assert start(tmp_path, "a", first).wait() == 0
    assert (value(first), value(second)) == (0.5, 2.0)


def test_a_signal_to_the_job_reaches_the_trial(pending: PendingTrials, tmp_path: Path) -> None:
    folder = trial(tmp_path, 1, "slow")
    job = start(tmp_path, "a", folder)
    until((tmp_path / "begun").exists, step_s=0.01)
    job.send_signal(signal.SIGTERM)
    assert job.wait() == -signal.SIGTERM


def test_a_signal_between_two_trials_ends_the_job(pending: PendingTrials, tmp_path: Path) -> None:
    first, second = trial(tmp_path, 1, "waits"), trial(tmp_path, 2)
    offer(pending, tmp_path, second, "b")
    job = start(tmp_path, "a", first)
    until(first.runner.exists, step_s=0.01)
    job.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    runner = json.loads(first.runner.read_text())["pid"]
    until(lambda: not is_running(runner), step_s=0.01)
    job.send_signal(signal.SIGTERM)
    job.send_signal(signal.SIGCONT)
    assert job.wait() == -signal.SIGTERM
    assert not second.result.exists()


def test_ids_of_jobs_are_any_text(pending: PendingTrials, tmp_path: Path) -> None:
    """Ids of other queues have dots and slashes, and one id can be the end of another."""
    folder = TrialFolder(tmp_path / "00000001")
    folder.path.mkdir()
    offer(pending, tmp_path, folder, "a")
    assert pending.claim("a", "schedd/5.1")
    assert pending.claims() == {"a": "schedd/5.1"}
    assert pending.take_next("1") is None, "that is another job"
    assert pending.take_next("schedd/5.1") is not None, "the job continues after a restart"
    assert not pending.claim("a", "1")
    pending.forget("a")
    assert pending.claims() == {}
