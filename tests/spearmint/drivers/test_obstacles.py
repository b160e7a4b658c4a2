"""Pending jobs that can never start are told once for each reason; a busy queue is not."""

from __future__ import annotations

import pytest

from spearmint.drivers import Obstacle, QueueJobState
from spearmint.drivers import queue_obstacles as module
from spearmint.errors import DriverError, DriverUnreachable

CLOSED = Obstacle(reason="queue a.q: disabled", fix="enable a.q", key="d")
FEW = Obstacle(reason="only 2 GPUs", fix="--gpus=2")
ALARM = Obstacle(reason="in alarm", passes=True)


@pytest.fixture
def driver(make, queue, request_of, monkeypatch):
    """Return a driver with a pending job that checks it at every poll."""
    monkeypatch.setattr(module, "_FIRST_S", 0.0)
    monkeypatch.setattr(module, "_NEXT_S", (0.0, 0.0))
    made = make()
    made.job = made.submit(request_of(1))
    return made


def told(driver, queue, answers) -> list[str]:
    """Return the messages after polls with these answers of the queue."""
    given = iter(answers)

    def obstacle(id: str) -> Obstacle | None:
        answer = next(given)
        if isinstance(answer, Exception):
            raise answer
        return answer

    queue.obstacle = obstacle
    for _ in answers:
        driver.poll([driver.job])
    return driver.notices()


def test_each_reason_is_told_once(driver, queue) -> None:
    again = Obstacle(reason="queues a.q, b.q: disabled", fix="enable a.q", key="d")
    first, second, third = told(driver, queue, [CLOSED, again, FEW, FEW, None, FEW])
    assert "queue a.q: disabled\nenable a.q" in first
    assert "only 2 GPUs" in second
    assert second == third


def test_a_busy_or_silent_queue_is_no_obstacle(driver, queue) -> None:
    answers = [None, DriverUnreachable("no answer"), DriverError("denied")]
    assert told(driver, queue, answers) == []
    assert driver.blocked() == ""


def test_what_passes_is_told_late_and_never_blocks(driver, queue, monkeypatch) -> None:
    assert told(driver, queue, [ALARM, ALARM]) == []
    monkeypatch.setattr(module, "_PASSING_S", 0.0)
    assert len(told(driver, queue, [ALARM, ALARM])) == 1
    assert driver.blocked() == ""


def test_a_search_is_blocked_only_before_its_first_trial(driver, queue, request_of) -> None:
    told(driver, queue, [CLOSED])
    assert "enable a.q" in driver.blocked()
    queue.set_state(driver.job.id, QueueJobState.RUNNING)
    queue.obstacle = lambda id: CLOSED
    driver.poll([driver.job])
    other = driver.submit(request_of(2))
    driver.poll([driver.job, other])
    assert driver._obstacles.lasting
    assert driver.blocked() == ""


def test_held_jobs_are_not_checked(driver, queue) -> None:
    queue.set_state(driver.job.id, QueueJobState.HELD)
    queue.obstacle = lambda id: pytest.fail("asked")
    driver.poll([driver.job])
    assert driver.blocked() == ""
