"""The queue, with the commands of a fake Grid Engine as real processes."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sge_jobs.errors import InputError, QueueUnreachable, SgeJobsError, SubmitError
from sge_jobs.model import JobSpec, JobStatus
from sge_jobs.queue.commands import with_cell
from sge_jobs.queue.queue import Queue
from sge_jobs.resources import Resources
from tests.sge_jobs.fake_gridengine import REFUSED, FakeGridEngine
from tests.waiting import until


@pytest.fixture
def cell(tmp_path: Path) -> FakeGridEngine:
    return FakeGridEngine(tmp_path / "a cell")


@pytest.fixture
def queue(cell: FakeGridEngine) -> Queue:
    return Queue(programs=cell.programs, timeout_s=20)


def spec(tmp_path: Path, *argv: str, name: str = "n", **resources: object) -> JobSpec:
    return JobSpec(
        name=name,
        argv=argv or ("true",),
        directory=tmp_path,
        log=tmp_path / "log é",
        resources=Resources(**resources),  # type: ignore[arg-type]
    )


def test_a_job_goes_from_pending_to_its_record(
    tmp_path: Path, cell: FakeGridEngine, queue: Queue
) -> None:
    id = queue.submit(spec(tmp_path, "sh", "-c", "echo é; exit 3", name="1é", gpus=2))
    (job,) = queue.jobs()
    assert (job.id, job.gpus, job.status) == (id, 2, JobStatus.PENDING)
    assert queue.accounting(id) == []
    assert cell.run(id) == 3
    assert queue.jobs() == []
    assert [record.exit_status for record in queue.accounting(id)] == [3]
    assert (tmp_path / "log é").read_text() == "é\n"


def test_an_array_has_one_number(tmp_path: Path, queue: Queue) -> None:
    made = JobSpec(name="a", argv=("true",), directory=tmp_path, tasks="1-41")
    assert queue.submit(made) == "1"


def test_a_refused_job_says_why_in_the_words_of_qsub(tmp_path: Path, queue: Queue) -> None:
    with pytest.raises(SubmitError) as caught:
        queue.submit(spec(tmp_path, queue="none.q"))
    assert "'n'" in caught.value.what
    assert caught.value.what.endswith(
        ': Job was rejected because job requests unknown queue "none.q"'
    )


@pytest.mark.parametrize(
    "words",
    [
        REFUSED,
        'error: unable to send message to qmaster using port 6444 on host "m":'
        " can't resolve host name",
        'error: cell directory "/var/lib/gridengine/foo" doesn\'t exist',
        "critical error: Please set the environment variable SGE_ROOT.",
        'error: unable to contact qmaster using port 6444 on host "m"',
    ],
)
def test_a_silent_master_says_nothing_about_any_job(
    tmp_path: Path, cell: FakeGridEngine, queue: Queue, words: str
) -> None:
    cell.go_down(words)
    calls = [
        lambda: queue.submit(spec(tmp_path)),
        queue.jobs,
        queue.hosts,
        lambda: queue.delete(["1"]),
        lambda: queue.clear_error(["1"]),
        lambda: queue.error_reason("1"),
    ]
    for call in calls:
        with pytest.raises(QueueUnreachable, match=re.escape(words)) as caught:
            call()
        assert caught.value.fix


def test_a_master_that_hangs_is_given_up(tmp_path: Path, cell: FakeGridEngine) -> None:
    with cell.state() as state:
        state["hang_s"] = 30
    with pytest.raises(QueueUnreachable, match=r"qstat .*0\.5 s"):
        Queue(programs=cell.programs, timeout_s=0.5).jobs()


def test_a_machine_without_grid_engine_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(QueueUnreachable, match="gridengine-client"):
        Queue().jobs()


def test_an_answer_that_cannot_be_read_says_nothing_about_any_job(cell: FakeGridEngine) -> None:
    (cell.programs / "qstat").write_text("#!/bin/sh\necho '<job_info><job_list>'\n")
    with pytest.raises(QueueUnreachable, match=r"qstat.*XML"):
        Queue(programs=cell.programs).jobs()


def test_deleting_what_is_gone_is_no_error(
    tmp_path: Path, cell: FakeGridEngine, queue: Queue
) -> None:
    ids = [queue.submit(spec(tmp_path)) for _ in range(2)]
    queue.delete([*ids, "99"])
    queue.delete(ids, force=True)
    queue.delete([])
    assert cell.jobs() == {}


def test_a_job_of_another_user_is_not_deleted_in_silence(
    tmp_path: Path, cell: FakeGridEngine, queue: Queue
) -> None:
    id = queue.submit(spec(tmp_path))
    cell.set(id, owner="another")
    with pytest.raises(SgeJobsError, match="privileges"):
        queue.delete([id, "99"])


@pytest.mark.parametrize("id", ["*", "", "n", "-u"])
def test_only_numbers_reach_qdel(cell: FakeGridEngine, queue: Queue, id: str) -> None:
    with pytest.raises(InputError, match=re.escape(repr(id))):
        queue.delete([id])
    with cell.state() as state:
        assert state["calls"] == []


def test_an_error_state_has_a_reason_and_can_be_cleared(
    tmp_path: Path, cell: FakeGridEngine, queue: Queue
) -> None:
    id = queue.submit(spec(tmp_path))
    assert queue.error_reason(id) == ""
    cell.set(id, state="Eqw", reason="11/21/2026 19:41:13 [1234:385]: can't chdir to /x")
    assert queue.jobs()[0].status is JobStatus.ERROR
    assert queue.error_reason(id) == "can't chdir to /x"
    queue.clear_error([id, "99"])
    assert queue.jobs()[0].status is JobStatus.PENDING
    assert queue.error_reason("99") == ""


def test_hosts_count_their_gpus(tmp_path: Path, cell: FakeGridEngine, queue: Queue) -> None:
    id = queue.submit(spec(tmp_path, gpus=3))
    cell.set(id, state="r", host="node1.example.org")
    (host,) = queue.hosts()
    assert (host.name, host.gpus, host.gpus_used, host.cores) == ("node1", 4, 3, 8)


def test_how_a_resource_is_counted(cell: FakeGridEngine, queue: Queue) -> None:
    counts = {name: queue.consumable(name) for name in ("slots", "s", "h_rt", "gpu", "none")}
    assert counts == {"slots": "YES", "s": "YES", "h_rt": "NO", "gpu": "JOB", "none": ""}
    cell.go_down()
    assert queue.consumable("slots") == ""
    (cell.programs / "qconf").unlink()
    assert queue.consumable("slots") == ""


def test_a_lock_outlives_a_killed_caller_until_qsub_is_done(
    tmp_path: Path, cell: FakeGridEngine
) -> None:
    with cell.state() as state:
        state["hang_s"] = 600
    lock = tmp_path / "lock"
    code = (
        "import fcntl, os, sys; from pathlib import Path\n"
        "from sge_jobs import JobSpec, Queue\n"
        f"lock = os.open({str(lock)!r}, os.O_RDWR | os.O_CREAT); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        f"spec = JobSpec(name='n', argv=('true',), directory=Path('/'))\n"
        f"Queue(programs=Path({str(cell.programs)!r})).submit(spec, inherit=[lock])\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: _called(cell))
    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()
    with lock.open("r+") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with cell.state() as state:
            state["hang_s"] = 0
        fcntl.flock(file, fcntl.LOCK_EX)  # free when qsub has exited


def _called(cell: FakeGridEngine) -> bool:
    with cell.state() as state:
        return bool(state["calls"])


def test_variables_of_a_user_stay(tmp_path: Path) -> None:
    given = {"SGE_ROOT": "/opt/sge", "SGE_CELL": "c", "SGE_ARCH": "a", "X": "y"}
    assert with_cell(given) == given
