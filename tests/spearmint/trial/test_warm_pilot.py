"""A pilot forks its trials from a process that has imported the modules of the user's code."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from spearmint.layout import TrialFolder, write_json
from spearmint.trial.pending import PendingTrials
from spearmint.trial.warm import forks
from tests.spearmint.trial.test_pilot import offer, start, value
from tests.waiting import is_running, until

LIMIT_S = 60
NAME = "wrapper"
START = "import heavy, json, os, time\ndef main(job_id, params):\n"
RECORD = (
    "    facts = {'parent': os.getppid(), 'group': os.getpgid(0), 'session': os.getsid(0),\n"
    "             'gpus': os.environ.get('CUDA_VISIBLE_DEVICES'), 'pid': os.getpid()}\n"
    "    open(f'facts-{job_id}', 'w').write(json.dumps(facts))\n"
)
WAIT = "    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
END = "    return float(job_id)\n"
TERMINATED = (
    "    import signal\n"
    "    signal.signal(signal.SIGTERM, lambda *_: (open('term', 'a').write('x'), os._exit(3)))\n"
)


class Job:
    """The trials of one pilot, and the file that counts the imports of the module ``heavy``."""

    def __init__(self, root: Path) -> None:
        self.root, self.pending = root, PendingTrials(root / "t")
        self.folders: list[TrialFolder] = []
        self.imports = root / "imports"
        self.installed = root / "installed"
        self.installed.mkdir()
        self.write_module("")

    def write_module(self, code: str) -> None:
        """Replace the module ``heavy``."""
        count = f"open({str(self.imports)!r}, 'a').write('x')\n"
        (self.installed / "heavy.py").write_text(count + code)

    def write(self, *parts: str) -> None:
        """Replace the user's code."""
        (self.root / f"{NAME}.py").write_text("".join(parts))

    def trials(self, count: int) -> None:
        """Create the first trial, and offer the others to pilots."""
        for i in range(1, count + 1):
            folder = TrialFolder(self.root / f"{i:08d}")
            folder.path.mkdir()
            spec = {"key": "k", "job_id": i, "directory": str(self.root), "name": NAME}
            write_json(folder.spec, {**spec, "language": "PYTHON", "params": {}})
            if i > 1:
                offer(self.pending, self.root, folder, f"token{i}")
            self.folders.append(folder)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the pilot."""
        return start(self.root, "token1", self.folders[0])

    def facts(self, trial: int) -> Mapping[str, Any]:
        """Return what a trial wrote about itself."""
        return json.loads((self.root / f"facts-{trial}").read_text())

    def until_facts(self, trial: int) -> Mapping[str, Any]:
        """Wait until a trial has written about itself."""
        path = self.root / f"facts-{trial}"
        until(lambda: path.exists() and path.read_text().endswith("}"), LIMIT_S, 0.01)
        return self.facts(trial)

    def count(self) -> int:
        """Return how often ``heavy`` was imported."""
        return len(self.imports.read_text())


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    made = Job(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(made.installed), prepend=os.pathsep)
    return made


def test_trials_are_forked_and_stay_in_the_job(job: Job, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-7")
    job.write(START, RECORD, END)
    job.trials(3)
    pilot = job.start()
    assert pilot.wait() == 0
    assert [value(folder) for folder in job.folders] == [1.0, 2.0, 3.0]
    assert job.count() == 1
    facts = [job.facts(trial) for trial in (1, 2, 3)]
    assert len({each["pid"] for each in facts}) == 3
    assert {each["group"] for each in facts} == {os.getpgid(0)}
    assert {each["session"] for each in facts} == {os.getsid(0)}
    assert {each["gpus"] for each in facts} == {"GPU-7"}
    found = [json.loads(folder.runner.read_text())["gpus"] for folder in job.folders]
    assert found == ["GPU-7"] * 3


def test_changed_modules_are_imported_again(job: Job) -> None:
    (job.root / "helper.py").write_text("import heavy\n")
    job.write(
        "import helper, pathlib\ndef main(job_id, params):\n"
        "    if job_id == 1:\n"
        f"        path = pathlib.Path({str(job.installed / 'heavy.py')!r})\n"
        "        import time; time.sleep(1.1)  # files of installed packages: once a second\n"
        "        path.write_text(path.read_text() + 'NEW = 7.0\\n')\n"
        "    import heavy\n    return getattr(heavy, 'NEW', 0.0)\n",
    )
    job.trials(3)
    assert job.start().wait() == 0
    assert [value(folder) for folder in job.folders] == [0.0, 7.0, 7.0]
    assert job.count() == 2, "not once for the second trial and once for the third"


def test_trials_hold_the_lock_of_the_gpu_and_nothing_holds_it_after_the_job(job: Job) -> None:
    path = job.root / "gpu"
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(held, fcntl.LOCK_EX)
    job.write(START, RECORD, "    os.fstat(", str(held), ")\n", END)
    job.trials(2)
    os.set_inheritable(held, True)
    argv, environment = _command(job)
    pilot = subprocess.Popen(argv, env=environment, pass_fds=[held])
    os.close(held)
    assert pilot.wait() == 0
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert [value(folder) for folder in job.folders] == [1.0, 2.0]


def _command(job: Job) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of the pilot, to start it in another way."""
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda argv, env: seen.extend((argv, env)))
        job.start()
    return seen[0], seen[1]


def test_a_warning_to_all_processes_of_the_job_reaches_only_the_trial(job: Job) -> None:
    warned = "    import signal\n    signal.signal(10, lambda *_: open('warned', 'a').write('x'))\n"
    job.write(START, warned, RECORD, WAIT, END)
    job.trials(2)
    pilot = job.start()
    job.until_facts(1)
    for each in psutil.Process(pilot.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGUSR1)
    until((job.root / "warned").exists, LIMIT_S, 0.01)
    (job.root / "go").touch()
    assert pilot.wait() == 0
    assert (job.root / "warned").read_text() == "x"
    assert job.count() == 1, "the warm process continues"


def test_a_signal_reaches_a_forked_trial_once(job: Job) -> None:
    job.write(START, TERMINATED, RECORD, WAIT, END)
    job.trials(2)
    pilot = job.start()
    job.until_facts(1)
    pilot.send_signal(signal.SIGTERM)
    assert pilot.wait() == 3
    assert (job.root / "term").read_text() == "x"
    assert not job.folders[1].result.exists()


def test_a_signal_while_modules_are_imported_ends_the_job(job: Job) -> None:
    job.write_module("import time\ntime.sleep(999)\n")
    job.write(START, END)
    job.trials(1)
    pilot = job.start()
    until(job.imports.exists, LIMIT_S, 0.01)
    children = psutil.Process(pilot.pid).children(recursive=True)
    pilot.send_signal(signal.SIGTERM)
    assert pilot.wait() == -signal.SIGTERM
    assert not any(is_running(child.pid) for child in children)


def test_modules_that_must_not_be_forked_start_new_processes(job: Job) -> None:
    job.write_module(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(999,), daemon=True).start()\n"
    )
    job.write(START, END)
    job.trials(3)
    log = job.root / "log"
    argv, environment = _command(job)
    with log.open("w") as file:
        pilot = subprocess.Popen(argv, env=environment, stderr=file)
    assert pilot.wait() == 0
    assert [value(folder) for folder in job.folders] == [1.0, 2.0, 3.0]
    assert job.count() == 4, "once in the warm process"
    assert log.read_text().count("Each trial starts a new process: heavy started") == 1
    assert "starts a new" not in (job.root / "out-token2").read_text()


def test_a_job_with_a_limit_of_virtual_memory_starts_new_processes(job: Job) -> None:
    job.write(START, END)
    job.trials(2)
    argv, environment = _command(job)
    limit = 1 << 40
    pilot = subprocess.Popen(
        argv,
        env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert pilot.wait() == 0
    assert job.count() == 2, "Grid Engine adds up the virtual memory of all processes"


@pytest.mark.parametrize("killed", ["keeper", "warm process"])
def test_a_killed_process_between_pilot_and_trial_costs_no_trial(job: Job, killed: str) -> None:
    job.write(START, RECORD, WAIT, END)
    job.trials(3)
    pilot = job.start()
    facts = job.until_facts(1)
    keeper = psutil.Process(facts["parent"])
    (keeper if killed == "keeper" else keeper.parent()).kill()
    (job.root / "go").touch()
    assert pilot.wait() == 0
    assert [value(folder) for folder in job.folders] == [1.0, 2.0, 3.0]


def test_a_signal_reaches_a_trial_whose_keeper_was_killed_once(job: Job) -> None:
    job.write(START, TERMINATED, RECORD, WAIT, END)
    job.trials(2)
    pilot = job.start()
    facts = job.until_facts(1)
    psutil.Process(facts["parent"]).kill()
    until(lambda: psutil.Process(facts["pid"]).ppid() == pilot.pid, LIMIT_S, 0.01)
    until(lambda: not is_running(facts["parent"]), LIMIT_S, 0.01)
    pilot.send_signal(signal.SIGTERM)
    assert pilot.wait() == 3
    assert (job.root / "term").read_text() == "x"
    assert not job.folders[1].result.exists()


def test_a_trial_of_a_killed_pilot_goes_on_and_obeys_signals(job: Job) -> None:
    job.write(START, TERMINATED, RECORD, WAIT, END)
    job.trials(1)
    pilot = job.start()
    facts = job.until_facts(1)
    keeper = psutil.Process(facts["parent"])
    warm = keeper.parent()
    assert warm is not None
    pilot.kill()
    pilot.wait()
    until(lambda: not is_running(warm.pid), LIMIT_S, 0.01)
    assert is_running(facts["pid"])
    keeper.terminate()
    until(lambda: not is_running(facts["pid"]) and not is_running(keeper.pid), LIMIT_S, 0.01)
    assert (job.root / "term").read_text() == "x"


def test_an_open_gpu_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nvidia0"
    monkeypatch.setattr(forks, "_GPUS", (str(tmp_path / "nvidia"),))
    assert not forks.gpu_device()
    with path.open("w"):
        assert forks.gpu_device() == str(path)


def test_shell_scripts_are_not_forked(job: Job) -> None:
    job.trials(2)
    for folder in job.folders:
        spec = json.loads(folder.spec.read_text())
        write_json(folder.spec, {**spec, "language": "SHELL"})
    (job.root / f"{NAME}.sh").write_text("echo 4 > $SPEARMINT_RESULT\n")
    assert job.start().wait() == 0
    assert [value(folder) for folder in job.folders] == [4.0, 4.0]
