"""The queue driver with trials queued ahead: a pilot that finishes a trial runs a pending one."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from spearmint.drivers import Dialect, DriverSettings, JobState, QueueJobState
from spearmint.drivers.submission import token_of
from spearmint.drivers.testing import FakeQueue
from spearmint.drivers.testing.trials import until
from spearmint.errors import DriverUnreachable
from spearmint.layout import Layout, write_json
from spearmint.trial.pending import PendingTrials
from tests.spearmint.drivers.fake_driver import FakeQueueDriver


@pytest.fixture
def ahead(make) -> Callable[..., FakeQueueDriver]:
    return partial(make, queues_ahead=True)


@pytest.fixture
def pending(tmp_path: Path) -> PendingTrials:
    return PendingTrials(Layout(tmp_path).pending)


def queue_token(request) -> str:
    return token_of(request.folder)


def finish(queue: FakeQueue, job_id: str) -> None:
    Path(queue.specs[job_id].environment["SPEARMINT_DONE_FILE"]).touch()


@pytest.fixture
def two(ahead, queue, request_of, pending):
    """Return a driver whose job 1 has finished its trial and now runs the trial of job 2."""
    driver = ahead()
    jobs = [driver.submit(request_of(i)) for i in (1, 2)]
    assert pending.claim(queue.specs["job.1"].argv[4], "job.1")
    queue.set_state("job.1", QueueJobState.RUNNING)
    driver.poll(jobs)
    finish(queue, "job.1")
    Path(request_of(1).folder.result).write_text(json.dumps({"value": 1.0}))
    assert pending.take_next("job.1") is not None
    return driver, jobs


def test_the_next_trial_lives_in_the_first_job_and_its_own_is_deleted(two, queue) -> None:
    driver, (first, second) = two
    assert driver.poll([first, second]) == {first: JobState.GONE, second: JobState.ALIVE}
    assert queue.cancelled == ["job.2"]
    finish(queue, "job.2")
    assert driver.poll([second])[second] is JobState.FINISHED
    queue.remove("job.1")
    assert driver.poll([second])[second] is JobState.GONE
    assert queue.cancelled == ["job.2"], "job 2 is cancelled once"


def test_a_trial_reported_as_gone_is_not_cancelled_when_its_job_finishes_the_next(two, queue):
    driver, (first, second) = two
    assert driver.poll([first, second])[first] is JobState.GONE
    finish(queue, "job.2")  # by job 1, which now looks as if it had nothing left to do
    driver.cancel([first])
    driver.end([first])
    assert "job.1" not in queue.cancelled, "it can claim a third trial at any instant"


def test_it_is_gone_with_the_job_that_runs_it(two, queue) -> None:
    driver, (_, second) = two
    driver.poll([second])
    queue.remove("job.1")
    assert driver.poll([second])[second] is JobState.GONE


def test_cancel_ends_the_job_that_runs_it(two, queue) -> None:
    driver, (_, second) = two
    driver.poll([second])
    driver.cancel([second])
    assert "job.1" in queue.cancelled
    assert driver.poll([second])[second] is JobState.GONE


def test_no_pilot_runs_a_cancelled_trial(ahead, queue, request_of, pending) -> None:
    driver = ahead()
    job = driver.submit(request_of(1))
    driver.cancel([job])
    assert pending.take_next("job.9") is None


def test_no_pilot_runs_a_held_trial(ahead, queue, request_of, pending) -> None:
    driver = ahead()
    job = driver.submit(request_of(1))
    queue.set_state("job.1", QueueJobState.HELD)
    driver.poll([job])
    assert pending.take_next("job.9") is None
    assert pending.claim(queue.specs["job.1"].argv[4], "job.1"), (
        "its own job runs it after the release"
    )


def test_the_next_controller_finds_it_by_its_claim(two, ahead, queue, request_of) -> None:
    heir = ahead()
    job = heir.adopt(request_of(2).folder)
    assert job is not None
    assert job.id.startswith("job.1/"), "not the job of the first trial"
    assert heir.adopt(request_of(1).folder) is None, "its result is written"
    assert heir.poll([job])[job] is JobState.ALIVE
    assert queue.cancelled == ["job.2"]


def test_a_trial_taken_while_its_submission_failed_is_running(ahead, queue, request_of, pending):
    driver = ahead()
    first = driver.submit(request_of(1))
    queue.set_state("job.1", QueueJobState.RUNNING)
    submit = queue.submit

    def take_and_fail(spec, *, inherit):
        request_of(1).folder.result.write_text("{}")
        assert pending.claim(queue.specs["job.1"].argv[4], "job.1")
        assert pending.take_next("job.1") is not None
        queue.is_silent = True
        return submit(spec, inherit=inherit)

    queue.submit = take_and_fail
    second = driver.submit(request_of(2))
    queue.is_silent = False
    assert second != first, "the first trial may still be active"
    finish(queue, "job.1")
    assert driver.poll([first, second]) == {first: JobState.GONE, second: JobState.ALIVE}
    driver.cancel([first])
    assert queue.cancelled == [], "cancelling job 1 would terminate the second trial"


def test_without_an_answer_the_trial_is_withdrawn(ahead, queue, request_of, pending) -> None:
    driver = ahead()
    queue.is_silent = True
    with pytest.raises(DriverUnreachable):
        driver.submit(request_of(1))
    assert pending.take_next("job.9") is None


def test_with_a_walltime_each_trial_has_its_own_job(ahead, queue, request_of, pending) -> None:
    driver = ahead(walltime_s=60.0)
    driver.submit(request_of(1))
    assert pending.take_next("job.9") is None
    assert "spearmint.trial.runner" in queue.specs["job.1"].argv


def test_a_run_that_queues_nothing_ahead_still_follows_an_earlier_one_that_did(
    ahead, make, queue, request_of, pending
) -> None:
    before = ahead()
    for i in (1, 2):
        before.submit(request_of(i))
    queue.set_state("job.1", QueueJobState.RUNNING)
    heir = make()
    first, second = (heir.adopt(request_of(i).folder) for i in (1, 2))
    assert pending.claim(queue.specs["job.1"].argv[4], "job.1")
    finish(queue, "job.1")
    request_of(1).folder.result.write_text("{}")
    assert pending.take_next("job.1") is not None
    states = heir.poll([first, second])
    assert states[second] is JobState.ALIVE
    assert queue.cancelled == ["job.2"]


def test_a_pending_trial_that_was_never_submitted_is_withdrawn_or_followed(
    ahead, queue, request_of, pending
) -> None:
    killed = ahead()
    for i in (1, 2, 3):
        killed._offer(queue_token(request_of(i)), request_of(i))
    running = killed.submit(request_of(4))
    queue.set_state(running.id, QueueJobState.RUNNING)
    assert pending.take_next(running.id) is not None
    heir = ahead()
    taken, *others = (heir.adopt(request_of(i).folder) for i in (1, 2, 3))
    assert heir.poll([taken])[taken] is JobState.ALIVE
    assert others == [None, None]
    assert pending.take_next("job.9")["folder"].endswith("4"), "trial 4 was submitted"
    assert not list(pending._waiting.iterdir()), "no pilot can claim trials to be resubmitted"


def test_a_queued_job_whose_trial_another_finished_is_deleted(two, ahead, queue, request_of):
    request_of(2).folder.result.write_text("{}")
    queue.remove("job.1")
    heir = ahead()
    assert heir.adopt(request_of(2).folder) is None
    heir.poll([])
    assert queue.cancelled == ["job.2"]


def test_a_trial_that_ended_this_instant_is_not_cancelled_with_the_next(two, queue) -> None:
    driver, (first, _) = two
    driver.cancel([first])
    assert "job.1" not in queue.cancelled


def test_notices_name_the_trial_that_runs(two, queue) -> None:
    driver, jobs = two
    driver.poll(jobs)
    queue.set_state("job.1", QueueJobState.SUSPENDED)
    driver.poll(jobs)
    assert "jobs/00000002" in driver.notices()[-1]


def test_a_real_pilot_runs_all_trials_one_after_the_other(tmp_path: Path, request_of) -> None:
    """The job of the first trial runs the other trials while their jobs wait for a slot."""
    code = (
        "import os\ndef main(job_id, params):\n    print(os.environ['FAKE_JOB'])\n    return 1.0\n"
    )
    (tmp_path / "wrapper.py").write_text(code)
    (tmp_path / "output").mkdir()
    requests = [request_of(i) for i in (1, 2, 3)]
    for i, request in enumerate(requests, start=1):
        spec = {"key": "k", "job_id": i, "directory": str(tmp_path), "name": "wrapper"}
        write_json(request.folder.spec, {**spec, "language": "PYTHON", "params": {}})
    settings = DriverSettings(directory=tmp_path, polling_s=0.0, queues_ahead=True)
    driver = FakeQueueDriver(settings)
    queue = driver._queue
    assert isinstance(queue, FakeQueue)
    queue.slots = 0
    jobs = [driver.submit(request) for request in requests]
    queue.slots = 1
    until(lambda: set(driver.poll(jobs).values()) == {JobState.GONE}, "all jobs are GONE")
    assert [request.folder.result.exists() for request in requests] == [True] * 3
    assert {request.output.read_text() for request in requests} == {"job.1\n"}


def test_a_pilot_that_was_put_back_into_the_queue_is_not_surplus(two, ahead, queue, request_of):
    """Its host was lost: the job waits, and later continues with the trial that it claimed last."""
    queue.set_state("job.1", QueueJobState.PENDING)
    heir = ahead()
    assert heir.adopt(request_of(1).folder) is None
    second = heir.adopt(request_of(2).folder)
    assert heir.poll([second])[second] is JobState.WAITING
    assert queue.cancelled == ["job.2"]


def test_a_queue_that_tells_a_job_no_id_gets_a_job_for_each_trial(
    ahead, queue, request_of, pending, monkeypatch
) -> None:
    monkeypatch.setattr(FakeQueueDriver, "dialect", Dialect(queue="no ids"))
    ahead().submit(request_of(1))
    assert pending.take_next("job.9") is None
    assert "spearmint.trial.runner" in queue.specs["job.1"].argv
