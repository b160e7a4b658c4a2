"""The SGE driver against a queue in memory: names, lost answers, states, ends."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sge_jobs.errors import SubmitError
from sge_jobs.model import AccountingRecord, JobSpec, JobStatus, QueuedJob
from spearmint.drivers import JobState
from spearmint.drivers.sge import driver as sge_module
from spearmint.drivers.sge.ends import explain_end
from spearmint.errors import DriverError, DriverUnreachable


def record(**changes: object) -> AccountingRecord:
    base = {"id": "1", "name": "x", "owner": "me", "host": "node001", "failed": 0, "exit_status": 0}
    return AccountingRecord(**{**base, **changes})


def test_a_job_is_found_again_by_another_driver_through_its_name(make, queue, request_of) -> None:
    job = make().submit(request_of(7, "x" * 300))
    make().submit(request_of(8, "x" * 300))
    assert make().adopt(request_of(7).folder) == job
    assert make().adopt(request_of(9).folder) is None
    names = {spec.name for spec in queue.specs.values()}
    assert len(names) == 2
    assert all(len(name) < 120 for name in names), "nothing is cut off behind the token"


def test_an_answer_that_was_lost_does_not_submit_twice(make, queue, request_of) -> None:
    driver, request = make(), request_of(1)
    queue.loses = True
    with pytest.raises(DriverUnreachable):
        driver.submit(request)
    queue.loses = False
    assert driver.submit(request).id == "1"
    assert len(queue.specs) == 1


def test_a_refused_job_is_told_in_qsub_s_words(make, queue, request_of, monkeypatch) -> None:
    def refuse(spec: JobSpec, *, inherit: object) -> str:
        raise SubmitError('unknown resource "gpu"', "sge-jobs setup")

    monkeypatch.setattr(queue, "submit", refuse)
    with pytest.raises(DriverError, match="gpu") as error:
        make().submit(request_of(1))
    assert not isinstance(error.value, DriverUnreachable)
    assert error.value.fix == "sge-jobs setup"


def test_states(make, queue, request_of) -> None:
    driver = make()
    job = driver.submit(request_of(1))
    expected = {
        JobStatus.PENDING: JobState.WAITING,
        JobStatus.HELD: JobState.WAITING,
        JobStatus.ERROR: JobState.WAITING,
        JobStatus.RUNNING: JobState.ALIVE,
        JobStatus.SUSPENDED: JobState.WAITING,
    }
    for status, state in expected.items():
        queue.listed["1"] = status
        assert driver.poll([job]) == {job: state}, status
    Path(queue.specs["1"].environment["SPEARMINT_ENDED"]).touch()
    assert driver.poll([job]) == {job: JobState.FINISHED}
    del queue.listed["1"]
    assert driver.poll([job]) == {job: JobState.GONE}


def test_a_job_younger_than_the_last_answer_is_not_gone(make, queue, request_of) -> None:
    driver = make(polling_s=3600)
    first = driver.submit(request_of(1))
    assert driver.poll([first])[first] is JobState.WAITING
    second = driver.submit(request_of(2))
    states = driver.poll([first, second])
    assert states == {first: JobState.WAITING, second: JobState.WAITING}
    assert queue.asked == 1, "and qstat was not asked for it"


def test_a_silent_queue_says_nothing(make, queue, request_of) -> None:
    driver = make()
    job = driver.submit(request_of(1))
    driver.poll([job])
    queue.silent = True
    with pytest.raises(DriverUnreachable, match="does not answer"):
        driver.poll([job])
    queue.silent = False
    assert driver.poll([job])[job] is JobState.WAITING


def test_qstat_is_asked_less_often_the_longer_it_takes(make, queue, request_of, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(sge_module, "_LOAD", 50)
    monkeypatch.setattr(sge_module.time, "monotonic", lambda: now[0])
    jobs = queue.jobs

    def slow(user: str | None = None) -> list[QueuedJob]:
        now[0] += 1.0
        return jobs(user)

    monkeypatch.setattr(queue, "jobs", slow)
    driver = make(polling_s=3.0)
    job = driver.submit(request_of(1))
    for _ in range(100):
        driver.poll([job])
        now[0] += 1.0
    assert queue.asked <= 5, "1 s of qstat in 50 s at most"


def test_held_suspended_and_broken_jobs_are_told_once_with_the_cure(make, queue, request_of):
    driver = make()
    job = driver.submit(request_of(1))
    for status, cure in {
        JobStatus.HELD: "qrls 1",
        JobStatus.SUSPENDED: "qmod -usj 1",
        JobStatus.ERROR: "qmod -cj 1",
    }.items():
        queue.listed["1"] = status
        driver.poll([job])
        driver.poll([job])
        (notice,) = driver.notices()
        assert cure in notice
    assert "can't chdir to /gone" in notice
    assert driver.notices() == []


def test_cancel_ends_what_lives_and_asks_for_nothing_else(make, queue, request_of) -> None:
    driver = make()
    jobs = [driver.submit(request_of(i)) for i in (1, 2)]
    del queue.listed["1"]
    driver.poll(jobs)
    driver.cancel(jobs)
    assert queue.deleted == ["2"]
    assert set(driver.poll(jobs).values()) == {JobState.GONE}


def test_a_job_that_does_not_end_is_told(make, queue, request_of, monkeypatch) -> None:
    monkeypatch.setattr(sge_module, "_CANCEL_S", 0.2)
    driver = make()
    job = driver.submit(request_of(1))
    queue.stubborn = {"1"}
    driver.cancel([job])
    assert "qdel -f 1" in driver.notices()[-1]


def test_a_job_is_deleted_again_once_its_host_is_known_to_be_lost(
    make, queue, request_of, monkeypatch
) -> None:
    monkeypatch.setattr(sge_module, "_DELETE_AGAIN_S", 0.0)
    driver = make()
    job = driver.submit(request_of(1))
    queue.stubborn = {"1"}
    delete = queue.delete

    def lose_host(ids) -> None:
        delete(ids)
        queue.stubborn.clear()

    queue.delete = lose_host
    driver.cancel([job])
    assert queue.deleted == ["1", "1"]
    assert driver.notices() == []


def test_the_script_has_what_the_trial_needs(make, queue, request_of, tmp_path: Path) -> None:
    driver = make(
        gpus=2,
        slots=4,
        walltime_s=3600.0,
        memory="8G",
        queue="gpu.q",
        project="net",
        requests=("arch=lx-amd64",),
        options=("-m", "e"),
        environment=(("DATA", "/my data"),),
        modules=("cuda/12",),
        venv=tmp_path / "en v",
        setup=("ulimit -c 0",),
    )
    text = driver.preview(request_of(3))
    line, _, script = text.partition(" <<'END'\n")
    argv = shlex.split(line)
    assert "gpu=2" in " ".join(argv)
    for words in (["-pe", "smp", "4"], ["-q", "gpu.q"], ["-P", "net"], ["-m", "e"]):
        at = argv.index(words[0])
        assert argv[at : at + len(words)] == words
    joined = " ".join(argv)
    assert "h_rt=" in joined
    assert "mem_free=8G" in joined
    for part in ("DATA='/my data'", "OMP_NUM_THREADS=4", "module load cuda/12", "ulimit -c 0"):
        assert part in script
    assert f"'{tmp_path}/en v/bin/python' -P -m spearmint.trial.runner" in script


def test_capacity_is_what_hosts_that_answer_can_hold(make) -> None:
    assert make(gpus=1).capacity() == 2 + 1
    assert make(gpus=2).capacity() == 1 + 1
    assert make(gpus=0).capacity() == 4 + 1
    assert make(gpus=64).capacity() == 1


@pytest.mark.parametrize(
    ("records", "walltime_s", "words", "again"),
    [
        ([], None, "qacct does not know it", True),
        ([record(failed=100, exit_status=137)], None, "SIGKILL", True),
        ([record(exit_status=3)], None, "exited with status 3 on node001", True),
        ([record(failed=26, failed_text="opening output file")], None, "26 opening output", True),
        ([record(failed=37, exit_status=137)], 60.0, "timed out", False),
        ([record(failed=37, exit_status=137)], None, "it reached a limit", False),
        ([record(exit_status=137, wallclock_s=61.0)], 60.0, "timed out", False),
        ([record(exit_status=1, ended=1.0), record(exit_status=2, ended=9.0)], None, "2", True),
    ],
)
def test_how_a_job_ended(records, walltime_s, words, again) -> None:
    end = explain_end(records, walltime_s)
    assert words in end.text
    assert end.again is again
