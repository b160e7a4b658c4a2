"""The starter and the sensor in a real Grid Engine cell: each job's GPUs, also after faults."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from sge_jobs.gpu_state import GpuStatus, GpuUse, decode
from sge_jobs.scripts import script_path
from tests.on_hosts.conftest import MakeSearch
from tests.testbed.cell import REPOSITORY, USER, Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = pytest.mark.sge

HOST = "node001"


@dataclass
class Run:
    """One run of a job, from its own record."""

    job: str
    host: str
    gpus: tuple[str, ...]
    start: float
    end: float


class Log:
    """A file in the user's home to which each job appends one line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def script(self, seconds: float) -> str:
        """Return a job that writes its line after ``seconds``."""
        return (
            "#!/bin/bash\nstart=$(date +%s.%N)\n"
            f"sleep {seconds}\n"
            'run="$JOB_ID.$SGE_TASK_ID $(hostname) [$CUDA_VISIBLE_DEVICES] $start"\n'
            f'echo "$run $(date +%s.%N)" >> {shlex.quote(str(self.path))}\n'
        )

    def runs(self) -> list[Run]:
        """Return the lines so far."""
        found = []
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            job, host, gpus, start, end = line.split()
            names = tuple(filter(None, gpus.strip("[]").split(",")))
            found.append(Run(job, host, names, float(start), float(end)))
        return found


@pytest.fixture
def log(cell: Cell, request: pytest.FixtureRequest) -> Iterator[Log]:
    log = Log(cell.home / f"{request.node.name}.log")
    yield log
    cell.run("qdel", "-u", "*")
    cell.wait_idle()


def overlaps(runs: list[Run]) -> list[tuple[Run, Run]]:
    """Return pairs of runs that used the same GPU at the same time."""
    pairs = []
    for place, one in enumerate(runs):
        for other in runs[place + 1 :]:
            shared = one.host == other.host and set(one.gpus) & set(other.gpus)
            if shared and one.start < other.end and other.start < one.end:
                pairs.append((one, other))
    return pairs


def uses(cell: Cell, host: str = HOST) -> tuple[GpuUse, ...]:
    """Return the last report of the sensor of ``host``."""
    text = cell.checked("qhost", "-F", "gpu_state", "-h", host)
    match = re.search(r"gpu_state=(\S+)", text)
    return decode(match.group(1)) if match else ()


def statuses(cell: Cell) -> list[GpuStatus]:
    return [use.status for use in uses(cell)]


def all_free(cell: Cell) -> None:
    until(lambda: statuses(cell) == [GpuStatus.FREE] * 2, 30, 0.2)


def running(cell: Cell) -> list[list[str]]:
    """Return the rows of qstat of running jobs."""
    rows = [line.split() for line in cell.checked("qstat", "-u", "*").splitlines()[2:]]
    return [row for row in rows if "r" in row[4]]


def inside(node: Node, name: str) -> list[str]:
    """Return the pids (on the node) of its processes with this exact name."""
    return node.run("pgrep", "-x", name).stdout.split()


def test_jobs_of_one_and_two_gpus_and_an_array_never_meet_on_a_gpu(cell: Cell, log: Log) -> None:
    array = cell.submit(log.script(0.3), "-l", "gpu=1", "-t", "1-41").partition(".")[0]
    pairs = [cell.submit(log.script(0.3), "-l", "gpu=2") for _ in range(4)]
    without = [cell.submit(log.script(0.3)) for _ in range(4)]
    cell.wait_idle(120)
    runs = log.runs()
    by_job = {run.job.partition(".")[0]: run for run in runs}
    assert sorted(run.job for run in runs if run.job.startswith(f"{array}.")) == sorted(
        f"{array}.{task}" for task in range(1, 42)
    )
    assert all(len(run.gpus) == 1 for run in runs if run.job.startswith(f"{array}."))
    assert all(len(set(by_job[job].gpus)) == 2 for job in pairs)
    assert all(by_job[job].gpus == () for job in without)
    assert {run.host for run in runs} == set(cell.names)
    assert all(gpu.startswith(f"GPU-{run.host}-") for run in runs for gpu in run.gpus)
    assert overlaps(runs) == []


def test_the_job_is_an_ordinary_users_and_cannot_see_the_files_of_gpus(
    cell: Cell, log: Log
) -> None:
    inside = cell.home / "inside"
    look = "id -un; ls -l /proc/self/fd; ls /run/sge_jobs/locks"
    cell.submit(f"#!/bin/bash\n{{ {look}; }} > {inside} 2>&1\n", "-l", "gpu=1")
    cell.wait_idle()
    user, *rest = inside.read_text().splitlines()
    assert user == USER
    assert not any("GPU-" in line for line in rest)
    assert "Permission denied" in rest[-1]


def test_a_binary_and_a_script_of_another_shell(cell: Cell, log: Log) -> None:
    out = cell.home / "binary"
    command = f'echo "$0 $CUDA_VISIBLE_DEVICES" > {out}'
    cell.submit("", "-N", "binary", "-b", "y", "-l", "gpu=1", command)
    python = cell.home / "python"
    script = f"import os\nopen({str(python)!r}, 'w').write(os.environ['CUDA_VISIBLE_DEVICES'])\n"
    cell.submit(script, "-S", "/usr/bin/python3", "-l", "gpu=2")
    cell.wait_idle()
    assert re.fullmatch(r"-?bash GPU-\w+-\d\n", out.read_text())
    assert re.fullmatch(r"GPU-\w+-0,GPU-\w+-1", python.read_text())


def sleeper(cell: Cell, gpus: int = 2, *options: str, command: str = "sleep 300") -> str:
    """Start a job on ``HOST``, wait until its command runs, and return the job."""
    mark = cell.home / f"mark{time.monotonic_ns()}"
    script = f"#!/bin/bash\ntouch {mark}\n{command}\n"
    job = cell.submit(script, "-l", f"gpu={gpus},hostname={HOST}", *options)
    until(mark.exists, 30, 0.05)
    return job


def succeeds(cell: Cell, log: Log) -> None:
    """Check that a job that requests both GPUs runs on the host."""
    before = len(log.runs())
    cell.submit(log.script(0), "-l", f"gpu=2,hostname={HOST}")
    until(lambda: len(log.runs()) > before, 60, 0.1)
    assert set(log.runs()[-1].gpus) == {f"GPU-{HOST}-0", f"GPU-{HOST}-1"}


def qdel(cell: Cell, job: str) -> None:
    cell.run("qdel", job)


def kill_trainer(cell: Cell, job: str) -> None:
    cell.kill("sleep 300", cell.fabric.nodes[HOST])


ENDS: dict[str, Callable[[Cell, str], None]] = {
    "qdel": qdel,
    "kill -9 of the trainer": kill_trainer,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_job_that_is_ended_frees_its_gpus(
    cell: Cell, log: Log, end: Callable[[Cell, str], None]
) -> None:
    job = sleeper(cell)
    end(cell, job)
    succeeds(cell, log)
    all_free(cell)


def test_a_job_that_exceeds_its_time_frees_its_gpus(cell: Cell, log: Log) -> None:
    sleeper(cell, 2, "-l", "h_rt=8")  # a busy host starts the command within this time
    succeeds(cell, log)
    all_free(cell)


def test_what_a_job_leaves_behind_when_it_ends_is_ended_by_grid_engine(
    cell: Cell, log: Log
) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '301'], start_new_session=True)"
    sleeper(cell, 2, command=f'python3 -c "{code}"')
    succeeds(cell, log)
    assert not cell.fabric.nodes[HOST].processes("sleep 301")


def test_a_killed_execd_leaves_the_job_and_its_gpus_alone(cell: Cell, log: Log) -> None:
    node = cell.fabric.nodes[HOST]
    sleeper(cell, 1)
    cell.kill("sge_execd", node)
    cell.start_execd(node)
    cell.submit(log.script(0), "-l", f"gpu=2,hostname={HOST}")
    until(lambda: GpuStatus.HELD in statuses(cell), 30, 0.2)
    assert log.runs() == []
    cell.kill("sleep 300", node)  # raises if it does not run
    all_free(cell)  # although Grid Engine notices the job's end up to a minute later
    cell.run("qdel", "-f", "-u", "*")


def test_survivors_of_a_killed_shepherd_keep_their_gpu_and_are_named(cell: Cell, log: Log) -> None:
    """One process keeps the lock, the other has closed it like Python's subprocess does."""
    node = cell.fabric.nodes[HOST]
    code = "import subprocess; subprocess.Popen(['sleep', '302'], start_new_session=True)"
    job = sleeper(cell, 1, "-r", "n", command=f'python3 -c "{code}"\nsleep 303')
    until(lambda: node.processes("sleep 303"), 60, 0.1)  # the other one runs, too
    node.run("kill", "-9", *inside(node, "sge_shepherd"))
    until(lambda: GpuStatus.OUTLIVED in statuses(cell), 30, 0.2)
    (use,) = (use for use in uses(cell) if use.status is GpuStatus.OUTLIVED)
    assert (use.job, use.user) == (job, USER)
    assert {"sleep", "bash"} <= {intruder.command for intruder in use.intruders}
    free = next(use.uuid for use in uses(cell) if use.status is GpuStatus.FREE)
    for _ in range(2):
        cell.submit(log.script(0), "-l", f"gpu=1,hostname={HOST}")
    until(lambda: len(log.runs()) == 2, 60, 0.1)
    assert {run.gpus for run in log.runs()} == {(free,)}
    waiting = cell.submit(log.script(0), "-l", f"gpu=2,hostname={HOST}")
    until(lambda: "gpu" in cell.run("qstat", "-j", waiting).stdout, 20, 0.2)
    cell.kill("sleep 303", node)
    time.sleep(2)
    assert not [row for row in running(cell) if row[0] == waiting]
    cell.kill("sleep 302", node)  # it has the job's group but not the lock
    until(lambda: len(log.runs()) == 3, 60, 0.1)
    assert len(log.runs()[-1].gpus) == 2
    all_free(cell)


def test_a_job_sent_to_survivors_goes_back_and_says_who_has_the_gpu(cell: Cell, log: Log) -> None:
    """The assignment finds leftover processes while the sensor does not report them."""
    node = cell.fabric.nodes[HOST]
    job = sleeper(cell, 2, "-r", "n", command="sleep 304")
    until(lambda: node.processes("sleep 304"), 60, 0.1)
    node.run("pkill", "-STOP", "-o", "-f", "sge_jobs.node.sensor")  # not its attendant
    node.run("kill", "-9", *inside(node, "sge_shepherd"))
    err = cell.home / "who.err"
    cell.submit(log.script(0), "-l", f"gpu=1,hostname={HOST}", "-j", "n", "-e", str(err))
    until(lambda: err.exists() and "sge-jobs gpus" in err.read_text(), 60, 0.2)
    assert re.search(rf"\bprocesses .*\bjob {job} .*\b{USER}\b", err.read_text())
    assert log.runs() == []
    node.run("pkill", "-CONT", "-f", "sge_jobs.node.sensor")
    cell.kill("sleep 304", node)
    until(lambda: len(log.runs()) == 1, 60, 0.1)
    all_free(cell)


def test_a_lost_host_comes_back_with_free_gpus(cell: Cell, log: Log) -> None:
    node = cell.fabric.nodes[HOST]
    sleeper(cell, 2, "-r", "n")
    cell.lose(node)
    cell.boot_again(node)
    until(lambda: cell.hosts_up() == len(cell.names), 60, 0.2)
    cell.run("qdel", "-f", "-u", "*")
    succeeds(cell, log)
    all_free(cell)


@pytest.fixture
def islands(cell: Cell) -> Iterator[Node]:
    """A host with six declared GPUs: an island of two, and one of four with the higher numbers."""
    node = cell.fabric.nodes[HOST]
    before = node.inside("/etc/sge-gpus").read_text()

    def declare(text: str, count: int) -> None:
        node.write("/etc/sge-gpus", text)
        cell.qconf("-mattr", "exechost", "complex_values", f"gpu={count}", HOST)
        until(lambda: len(uses(cell)) == count, 60, 0.2)

    declare("count = 6\nisland = 0 5\nisland = 1 2 3 4\n", 6)
    yield node
    cell.run("qdel", "-u", "*")
    cell.wait_idle()
    declare(before, 2)


def children_of_sensor(node: Node) -> list[int]:
    """Return the attendant, and a process that queries the GPUs now."""
    pids = node.processes("sge_jobs.node.sensor")
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).ppid() in pids:
                found.append(pid)
    return found


def test_several_gpus_of_one_island_or_none_whatever_is_killed(
    cell: Cell, log: Log, islands: Node
) -> None:
    sleeper(cell, 2)  # by index it would have GPUs of both islands
    cell.submit(log.script(0), "-l", f"gpu=4,hostname={HOST}")
    until(lambda: len(log.runs()) == 1, 60, 0.1)
    assert log.runs()[0].gpus == tuple(f"GPU-{HOST}-{place}" for place in (1, 2, 3, 4))
    cell.kill("sleep 300", islands)
    wanted = {}
    for count in (4, 3, 5, 4, 2, 4, 6, 4):
        wanted[cell.submit(log.script(0.3), "-l", f"gpu={count},hostname={HOST}")] = count
    for _ in range(4):
        attendants: list[int] = []
        until(lambda found=attendants: found.extend(children_of_sensor(islands)) or found, 60, 0.05)
        for pid in attendants:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    cell.wait_idle(180)
    runs = {run.job.partition(".")[0]: run for run in log.runs()[1:]}
    assert {job: len(set(run.gpus)) for job, run in runs.items()} == wanted
    assert overlaps(log.runs()) == []


def test_a_trial_of_a_search_has_several_gpus_of_one_island(
    cell: Cell, islands: Node, make_search: MakeSearch
) -> None:
    search = make_search(trials=3, steps=1)
    search.start("--gpus=4").end()
    island = tuple(f"GPU-{HOST}-{place}" for place in (1, 2, 3, 4))
    assert {run.gpus for run in search.runs()} == {island}
    assert len(search.runs()) == 3


def test_the_values_are_those_that_json_and_people_see(cell: Cell, log: Log) -> None:
    job = sleeper(cell, 1)

    def rows() -> list[dict[str, object]]:  # the sensor can still report the previous job
        given = json.loads(cell.checked("sge-jobs", "gpus", "--json"))
        return [row for row in given if row["job"] == job]

    until(rows, 30, 0.2)
    (held,) = rows()
    assert (held["status"], held["user"], held["host"]) == ("held", USER, HOST)


def test_the_job_scripts_by_plain_qsub(cell: Cell, log: Log) -> None:
    folder = cell.home / "job scripts"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "regions").write_text("digit\n" * 2)
    common = ("-v", f"PYTHON={sys.executable},PYTHONPATH={REPOSITORY}", "-wd", str(folder))
    few = ("--set", "epochs=2", "--set", "hidden=8")

    def submit(name: str, *options: str, arguments: Sequence[str]) -> str:
        out = str(folder / f"{name}.out")
        words = (*common, *options, "-o", out, str(script_path(name)), *arguments)
        return cell.submit("", *words).partition(".")[0]

    submit("train_model", arguments=("--data", "digits", "--checkpoint", "a model.npz", *few))
    regions = ("--regions", "regions", "--data", "{region}s", "--out", "out put", *few)
    submit("train_regions", "-t", "1-1", arguments=regions)
    cell.wait_idle()
    assert (folder / "a model.npz").exists(), (folder / "train_model.out").read_text()
    assert re.search(r"GPU GPU-\w+-\d", (folder / "train_model.out").read_text())
    result = folder / "out put" / "digit" / "result.json"
    assert result.exists(), (folder / "train_regions.out").read_text()
    job = submit("gpu_selftest", arguments=())  # fails, because there is no driver
    until(lambda: "Eqw" in cell.run("qstat", "-u", "*").stdout, 30, 0.2)
    assert "libcuda.so.1" in (folder / "gpu_selftest.out").read_text()
    assert job in cell.run("qstat", "-u", "*").stdout
