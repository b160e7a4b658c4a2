"""Local trials that start from a warm process."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from spearmint.drivers import DriverSettings, Job, JobRequest
from spearmint.drivers.local import LocalDriver
from spearmint.drivers.testing import DriverContract
from spearmint.drivers.testing.trials import QUICK, SLOW, make_request, until_gone, value_of
from spearmint.drivers.warm_starts import WarmStarts
from spearmint.trial.warm import forks
from spearmint.trial.warm.client import Started, WarmProcess
from spearmint.trial.warm.imports import imports_of
from spearmint.trial.warm.messages import send
from tests.waiting import is_running, until

LIMIT_S = 60
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="trials are forked on Linux only")


class WarmDriver(LocalDriver):
    """Waits until the warm process is ready, or until it never will be."""

    def submit(self, request: JobRequest) -> Job:
        found = self._warm.process_for(request.folder, self._shared())
        assert found is not None
        until(lambda: found.is_ready() or found.problem, LIMIT_S, 0.01)
        return super().submit(request)


class TestWarmLocalDriver(DriverContract):
    def make_driver(self, directory: Path) -> LocalDriver:
        return WarmDriver(DriverSettings(directory=directory, max_concurrent=2))


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WarmDriver:
    # A fork that takes longer than 10 s is replaced by a new process, also on a busy machine.
    monkeypatch.setattr("spearmint.trial.warm.client._START_S", LIMIT_S)
    return WarmDriver(DriverSettings(directory=tmp_path, max_concurrent=2))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory of installed modules."""
    path = tmp_path / "installed"
    path.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(path))
    return path


def run(driver: LocalDriver, request: JobRequest) -> tuple[bool, float]:
    """Run a trial; return whether it was forked, and its value."""
    job = driver.submit(request)
    until_gone(driver, job)
    return job in driver._forked, value_of(request)


def test_modules_are_imported_once_and_the_wrapper_each_time(
    driver: WarmDriver, tmp_path: Path, installed: Path
) -> None:
    note = f"open({str(tmp_path / 'imports')!r}, 'a').write('x')\n"
    (installed / "heavy.py").write_text(note)
    (tmp_path / "helper.py").write_text("import heavy\n")
    code = "import helper\ndef main(job_id, params):\n    return {0}  # {0:{0}}\n"
    assert run(driver, make_request(tmp_path, code.format(1), 1)) == (True, 1)
    assert run(driver, make_request(tmp_path, code.format(2), 2)) == (True, 2)
    assert (tmp_path / "imports").read_text() == "x"
    (installed / "heavy.py").write_text(note * 2)
    forked, value = run(driver, make_request(tmp_path, code.format(3), 3))
    assert (forked, value) == (False, 3)  # a new process has the new module
    assert run(driver, make_request(tmp_path, code.format(4), 4)) == (True, 4)


@pytest.mark.parametrize(
    ("installed_code", "wrapper", "named"),
    [
        (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(9999,), daemon=True).start()\n",
            "import heavy\n",
            "heavy",
        ),
        ("", "import os\nos.environ['MODE'] = 'x'\nimport heavy\n", "environment"),
        ("", "import os\nos.environ.setdefault('MODE', 'x')\nimport heavy\n", "environment"),
    ],
    ids=["threads", "assignment", "setdefault"],
)
def test_code_that_must_not_be_forked_starts_in_new_processes(
    driver: WarmDriver,
    tmp_path: Path,
    installed: Path,
    installed_code: str,
    wrapper: str,
    named: str,
) -> None:
    (installed / "heavy.py").write_text(installed_code)
    for trial in (1, 2):
        forked, value = run(driver, make_request(tmp_path, wrapper + QUICK, trial))
        assert (forked, value) == (False, 0.5)
    (notice,) = driver.notices()
    assert named in notice
    assert not driver.notices()


def test_a_module_that_cannot_be_imported_fails_the_trial_and_not_the_driver(
    driver: WarmDriver, tmp_path: Path, installed: Path
) -> None:
    (installed / "heavy.py").write_text("raise OSError('no licence')\n")
    request = make_request(tmp_path, "import heavy\n" + QUICK)
    job = driver.submit(request)
    until_gone(driver, job)
    assert "no licence" in json.loads(request.folder.result.read_text())["reason"]


def test_each_trial_has_its_own_random_numbers_and_environment(
    driver: WarmDriver, tmp_path: Path
) -> None:
    code = (
        "import os, random, numpy as np\n"
        "def main(job_id, params):\n"
        "    print(os.environ['SPEARMINT_TRIAL_DIR'], os.getcwd())\n"
        "    np.random.rand() + random.random()\n"
        "    return np.random.rand() + random.random()\n"
    )
    requests = [make_request(tmp_path, code, trial) for trial in (1, 2)]
    found = [run(driver, request) for request in requests]
    assert [forked for forked, _ in found] == [True, True]
    assert found[0][1] != found[1][1]
    said = requests[1].output.read_text().splitlines()
    assert said == [f"{request.folder.files} {tmp_path}" for request in requests]


def test_functions_of_atexit_run(driver: WarmDriver, tmp_path: Path) -> None:
    code = (
        f"import atexit, pathlib\natexit.register(pathlib.Path({str(tmp_path / 'end')!r}).touch)\n"
    )
    assert run(driver, make_request(tmp_path, code + QUICK)) == (True, 0.5)
    assert (tmp_path / "end").exists()


def test_a_process_in_its_own_session_ends_with_the_trial(
    driver: WarmDriver, tmp_path: Path
) -> None:
    code = (
        "import subprocess\ndef main(job_id, params):\n"
        "    child = subprocess.Popen(['env', '-i', 'sleep', '999'], start_new_session=True)\n"
        "    open('child', 'w').write(str(child.pid))\n"
        "    return 0.5\n"
    )
    request = make_request(tmp_path, code)
    job = driver.submit(request)
    until_gone(driver, job)
    driver.cancel([job])
    assert not is_running(int((tmp_path / "child").read_text()))


def test_a_warm_process_that_hangs_or_dies_is_replaced(
    driver: WarmDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(driver, make_request(tmp_path, QUICK, 1)) == (True, 0.5)
    (warm,) = driver._warm._processes.values()
    hung, fork = warm, WarmProcess.fork

    def fork_or_give_up(warm: WarmProcess, *args: Any) -> Started | None:
        with monkeypatch.context() as patch:
            limit_s = 0.0 if warm is hung else LIMIT_S
            patch.setattr("spearmint.trial.warm.client._START_S", limit_s)
            return fork(warm, *args)

    monkeypatch.setattr(WarmProcess, "fork", fork_or_give_up)
    os.kill(warm._child.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(warm._child.pid).status() == psutil.STATUS_STOPPED, LIMIT_S)
    assert run(driver, make_request(tmp_path, QUICK, 2)) == (True, 0.5)
    (other,) = driver._warm._processes.values()
    assert other is not warm
    warm = other
    warm._child.kill()
    warm._child.wait()
    assert run(driver, make_request(tmp_path, QUICK, 4))[1] == 0.5
    assert run(driver, make_request(tmp_path, QUICK, 5)) == (True, 0.5)


def test_a_trial_outlives_the_warm_process_and_its_driver(tmp_path: Path) -> None:
    driver = WarmDriver(DriverSettings(directory=tmp_path))
    request = make_request(tmp_path, SLOW)
    job = driver.submit(request)
    (warm,) = driver._warm._processes.values()
    pid = warm._child.pid
    del driver, warm
    until(lambda: not is_running(pid), LIMIT_S, 0.05)
    heir = LocalDriver(DriverSettings(directory=tmp_path))
    assert heir.adopt(request.folder) == job
    heir.cancel([job])


def test_imports_are_found_without_running_the_code(tmp_path: Path) -> None:
    (tmp_path / "wrapper.py").write_text(
        "import json.decoder, helper\nraise SystemExit\n"
        "def main(job_id, params):\n    from email import message\n"
    )
    (tmp_path / "helper.py").write_text("import wrapper, csv, nowhere_to_be_found\n")
    found = imports_of(tmp_path, "wrapper")
    assert set(found.modules) == {"json.decoder", "csv", "email", "email.message"}
    assert not found.writes_environment
    (tmp_path / "helper.py").write_text("import os\ndel os.environ['A']\n")
    assert imports_of(tmp_path, "wrapper").writes_environment
    (tmp_path / "wrapper.py").write_text("print 'Python 2'\n")
    assert imports_of(tmp_path, "wrapper").modules == []


def open_files() -> set[str]:
    """Return the open files of this process, by number."""
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the numbers


def test_many_trials_leave_no_open_file_and_one_keeper_that_waits(
    driver: WarmDriver, tmp_path: Path
) -> None:
    gc.collect()  # an object of an earlier test can have an open file
    seen = set[str]()
    for trial in range(1, 6):
        request = make_request(tmp_path, QUICK, trial)
        job = driver.submit(request)
        until_gone(driver, job)
        driver.cancel([job])
        assert job in driver._forked
        new = open_files() - seen
        assert trial == 1 or not new, new
        seen |= new
    (warm,) = driver._warm._processes.values()
    found = psutil.Process(warm._child.pid)
    until(lambda: len(found.children()) == 1, LIMIT_S, 0.05)
    (keeper,) = found.children()
    until(lambda: len(keeper.children()) == 1, LIMIT_S, 0.05)
    (runner,) = keeper.children()
    found.kill()
    until(lambda: not is_running(keeper.pid) and not is_running(runner.pid), LIMIT_S, 0.05)


def test_a_keeper_that_was_killed_costs_no_trial(driver: WarmDriver, tmp_path: Path) -> None:
    assert run(driver, make_request(tmp_path, QUICK, 1)) == (True, 0.5)
    (warm,) = driver._warm._processes.values()
    found = psutil.Process(warm._child.pid)
    until(lambda: len(found.children(recursive=True)) == 2, LIMIT_S, 0.05)
    for each in found.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it exits when its keeper does
            each.kill()
    assert run(driver, make_request(tmp_path, QUICK, 2))[1] == 0.5
    assert run(driver, make_request(tmp_path, QUICK, 3))[1] == 0.5
    assert run(driver, make_request(tmp_path, QUICK, 4)) == (True, 0.5)


def test_the_first_trial_waits_for_the_imports(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spearmint.drivers.warm_starts._IMPORT_S", LIMIT_S)
    monkeypatch.setattr("spearmint.trial.warm.client._START_S", LIMIT_S)
    (installed / "heavy.py").write_text("import time\ntime.sleep(1)\n")
    driver = LocalDriver(DriverSettings(directory=tmp_path))
    assert run(driver, make_request(tmp_path, "import heavy\n" + QUICK)) == (True, 0.5)


def test_a_thread_of_jemalloc_does_not_prevent_a_fork() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        before = forks.threads()
        comm = Path(f"/proc/self/task/{thread.native_id}/comm")
        comm.write_text("jemalloc_bg_thd")
        assert forks.threads() == before - 1
    finally:
        stop.set()
        thread.join()


def test_only_the_first_trial_waits_for_slow_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    class NeverReady:
        def register(self, fd: object, events: int) -> None:
            pass

        def poll(self, timeout_ms: float) -> list[object]:
            waits.append(timeout_ms)
            return []

    fake = SimpleNamespace(poll=NeverReady, POLLIN=select.POLLIN)
    monkeypatch.setattr("spearmint.trial.warm.client.select", fake)
    starts = WarmStarts()
    for trial in (1, 2, 3):
        folder = make_request(tmp_path, QUICK, trial).folder
        assert starts.start(folder, os.environ, os.environ, ()) is None
    assert len([wait for wait in waits if wait > 0]) == 1


def _keeper(code: str, lock: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a keeper after ``code``, with a request; return it and its report."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = (
        "import os, signal, socket, sys, time\nfrom spearmint.trial.warm import keeper\n"
        f"{code}\nkeeper.keep(socket.socket(fileno=int(sys.argv[1])), None)\n"
    )
    argv = [sys.executable, "-P", "-c", code, str(theirs.fileno())]
    report, end = os.pipe()
    with ours, theirs, lock.open("w") as file, os.fdopen(end, "wb") as to_driver:
        keeper = subprocess.Popen(argv, pass_fds=(theirs.fileno(),))
        send(ours, {}, (file.fileno(), file.fileno(), to_driver.fileno()))
    return keeper, report


def test_a_keeper_tells_the_runner_before_the_runner_starts(tmp_path: Path) -> None:
    keeper, report = _keeper("keeper.send = lambda *_: os._exit(9)", tmp_path / "lock")
    assert keeper.wait(LIMIT_S) == 9  # as if it was killed then
    with os.fdopen(report) as file:
        assert int(file.read()) > 0


def test_a_runner_that_was_killed_while_it_waited_is_not_reported(tmp_path: Path) -> None:
    # The runner exits at once; its keeper reads the request afterwards.
    code = (
        "keeper._wait_and_run = lambda *_, **__: os._exit(9)\n"
        "keeper.receive = lambda channel, read=keeper.receive: (\n"
        "    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT), read(channel))[1]"
    )
    keeper, report = _keeper(code, tmp_path / "lock")
    assert keeper.wait(LIMIT_S) == 0
    with os.fdopen(report) as file:
        assert file.read() == ""


def test_the_cpu_time_of_trials_counts_as_that_of_the_search(tmp_path: Path) -> None:
    (tmp_path / "wrapper.py").write_text(
        "import time\ndef main(job_id, params):\n"
        "    while time.process_time() < 3:\n        pass\n    return 0.0\n"
    )
    (tmp_path / "config.pb").write_text(
        'language: PYTHON\nname: "wrapper"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
    )
    code = (
        "import ctypes, os, resource, subprocess, sys\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  # waits for what the search leaves
        "subprocess.run([sys.executable, '-m', 'spearmint', *sys.argv[1:]], check=True)\n"
        "try:\n    while os.wait():\n        pass\n"
        "except ChildProcessError:\n    pass\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime)\n"
    )
    options = ["--max-finished-jobs=2", "--method=RandomChooser", "-n1", str(tmp_path)]
    argv = [sys.executable, "-c", code, *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[-1]) >= 6.0
