"""The SGE driver with trials queued ahead: a job that ends a trial goes on with the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sge_jobs.model import JobStatus
from spearmint.drivers import DriverSettings, JobState
from spearmint.drivers.sge.driver import SgeDriver
from spearmint.drivers.sge.spec import token_of
from spearmint.errors import DriverUnreachable
from spearmint.layout import Layout
from spearmint.resources import Resources
from spearmint.trial.pending import Tickets
from tests.spearmint.drivers.fake_queue import FakeQueue


@pytest.fixture
def ahead(make, queue: FakeQueue, tmp_path: Path):
    def ahead(**need: object) -> SgeDriver:
        settings = DriverSettings(
            directory=tmp_path, polling_s=0.0, queues_ahead=True, resources=Resources(**need)
        )
        return SgeDriver(settings, queue=queue)

    return ahead


@pytest.fixture
def tickets(tmp_path: Path) -> Tickets:
    return Tickets(Layout(tmp_path).tickets)


def queue_token(request) -> str:
    return token_of(request.folder)


def ring(queue: FakeQueue, job_id: str) -> None:
    Path(queue.specs[job_id].environment["SPEARMINT_ENDED"]).touch()


@pytest.fixture
def two(ahead, queue, request_of, tickets):
    """Return a driver whose job 1 has ended its trial and gone on with that of job 2."""
    driver = ahead()
    jobs = [driver.submit(request_of(i)) for i in (1, 2)]
    assert tickets.claim(queue.specs["1"].argv[4], "1")
    queue.listed["1"] = JobStatus.RUNNING
    driver.poll(jobs)
    ring(queue, "1")
    Path(request_of(1).folder.result).write_text(json.dumps({"value": 1.0}))
    assert tickets.take_next("1") is not None
    return driver, jobs


def test_the_next_trial_lives_in_the_first_job_and_its_own_is_deleted(two, queue) -> None:
    driver, (first, second) = two
    assert driver.poll([first, second]) == {first: JobState.GONE, second: JobState.ALIVE}
    assert queue.deleted == ["2"]
    ring(queue, "2")
    assert driver.poll([second])[second] is JobState.FINISHED
    del queue.listed["1"]
    assert driver.poll([second])[second] is JobState.GONE
    assert queue.deleted == ["2"], "deleted once"


def test_it_is_gone_with_the_job_that_runs_it(two, queue) -> None:
    driver, (_, second) = two
    driver.poll([second])
    del queue.listed["1"]
    assert driver.poll([second])[second] is JobState.GONE


def test_cancel_ends_the_job_that_runs_it(two, queue) -> None:
    driver, (_, second) = two
    driver.poll([second])
    driver.cancel([second])
    assert "1" in queue.deleted
    assert driver.poll([second])[second] is JobState.GONE


def test_nobody_goes_on_with_a_cancelled_trial(ahead, queue, request_of, tickets) -> None:
    driver = ahead()
    job = driver.submit(request_of(1))
    driver.cancel([job])
    assert tickets.take_next("9") is None


def test_nobody_goes_on_with_a_held_trial(ahead, queue, request_of, tickets) -> None:
    driver = ahead()
    job = driver.submit(request_of(1))
    queue.listed["1"] = JobStatus.HELD
    driver.poll([job])
    assert tickets.take_next("9") is None
    assert tickets.claim(queue.specs["1"].argv[4], "1"), "it runs itself, once it is released"


def test_the_next_controller_finds_it_by_its_ticket(two, ahead, queue, request_of) -> None:
    heir = ahead()
    job = heir.adopt(request_of(2).folder)
    assert job is not None
    assert job.id.startswith("1/"), "not the job of the first trial"
    assert heir.adopt(request_of(1).folder) is None, "its result stands"
    assert heir.poll([job])[job] is JobState.ALIVE
    assert queue.deleted == ["2"]


def test_a_trial_taken_while_its_submission_failed_is_running(ahead, queue, request_of, tickets):
    driver = ahead()
    first = driver.submit(request_of(1))
    queue.listed["1"] = JobStatus.RUNNING
    submit = queue.submit

    def take_and_fail(spec, *, inherit):
        request_of(1).folder.result.write_text("{}")
        assert tickets.claim(queue.specs["1"].argv[4], "1")
        assert tickets.take_next("1") is not None
        queue.silent = True
        return submit(spec, inherit=inherit)

    queue.submit = take_and_fail
    second = driver.submit(request_of(2))
    queue.silent = False
    assert second != first, "the first trial may still be active"
    ring(queue, "1")
    assert driver.poll([first, second]) == {first: JobState.GONE, second: JobState.ALIVE}
    driver.cancel([first])
    assert queue.deleted == [], "that would end the second trial"


def test_without_an_answer_the_ticket_is_withdrawn(ahead, queue, request_of, tickets) -> None:
    driver = ahead()
    queue.silent = True
    with pytest.raises(DriverUnreachable):
        driver.submit(request_of(1))
    assert tickets.take_next("9") is None


def test_with_a_walltime_each_trial_has_its_own_job(ahead, queue, request_of, tickets) -> None:
    driver = ahead(walltime_s=60.0)
    driver.submit(request_of(1))
    assert tickets.take_next("9") is None
    assert "spearmint.trial.runner" in queue.specs["1"].argv


def test_a_run_that_queues_nothing_ahead_still_follows_an_earlier_one_that_did(
    ahead, make, queue, request_of, tickets
) -> None:
    before = ahead()
    for i in (1, 2):
        before.submit(request_of(i))
    queue.listed["1"] = JobStatus.RUNNING
    heir = make()
    first, second = (heir.adopt(request_of(i).folder) for i in (1, 2))
    assert tickets.claim(queue.specs["1"].argv[4], "1")
    ring(queue, "1")
    request_of(1).folder.result.write_text("{}")
    assert tickets.take_next("1") is not None
    states = heir.poll([first, second])
    assert states[second] is JobState.ALIVE
    assert queue.deleted == ["2"]


def test_a_ticket_that_was_never_submitted_is_withdrawn_or_followed(
    ahead, queue, request_of, tickets
) -> None:
    killed = ahead()
    for i in (1, 2, 3):
        killed._offer(queue_token(request_of(i)), request_of(i))
    running = killed.submit(request_of(4))
    queue.listed[running.id] = JobStatus.RUNNING
    assert tickets.take_next(running.id) is not None
    heir = ahead()
    taken, *others = (heir.adopt(request_of(i).folder) for i in (1, 2, 3))
    assert heir.poll([taken])[taken] is JobState.ALIVE
    assert others == [None, None]
    assert tickets.take_next("9")["folder"].endswith("4"), "the one that is submitted"
    assert not list(tickets._waiting.iterdir()), "nobody can start what will be submitted anew"


def test_a_queued_job_whose_trial_another_finished_is_deleted(two, ahead, queue, request_of):
    request_of(2).folder.result.write_text("{}")
    del queue.listed["1"]
    heir = ahead()
    assert heir.adopt(request_of(2).folder) is None
    heir.poll([])
    assert queue.deleted == ["2"]


def test_a_trial_that_ended_this_instant_is_not_cancelled_with_the_next(two, queue) -> None:
    driver, (first, _) = two
    driver.cancel([first])
    assert "1" not in queue.deleted


def test_notices_name_the_trial_that_runs(two, queue) -> None:
    driver, jobs = two
    driver.poll(jobs)
    queue.listed["1"] = JobStatus.SUSPENDED
    driver.poll(jobs)
    assert "jobs/00000002" in driver.notices()[-1]
