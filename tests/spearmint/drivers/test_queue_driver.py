"""The driver of any queue: missing answers, states, messages, cancelling, capacity, job ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.drivers import (
    Dialect,
    DriverSettings,
    EndedRun,
    JobState,
    QueueHost,
    QueueJob,
    QueueJobState,
)
from spearmint.drivers import queue_driver as driver_module
from spearmint.drivers import queue_listing as listing_module
from spearmint.drivers.ends import explain_end
from spearmint.errors import DriverError, DriverUnreachable
from spearmint.resources import Resources
from tests.spearmint.drivers.fake_driver import FakeQueueDriver


def test_a_job_is_found_again_by_another_driver_through_its_token(make, queue, request_of) -> None:
    job = make().submit(request_of(7))
    make().submit(request_of(8))
    assert make().adopt(request_of(7).folder) == job
    assert make().adopt(request_of(9).folder) is None


def test_an_answer_that_was_lost_does_not_submit_twice(make, queue, request_of) -> None:
    driver, request = make(), request_of(1)
    queue.loses_answers = True
    with pytest.raises(DriverUnreachable):
        driver.submit(request)
    queue.loses_answers = False
    assert driver.submit(request).id == "job.1"
    assert len(queue.specs) == 1


def test_a_lost_answer_of_a_late_queue_is_settled_only_when_the_job_must_be_listed(
    make, queue, request_of, monkeypatch
) -> None:
    late = Dialect(queue="late", listed_after_s=3600)
    monkeypatch.setattr(FakeQueueDriver, "dialect", late)
    driver, request = make(), request_of(1)
    monkeypatch.setattr(driver, "_is_too_early", lambda: False)
    queue.is_silent = True
    with pytest.raises(DriverUnreachable):
        driver.submit(request)
    queue.is_silent = False
    with pytest.raises(DriverUnreachable) as error:
        driver.submit(request)
    assert str(request.folder.path) in error.value.what
    assert "late" in error.value.what
    driver._doubtful = dict.fromkeys(driver._doubtful, float("-inf"))
    driver.submit(request)
    assert len(queue.specs) == 1


def test_a_refused_job_is_reported_in_the_queue_s_words(make, queue, request_of, monkeypatch):
    def refuse(spec: object, *, inherit: object) -> str:
        raise DriverError('unknown resource "gpu"', "set it up")

    monkeypatch.setattr(queue, "submit", refuse)
    with pytest.raises(DriverError, match="gpu") as error:
        make().submit(request_of(1))
    assert not isinstance(error.value, DriverUnreachable)
    assert error.value.fix == "set it up"


def test_states(make, queue, request_of) -> None:
    driver = make()
    job = driver.submit(request_of(1))
    expected = {
        QueueJobState.PENDING: JobState.WAITING,
        QueueJobState.HELD: JobState.WAITING,
        QueueJobState.ERROR: JobState.WAITING,
        QueueJobState.PREEMPTED: JobState.WAITING,
        QueueJobState.SUSPENDED: JobState.WAITING,
        QueueJobState.RUNNING: JobState.ALIVE,
        QueueJobState.ENDING: JobState.ALIVE,
    }
    assert set(expected) == set(QueueJobState)
    for status, state in expected.items():
        queue.set_state(job.id, status)
        assert driver.poll([job]) == {job: state}, status
    Path(queue.specs[job.id].environment["SPEARMINT_DONE_FILE"]).touch()
    assert driver.poll([job]) == {job: JobState.FINISHED}
    queue.remove(job.id)
    assert driver.poll([job]) == {job: JobState.GONE}


def test_a_job_younger_than_the_last_listing_is_not_gone(make, queue, request_of) -> None:
    driver = make(polling_s=3600)
    first = driver.submit(request_of(1))
    assert driver.poll([first])[first] is JobState.WAITING
    second = driver.submit(request_of(2))
    states = driver.poll([first, second])
    assert states == {first: JobState.WAITING, second: JobState.WAITING}
    assert queue.listings == 1, "a poll does not list the jobs a second time"


def test_a_silent_queue_says_nothing(make, queue, request_of) -> None:
    driver = make()
    job = driver.submit(request_of(1))
    driver.poll([job])
    queue.is_silent = True
    with pytest.raises(DriverUnreachable):
        driver.poll([job])
    queue.is_silent = False
    assert driver.poll([job])[job] is JobState.WAITING


def test_a_queue_is_listed_less_often_the_longer_it_takes(make, queue, request_of, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(listing_module, "_LOAD", 50)
    monkeypatch.setattr(listing_module.time, "monotonic", lambda: now[0])
    jobs = queue.jobs

    def slow() -> list[QueueJob]:
        now[0] += 1.0
        return jobs()

    monkeypatch.setattr(queue, "jobs", slow)
    driver = make(polling_s=3.0)
    job = driver.submit(request_of(1))
    for _ in range(100):
        driver.poll([job])
        now[0] += 1.0
    assert queue.listings <= 5, "at most 1 s of listing in 50 s"


def test_held_suspended_preempted_and_failed_jobs_are_reported_once_with_the_cure(
    make, queue, request_of
) -> None:
    driver = make()
    job = driver.submit(request_of(1))
    for status, facts in {
        QueueJobState.HELD: ["(H)", "free job.1"],
        QueueJobState.SUSPENDED: ["(S)", "free job.1"],
        QueueJobState.PREEMPTED: ["(P)", "The fake queue"],
        QueueJobState.ERROR: ["(E)", "free job.1", "cancel job.1", "/gone"],
    }.items():
        queue.set_state(job.id, status, reason="/gone: No such file or directory")
        driver.poll([job])
        driver.poll([job])
        (notice,) = driver.notices()
        assert notice.startswith("job job.1 (jobs/00000001) ")
        assert all(fact in notice for fact in facts)
    assert driver.notices() == []


def test_the_reason_of_an_error_is_asked_again_until_the_queue_knows_it(
    make, queue, request_of, monkeypatch
) -> None:
    driver = make()
    late, never = (driver.submit(request_of(i)) for i in (1, 2))
    for job in (late, never):
        queue.set_state(job.id, QueueJobState.ERROR)
    driver.poll([late, never])
    assert driver.notices() == []
    queue.set_state(late.id, QueueJobState.ERROR, reason="/gone: No such file or directory")
    found: list[str] = []
    for _ in range(10):
        driver.poll([late, never])
        found += driver.notices()
    assert ["/gone" in notice for notice in found] == [True, False]
    assert "no reason" in found[1]


def test_cancel_ends_what_runs_and_asks_for_nothing_else(make, queue, request_of) -> None:
    driver = make()
    jobs = [driver.submit(request_of(i)) for i in (1, 2)]
    queue.remove("job.1")
    driver.poll(jobs)
    driver.cancel(jobs)
    assert queue.cancelled == ["job.2"]
    assert set(driver.poll(jobs).values()) == {JobState.GONE}


def test_a_job_that_does_not_end_is_reported(make, queue, request_of, monkeypatch) -> None:
    monkeypatch.setattr(driver_module, "_CANCEL_S", 0.2)
    driver = make()
    job = driver.submit(request_of(1))
    queue.lose_host(job.id)
    driver.cancel([job])
    assert "forget job.1" in driver.notices()[-1]


def test_a_job_is_cancelled_again_once_its_host_is_known_to_be_lost(
    make, queue, request_of, monkeypatch
) -> None:
    monkeypatch.setattr(driver_module, "_CANCEL_AGAIN_S", 0.0)
    driver = make()
    job = driver.submit(request_of(1))
    queue.lose_host(job.id)
    cancel = queue.cancel

    def cancel_and_find(ids: object) -> None:
        cancel(ids)
        if len(queue.cancelled) == 1:
            queue.find_host(job.id)

    queue.cancel = cancel_and_find
    driver.cancel([job])
    assert queue.cancelled == ["job.1", "job.1"]
    assert not any("forget" in notice for notice in driver.notices())


def test_a_job_that_was_ended_before_it_was_listed_is_cancelled_when_it_is(
    make, queue, request_of, monkeypatch
) -> None:
    monkeypatch.setattr(FakeQueueDriver, "dialect", Dialect(queue="late", listed_after_s=3600))
    queue.late_s = 0.2
    driver = make()
    job = driver.submit(request_of(1))
    driver.end([job])
    assert queue.cancelled == []
    while driver.poll([job])[job] is not JobState.GONE and not queue.cancelled:
        pass
    assert queue.cancelled == ["job.1"]


def test_capacity_is_what_the_hosts_can_hold(make, queue) -> None:
    queue.known_hosts = [
        QueueHost(name="a", slots=4, gpus=2, gpu_shares=2),
        QueueHost(name="b", slots=1, gpus=8),
    ]
    assert make(gpus=1).capacity() == 2 + 1
    assert make(gpus=2).capacity() == 1 + 1
    assert make(gpus=0).capacity() == 4 + 1
    assert make(gpus=64).capacity() == 1
    assert make(gpus=0.6).capacity() == 2
    assert make(gpus=0.29).capacity() == 4


def test_capacity_is_one_where_hosts_are_unknown(make, queue) -> None:
    assert make().capacity() == 1


def test_the_environment_names_the_variable_and_the_code_of_the_queue(make, queue, request_of):
    make(queues_ahead=True, slots=4, environment=(("DATA", "/my data"),)).submit(request_of(1))
    environment = queue.specs["job.1"].environment
    assert environment["SPEARMINT_JOB_ID_VARIABLE"] == "FAKE_JOB"
    assert environment["SPEARMINT_RERUN_EXIT_CODE"] == "75"
    assert environment["OMP_NUM_THREADS"] == "4"
    assert environment["DATA"] == "/my data"


DIALECT = Dialect(queue="Q", accounting="acct", cancel="del {id}")


def run(**how: object) -> EndedRun:
    return EndedRun(host="node001", **how)


@pytest.mark.parametrize(
    ("runs", "walltime_s", "facts", "again"),
    [
        ([], None, ["acct"], True),
        (None, None, ["Q"], True),
        ([run(signal=9, exit_status=137)], None, ["9 (SIGKILL)", "node001", "del"], True),
        ([run(exit_status=3)], None, ["status 3", "node001"], True),
        ([run(failure="26 opening output file")], None, ["Q", "node001", "26 opening"], True),
        ([run(timed_out=True, signal=9)], 60.0, ["walltime", "1 min", "node001"], False),
        ([run(timed_out=True)], None, ["walltime", "node001"], False),
        ([run(limit="memory", signal=9)], 60.0, ["memory", "node001"], False),
        ([run(signal=9, seconds=61.0)], 60.0, ["walltime", "1 min", "node001"], False),
        ([run(exit_status=1, ended=1.0), run(exit_status=2, ended=9.0)], None, ["status 2"], True),
    ],
)
def test_how_a_job_ended(runs, walltime_s, facts, again) -> None:
    end = explain_end(runs, DIALECT, walltime_s)
    assert all(fact in end.text for fact in facts), end.text
    assert end.again is again


def test_a_queue_without_accounting_is_not_waited_for(make, queue, request_of) -> None:
    queue.has_accounting = False
    driver = make()
    job = driver.submit(request_of(1))
    queue.remove(job.id)
    driver.poll([job])
    assert "The fake queue" in driver.explain(job).text


def test_a_preempted_trial_runs_again_as_the_same_job(tmp_path: Path) -> None:
    from spearmint.drivers.testing.trials import make_request, until, until_gone

    code = (
        "import os, time\ndef main(job_id, params):\n    open('starts', 'a').write('x')\n"
        "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 0.5\n"
    )
    settings = DriverSettings(directory=tmp_path, polling_s=0.0, resources=Resources())
    driver, request = FakeQueueDriver(settings), make_request(tmp_path, code)
    queue, job = driver._queue, driver.submit(request)
    starts = tmp_path / "starts"
    until(lambda: starts.exists() and starts.read_text(), "the trial starts")
    queue.set_state(job.id, QueueJobState.PREEMPTED)
    until(lambda: driver.poll([job])[job] is JobState.WAITING, "the job waits")
    (tmp_path / "go").touch()
    queue.free(job.id)
    until_gone(driver, job)
    assert starts.read_text() == "xx"
    assert request.folder.result.exists()


def test_a_trial_that_is_done_before_its_job_is_listed_is_finished(
    make, queue, request_of, monkeypatch
) -> None:
    monkeypatch.setattr(FakeQueueDriver, "dialect", Dialect(queue="late", listed_after_s=3600))
    queue.late_s = 3600
    driver = make()
    job = driver.submit(request_of(1))
    assert driver.poll([job]) == {job: JobState.WAITING}
    Path(queue.specs["job.1"].environment["SPEARMINT_DONE_FILE"]).touch()
    assert driver.poll([job]) == {job: JobState.FINISHED}
