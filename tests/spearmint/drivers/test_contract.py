"""The rules of drivers/base.py, for every driver. A new driver joins ``DRIVERS`` below.

Those of SGE need this machine to be a Grid Engine host: test_contract_on_a_cell.py makes it one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spearmint.drivers import Driver, DriverSettings, JobRequest, JobState
from spearmint.drivers.local import LocalDriver
from spearmint.drivers.processes import identity
from spearmint.drivers.sge.driver import SgeDriver
from spearmint.errors import DriverError
from spearmint.layout import TrialFolder, write_json
from spearmint.resources import Resources

HERE = Resources(requests=(f"hostname={os.uname().nodename}",))  # so that the tests see processes


def make_sge(root: Path) -> Driver:
    if shutil.which("qsub") is None:
        pytest.skip("this machine is no Grid Engine host")
    return SgeDriver(DriverSettings(directory=root, polling_s=0.2, resources=HERE))


DRIVERS: dict[str, Callable[[Path], Driver]] = {
    "local": lambda root: LocalDriver(DriverSettings(directory=root, max_concurrent=2)),
    "SGE": make_sge,
}


@pytest.fixture(params=DRIVERS)
def make_driver(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Driver]:
    return lambda: DRIVERS[request.param](tmp_path)


def prepare(root: Path, code: str, trial_id: int = 1) -> JobRequest:
    (root / "wrapper.py").write_text(code)
    folder = TrialFolder(root / f"a 'quoted': trial {trial_id}")
    folder.path.mkdir()
    spec = {
        "key": "k",
        "job_id": trial_id,
        "directory": str(root),
        "name": "wrapper",
        "language": "PYTHON",
    }
    write_json(folder.spec, {**spec, "params": {}})
    return JobRequest(
        name=f"wrapper-{trial_id:08d}", folder=folder, directory=root, output=root / "out put.txt"
    )


def until(happens: Callable[[], object], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def pid_in(request: JobRequest) -> int:
    path = request.folder.runner
    until(path.exists)
    return int(json.loads(path.read_text())["pid"])


def child_of(root: Path) -> int:
    """Return the process that the trial PARENT started."""
    path = root / "child.pid"
    until(lambda: path.exists() and path.read_text().endswith("."))
    return int(path.read_text().rstrip("."))


QUICK = "def main(job_id, params):\n    print('hello')\n    return 0.5\n"
SLOW = "import time\ndef main(job_id, params):\n    time.sleep(60)\n    return 0.5\n"
PARENT = (
    "import subprocess, time\ndef main(job_id, params):\n"
    "    child = subprocess.Popen(['env', '-i', 'sleep', '60'])\n"
    "    open('child.pid', 'w').write(f'{child.pid}.')\n    time.sleep(60)\n"
)


def test_a_job_is_alive_and_then_gone_with_its_result(make_driver, tmp_path: Path) -> None:
    driver, request = make_driver(), prepare(tmp_path, QUICK)
    job = driver.submit(request)
    assert set(driver.poll([job])) == {job}
    until(lambda: driver.poll([job])[job] is JobState.GONE)
    assert json.loads(request.folder.result.read_text())["value"] == 0.5
    assert "hello" in request.output.read_text()


def test_wait_returns_when_a_job_ends(make_driver, tmp_path: Path) -> None:
    driver = make_driver()
    jobs = [driver.submit(prepare(tmp_path, QUICK))]
    started = time.monotonic()
    while driver.poll(jobs)[jobs[0]] in (JobState.WAITING, JobState.ALIVE):
        driver.wait(jobs, 30)
    assert time.monotonic() - started < 30


def test_cancel_ends_the_job_and_what_it_started(make_driver, tmp_path: Path) -> None:
    driver, request = make_driver(), prepare(tmp_path, PARENT)
    job = driver.submit(request)
    child = child_of(tmp_path)
    driver.cancel([job])
    assert driver.poll([job])[job] is JobState.GONE
    assert identity(child) is None
    assert not request.folder.result.exists()


def test_another_driver_adopts_a_living_job(make_driver, tmp_path: Path) -> None:
    request = prepare(tmp_path, SLOW)
    owner, heir = make_driver(), make_driver()
    first = owner.submit(request)
    job = heir.adopt(request.folder)
    assert job is not None
    assert heir.poll([job])[job] in (JobState.WAITING, JobState.ALIVE)
    heir.cancel([job])
    assert heir.poll([job])[job] is JobState.GONE
    until(lambda: owner.poll([first])[first] is JobState.GONE)


def test_nothing_is_adopted_where_nothing_lives(make_driver, tmp_path: Path) -> None:
    driver, request = make_driver(), prepare(tmp_path, QUICK)
    assert driver.adopt(request.folder) is None
    job = driver.submit(request)
    until(lambda: driver.poll([job])[job] is JobState.GONE)
    assert driver.adopt(request.folder) is None


def test_a_killed_job_is_gone_and_explained(make_driver, tmp_path: Path) -> None:
    driver, request = make_driver(), prepare(tmp_path, PARENT)
    job = driver.submit(request)
    child = child_of(tmp_path)
    os.kill(pid_in(request), signal.SIGKILL)
    until(lambda: driver.poll([job])[job] is JobState.GONE)
    assert "SIGKILL" in driver.explain(job).text
    assert driver.adopt(request.folder) is None
    assert identity(child) is None, "what the dead trial started must not go on"
    again = driver.submit(request)
    assert driver.poll([again])[again] is not JobState.GONE
    driver.cancel([again])


def test_a_living_process_that_got_the_number_of_a_runner_is_a_stranger(
    make_driver, tmp_path: Path
) -> None:
    driver, request = make_driver(), prepare(tmp_path, QUICK)
    with subprocess.Popen(["sleep", "60"]) as stranger, request.folder.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as what a dead runner forked would
        left = {"pid": stranger.pid, "start": time.time() - 3600}
        write_json(request.folder.runner, left)
        assert driver.adopt(request.folder) is None
        assert stranger.poll() is None, "it was ended"
        stranger.kill()


def test_what_a_finished_job_left_is_ended_by_cancel(make_driver, tmp_path: Path) -> None:
    code = PARENT.replace("time.sleep(60)", "return 0.5")
    driver, request = make_driver(), prepare(tmp_path, code)
    job = driver.submit(request)
    until(lambda: driver.poll([job])[job] is JobState.GONE)
    child = child_of(tmp_path)
    driver.cancel([job])
    assert identity(child) is None
    assert json.loads(request.folder.result.read_text())["value"] == 0.5


def test_a_job_that_does_not_want_to_end_is_killed(make_driver, tmp_path: Path) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('deaf', 'w')\n"
    driver, request = make_driver(), prepare(tmp_path, deaf + SLOW)
    job = driver.submit(request)
    until((tmp_path / "deaf").exists)
    driver.cancel([job])
    assert driver.poll([job])[job] is JobState.GONE


def test_a_folder_runs_once_at_a_time(make_driver, tmp_path: Path) -> None:
    driver, request = make_driver(), prepare(tmp_path, SLOW)
    job = driver.submit(request)
    with pytest.raises(DriverError):
        driver.submit(request)
    driver.cancel([job])
