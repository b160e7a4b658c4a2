"""The driver for HTCondor on a real pool, by an ordinary user."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.on_hosts.condor_searches import HELD, IDLE, RUNNING, CondorSearch
from tests.on_hosts.searches import Controller
from tests.testbed.cell import UID
from tests.testbed.condor import HIDDEN, CondorPool
from tests.waiting import until

pytestmark = pytest.mark.htcondor

MakeSearch = Callable[..., CondorSearch]


@pytest.fixture(scope="module")
def pool() -> Iterator[CondorPool]:
    with CondorPool() as made:
        yield made


@pytest.fixture
def make_search(pool: CondorPool, request: pytest.FixtureRequest) -> Iterator[MakeSearch]:
    """Return a function that creates searches; repair the pool at the end."""
    made: list[CondorSearch] = []
    numbers = itertools.count()

    def make(**options: object) -> CondorSearch:
        path = pool.home / f"{request.node.name}-{next(numbers)}"
        made.append(CondorSearch(pool, path, **options))
        return made[-1]

    yield make
    for search in made:
        search.stop()
    pool.heal()


def kill_schedd(pool: CondorPool) -> None:
    """Kill the schedd; wait first for the restart after an earlier kill."""
    until(lambda: pool.master.processes("condor_schedd"), 120, 0.1)
    pool.kill("condor_schedd")


def test_controllers_and_the_schedd_are_killed(pool: CondorPool, make_search: MakeSearch) -> None:
    search = make_search(trials=24, steps=5)
    draw = random.Random(17)

    def start() -> Controller:
        controller = search.start("--queue-ahead=2")
        until(lambda: pool.master.processes("bin/spearmint --driver=HTCONDOR"), 30, 0.02)
        return controller

    for _ in range(3):  # before, during and after submissions
        controller = start()
        time.sleep(draw.uniform(0.2, 3))
        kill_schedd(pool)
        time.sleep(draw.uniform(0.0, 3))
        controller.stop()  # without an answer at its start, it has ended
    pool.jobs()
    controller = start()
    search.wait_running()
    kill_schedd(pool)
    controller.wait_for("does not respond")
    controller.kill()
    pool.jobs()
    start().end()
    search.assert_complete()
    assert {run.host for run in search.runs()} == set(pool.names)


def test_a_host_is_lost(pool: CondorPool, make_search: MakeSearch) -> None:
    search = make_search(trials=5, steps=20, hold_at=3)
    controller = search.start("-l", "job_lease_duration=20")
    running = Counter(run.host for run in search.wait_running(5, step=3))
    others = [run for run in search.running() if run.host != "master"]
    # The pool offers jobs to the free GPU of the lost host for another 15 minutes.
    lost = min(others, key=lambda run: running[run.host])
    search.node(lost).kill()
    search.release()

    def is_again() -> bool:
        same = [run for run in search.runs() if run.trial == lost.trial]
        return any(run.first >= 3 and run.host != lost.host for run in same)

    until(is_again, 300, 0.3)
    controller.end()
    search.assert_complete(lost=[lost.host])


def test_a_job_is_evicted(pool: CondorPool, make_search: MakeSearch) -> None:
    search = make_search(trials=3, steps=12, hold_at=3)
    controller = search.start()
    evicted = search.wait_running(3, step=3)[0]
    pool.checked("condor_vacate_job", evicted.job, uid=UID)
    until(lambda: sum(run.trial == evicted.trial for run in search.runs()) == 2, 60, 0.2)
    controller.end()
    search.assert_complete()
    again = [run for run in search.runs() if run.trial == evicted.trial]
    assert [run.job for run in again] == [evicted.job, evicted.job]
    assert again[1].first >= 3


def test_a_job_that_can_never_start(pool: CondorPool, make_search: MakeSearch) -> None:
    search = make_search(trials=2)
    output = search.start("--gpus=3").end(1)
    assert "none of 3 machines meets: TARGET.GPUs >= RequestGPUs (RequestGPUs = 3)" in output
    assert not search.has_jobs()
    output = search.start("-l", "require_gpus=Capability >= 8.0").end(1)
    assert "RequireGPUs" in output


_ASK = """
import sys
from pathlib import Path
from spearmint.drivers import DriverSettings
from spearmint.drivers.htcondor import HTCondor

print(HTCondor(DriverSettings(directory=Path("/"))).obstacle(sys.argv[1]))
"""


_OTHERS = """
executable = /bin/sleep
arguments = 600
transfer_executable = false
should_transfer_files = NO
initialdir = /
request_gpus = 1
queue 6
"""


def test_a_job_that_waits_for_gpus_is_not_called_impossible(
    pool: CondorPool, make_search: MakeSearch
) -> None:
    search = make_search(trials=1, steps=1)
    others = pool.checked("condor_submit", "-terse", "-", uid=UID, stdin=_OTHERS).partition(".")[0]
    until(lambda: len(search.jobs_in(RUNNING)) == 6, 60, 0.1)  # each machine is divided
    controller = search.start("--gpus=2", "-l", "require_gpus=Capability >= 1.0")
    until(lambda: search.jobs_in(IDLE), 60, 0.1)
    (waits,) = search.jobs_in(IDLE)
    obstacle = pool.checked(sys.executable, "-c", _ASK, waits, uid=UID)
    pool.checked("condor_rm", others, uid=UID)
    assert obstacle == "None\n"
    controller.end()
    search.assert_complete()
    assert {len(run.gpus) for run in search.runs()} == {2}


def test_a_walltime(make_search: MakeSearch) -> None:
    search = make_search(trials=1, steps=3000)
    controller = search.start("--walltime=4s", "--queue-ahead=1")
    controller.wait_for("timed out")
    assert next(trial["state"] for trial in search.trials()) == "broken"


def test_a_user_holds_a_job(pool: CondorPool, make_search: MakeSearch) -> None:
    search = make_search(trials=2, steps=30)
    controller = search.start()
    held = search.wait_running(2)[0]
    pool.checked("condor_hold", "-reason", "until noon", held.job, uid=UID)
    said = controller.wait_for(r"until noon.* Release it: (condor_release \S+)", release=False)
    assert search.jobs_in(HELD) == [held.job]
    pool.checked(*said[1].split(), uid=UID)
    controller.end()
    search.assert_complete()


def test_a_host_that_cannot_start_jobs(pool: CondorPool, make_search: MakeSearch) -> None:
    sick = pool.hosts[1]
    sick.run("mv", "/usr/bin/bash", "/usr/bin/bash.away")
    try:
        search = make_search(trials=8, steps=5)
        controller = search.start()
        # The other GPUs are busy until then.
        controller.wait_for(f"(could not start on|avoid) {sick.name}", release=False)
        controller.end()
    finally:
        sick.run("mv", "/usr/bin/bash.away", "/usr/bin/bash")
    search.assert_complete()
    assert sick.name not in {run.host for run in search.runs()}


def test_a_directory_that_jobs_do_not_see(pool: CondorPool, make_search: MakeSearch) -> None:
    search = make_search(trials=1)
    hidden = f"{HIDDEN}/search"
    pool.checked("cp", "-a", str(search.directory), hidden)
    done = pool.run("spearmint", "--driver=HTCONDOR", hidden, uid=UID)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "MOUNT_UNDER_SCRATCH" in done.stderr
    assert not pool.jobs()


_TASKS = """
import os, sys
from pathlib import Path
import spearmint

def work(n):
    return [n, os.environ["CUDA_VISIBLE_DEVICES"][:4], bool(os.environ["CONDOR_JOB_ID"])]

if __name__ == "__main__":
    folder = Path(sys.argv[1]) / "tasks"
    with spearmint.executor("HTCONDOR", directory=folder, gpus=1, polling_s=1) as executor:
        print(list(executor.map(work, range(3))))
"""


def test_functions_are_jobs(pool: CondorPool) -> None:
    root = pool.home / "executor"
    root.mkdir()
    (root / "script.py").write_text(_TASKS)
    for path in (root, root / "script.py"):
        os.chown(path, UID, UID)
    said = pool.checked(sys.executable, str(root / "script.py"), str(root), uid=UID)
    assert said == f"{[[n, 'GPU-', True] for n in range(3)]}\n"


def test_a_search_on_the_manager_survives_everything(
    pool: CondorPool, make_search: MakeSearch
) -> None:
    search = make_search(trials=6, hold_from=4)  # it cannot end before the last fault
    argv = [sys.executable, "-m", "condor_jobs", "search", str(search.directory), "--"]
    argv += ["--method=RandomChooser", "--max-finished-jobs=6", "--polling-time=1", "-n", "3"]
    number = re.findall(r"job (\d+\.\d+)", pool.checked(*argv, uid=UID))[0]
    search.wait_running(3)
    controller = "-m spearmint run --driver=HTCONDOR --method=RandomChooser"
    os.kill(pool.master.process(controller), signal.SIGKILL)
    until(lambda: pool.master.processes(controller), 60, 0.2)
    kill_schedd(pool)
    until(lambda: number in search.jobs_in(RUNNING), 120, 0.5)
    until(lambda: pool.master.processes(controller), 60, 0.2)
    pool.checked("condor_hold", number, uid=UID)
    until(lambda: not pool.master.processes(controller), 60, 0.2)
    search.release()
    pool.checked("condor_release", number, uid=UID)
    until(lambda: not pool.jobs(), 240, 0.5, progress=search.recorded)
    log = (search.directory / "search.log").read_text()
    assert "Best of 6 complete trials (0 broken)" in log, log
    search.assert_complete()
