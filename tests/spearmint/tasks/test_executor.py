"""Functions that run as jobs, with futures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, as_completed
from pathlib import Path

import pytest

from spearmint.errors import InputError
from spearmint.layout import read_json, write_json
from spearmint.tasks import Task, TaskExecutor, TaskFailed
from spearmint.tasks.keywords import resources_of
from tests.waiting import is_running, until

Make = Callable[..., TaskExecutor]
LIMIT_S = 60


class OwnError(Exception):
    """An exception with two arguments, which pickles only by its arguments."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.both = (first, second)


def divide(a: float, b: float) -> float:
    return a / b


def sleeps(path: Path) -> None:
    child = subprocess.Popen(["env", "-i", "sleep", "100"])
    path.write_text(str(child.pid))
    time.sleep(100)


def dies_once(path: Path) -> str:
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "second"


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text(), LIMIT_S, 0.05)
    return int(path.read_text())


def test_values_and_exceptions_arrive_as_they_are(make: Make) -> None:
    unit = 2
    with make() as executor:
        assert list(executor.map(lambda x: (x * unit, {"x": x}), range(3))) == [
            (0, {"x": 0}),
            (2, {"x": 1}),
            (4, {"x": 2}),
        ]
        failed = executor.submit(divide, 1, b=0)
        own = executor.submit(_raise_own)
        with pytest.raises(ZeroDivisionError) as caught:
            failed.result(LIMIT_S)
        assert str(failed.output) in "".join(caught.value.__notes__)
        assert "ZeroDivisionError" in failed.output.read_text()
        with pytest.raises(OwnError) as other:
            own.result(LIMIT_S)
        assert other.value.both == (1, 2)
        big = executor.submit(lambda: b"x" * 20_000_000)
        assert len(big.result(LIMIT_S)) == 20_000_000
        assert {each.id for each in as_completed([failed, own, big])} == {4, 5, 6}


def _raise_own() -> None:
    raise OwnError(1, 2)


def test_what_cannot_be_sent_is_said_at_once_or_in_the_future(make: Make) -> None:
    with make() as executor:
        with pytest.raises(InputError, match=r"divide"):
            executor.submit(divide, threading.Lock(), 1)
        task = executor.submit(lambda: (each for each in ()))
        with pytest.raises(TypeError, match="generator"):
            task.result(LIMIT_S)
        assert list(executor.tasks) == [1]  # the refused one has no number


def test_a_lost_job_is_run_again_and_at_last_fails(make: Make, tmp_path: Path) -> None:
    with make(max_retries=1) as executor:
        assert executor.submit(dies_once, tmp_path / "once").result(LIMIT_S) == "second"
        task = executor.submit(lambda: os.kill(os.getpid(), signal.SIGKILL))
        with pytest.raises(TaskFailed, match=r"SIGKILL.*2 times"):
            task.result(LIMIT_S)


def test_cancel_ends_the_processes_of_a_running_task(make: Make, tmp_path: Path) -> None:
    with make() as executor:
        task = executor.submit(sleeps, tmp_path / "child")
        child = pid_in(tmp_path / "child")
        until(task.running, LIMIT_S, 0.05)
        assert task.cancel()
        with pytest.raises(CancelledError):
            task.result()
        until(lambda: not is_running(child), LIMIT_S, 0.05)
        assert executor.submit(divide, 1, 2).result(LIMIT_S) == 0.5
    with make() as executor:
        assert executor.tasks[task.id].cancelled()


def test_an_exception_in_the_block_ends_local_tasks(make: Make, tmp_path: Path) -> None:
    executor = make(max_concurrent=1)
    tasks = [executor.submit(sleeps, tmp_path / "child") for _ in range(3)]
    child = pid_in(tmp_path / "child")
    executor.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert all(task.cancelled() for task in tasks)
    until(lambda: not is_running(child), LIMIT_S, 0.05)


KILLED = """
import os, signal, sys, time
from pathlib import Path
import spearmint

def work(n, go):
    with open(go.with_name("starts"), "a") as file:
        file.write(f"{n}\\n")
    while not go.exists():
        time.sleep(0.02)
    return n * n

if __name__ == "__main__":
    root = Path(sys.argv[1])
    executor = spearmint.executor(directory=root / "tasks", max_concurrent=2)
    for n in range(4):
        executor.submit(work, n, root / "go")
    while not (root / "starts").exists() or len((root / "starts").read_text().split()) < 2:
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_executor_finds_the_tasks_of_one_that_was_killed(
    make: Make, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    done = subprocess.run([sys.executable, script, tmp_path], check=False)
    assert done.returncode == -signal.SIGKILL
    (tmp_path / "tasks/output/00000009.out").touch()
    (tmp_path / "tasks/jobs/00000009").mkdir()  # killed before it described the task
    with make(max_concurrent=2) as executor:
        assert list(executor.tasks) == [1, 2, 3, 4]
        (tmp_path / "go").touch()
        values = [task.result(LIMIT_S) for task in executor.tasks.values()]
        assert values == [0, 1, 4, 9]
    assert sorted((tmp_path / "starts").read_text().split()) == ["0", "1", "2", "3"]
    with make() as again:
        assert [task.result(0) for task in again.tasks.values()] == values


def test_files_of_other_users_and_of_other_pythons_are_refused(make: Make) -> None:
    executor = make(max_concurrent=1)
    ready = executor.submit(divide, 1, 2)
    assert ready.result(LIMIT_S) == 0.5
    executor.shutdown()
    folder = executor._layout.folder(1)
    value = folder.path / "value.pickle"
    assert value.stat().st_mode & 0o077 == 0
    value.chmod(0o666)
    with make() as again, pytest.raises(PermissionError):
        again.tasks[1].result(LIMIT_S)
    value.unlink()
    folder.result.unlink()
    write_json(folder.spec, {**(read_json(folder.spec) or {}), "python": "3.1"})
    with make() as again, pytest.raises(TaskFailed, match=r"Python 3\.1"):
        again.tasks[1].result(LIMIT_S)


def test_one_executor_uses_a_directory_and_none_that_of_a_search(
    make: Make, tmp_path: Path
) -> None:
    with make(), pytest.raises(InputError, match="another executor"):
        make()
    (tmp_path / "tasks/config.pb").touch()
    with pytest.raises(InputError, match="search"):
        make()


def test_resources_are_those_of_a_search(make: Make) -> None:
    found = resources_of(
        {"gpus": 2, "walltime": "2h", "env": {"A": "b"}, "module": ["cuda"], "setup": "date"}
    )
    assert (found.gpus, found.walltime_s) == (2, 7200)
    assert (found.environment, found.modules) == ((("A", "b"),), ("cuda",))
    assert found.setup == ("date",)
    for wrong in ({"gpu": 1}, {"walltime": "soon"}, {"gpus": "x"}, {"nodes": 2}):
        with pytest.raises(InputError):
            make(**wrong)
    with pytest.raises(InputError):
        make(max_concurrent=0)


def test_a_task_describes_itself(make: Make) -> None:
    with make() as executor:
        task = executor.submit(divide, 1, 2)
        assert isinstance(task, Task)
        task.result(LIMIT_S)
        assert repr(task) == "Task(id=1, name='divide', done)"
    with pytest.raises(RuntimeError):
        executor.submit(divide, 1, 2)
