"""Requests are applied once: by a running controller, by a command, after a kill at any step."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spearmint.layout import Layout
from spearmint.model import TrialState
from spearmint.requests import Inbox, Request, apply
from spearmint.requests.inbox import Action
from spearmint.store.study import Study
from tests.spearmint.fakes import FakeDriver


class Killed(BaseException):
    """Ends a process at a step, as kill -9 does."""


def add(*values: float, **settings) -> Request:
    points = tuple({"x": value} for value in values)
    return Request(action=Action.ADD, points=points, **settings)


def put(root: Path, request: Request) -> Inbox:
    inbox = Inbox(Layout(root))
    inbox.put(request)
    return inbox


def test_added_points_run_before_proposals(make_loop, tmp_path) -> None:
    search = make_loop(FakeDriver(), finished=3)
    inbox = put(tmp_path, add(0.25, 0.75))
    search.run()
    assert [trial.params["x"] for trial in search.study.trials()][:2] == [(0.25,), (0.75,)]
    assert inbox.names() == []


def test_points_that_were_tried_are_left_out_unless_repeated(make_loop, tmp_path) -> None:
    search = make_loop(FakeDriver(), finished=2)
    put(tmp_path, add(0.25, 0.75))
    search.run()
    inbox = put(tmp_path, add(0.25, 0.5))
    assert "1" in apply(search.study, inbox, inbox.read(inbox.names()[0]))
    assert search.study.queued_points() == [{"x": 0.5}]
    put(tmp_path, add(0.25, repeat=True))
    apply(search.study, inbox, inbox.read(inbox.names()[0]))
    assert {"x": 0.25} in search.study.queued_points()


def test_points_outside_are_not_called_known(make_loop, tmp_path) -> None:
    search = make_loop(FakeDriver())
    inbox = put(tmp_path, add(0.5, 1e6))
    text = apply(search.study, inbox, inbox.read(inbox.names()[0]))
    assert text == "Queued 1 point; 1 left out, outside of bounds or require."
    assert search.study.queued_points() == [{"x": 0.5}]


@pytest.mark.parametrize(
    "step", ["enqueue", "mark_applied", "remove"], ids=["queueing", "marking", "deleting"]
)
def test_a_kill_at_each_step_applies_a_request_once(
    make_loop, tmp_path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    study = make_loop(FakeDriver()).study
    inbox = put(tmp_path, add(0.25, 0.5, 0.75, repeat=True))
    (name,) = inbox.names()

    def dies(*arguments: object, **settings: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Inbox if step == "remove" else Study, step, dies)
        if step != "remove":  # a killed process commits nothing
            patch.setattr("sqlalchemy.engine.RootTransaction.commit", lambda self: None)
        with pytest.raises(Killed):
            apply(study, inbox, inbox.read(name))
    assert inbox.names() == [name]
    apply(study, inbox, inbox.read(name))
    assert sorted(point["x"] for point in study.queued_points()) == [0.25, 0.5, 0.75]
    assert inbox.names() == []


def test_a_request_is_stored_as_a_whole_or_not(
    make_loop, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between two points, in a command: the process still commits what is open."""
    study = make_loop(FakeDriver()).study
    inbox = put(tmp_path, add(0.25, 0.5, 0.75, repeat=True))
    (name,) = inbox.names()
    enqueue = Study.enqueue

    def interrupted(self: Study, point: dict, *, repeat: bool) -> None:
        enqueue(self, point, repeat=repeat)
        if point == {"x": 0.5}:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Study, "enqueue", interrupted)
        with pytest.raises(KeyboardInterrupt):
            apply(study, inbox, inbox.read(name))
    assert study.queued_points() == []
    apply(study, inbox, inbox.read(name))
    assert sorted(point["x"] for point in study.queued_points()) == [0.25, 0.5, 0.75]
    assert inbox.names() == []


def test_marks_of_old_requests_are_forgotten(make_loop, tmp_path) -> None:
    study = make_loop(FakeDriver()).study
    for n in range(1, 5):
        inbox = put(tmp_path, add(n / 10))
        apply(study, inbox, inbox.read(inbox.names()[0]))
    assert len(study.applied_requests()) == 1


def test_a_retry_queues_the_point_and_forgets_the_failure(make_loop, tmp_path) -> None:
    search = make_loop(FakeDriver({1: ["no memory"]}), finished=2)
    search.run()
    failed = search.study.trials()[0]
    assert failed.state is TrialState.BROKEN
    inbox = put(tmp_path, Request(action=Action.RETRY, trials=(1,)))
    apply(search.study, inbox, inbox.read(inbox.names()[0]))
    assert search.study.queued_points() == [{"x": failed.params["x"][0]}]
    assert search.study.disregarded() == {1}


def test_a_stopped_trial_is_broken_and_not_retried(make_loop, tmp_path) -> None:
    search = make_loop(FakeDriver({1: ["stay"]}), finished=2, broken=1)
    inbox = put(tmp_path, Request(action=Action.STOP, trials=(1,), reason="stopped by me"))
    search.controller._desk.inbox = Inbox(Layout(tmp_path / "elsewhere"))
    submitted = search.driver.submit

    def submit(request):
        job = submitted(request)
        search.controller._desk.inbox = inbox  # the request arrives while trial 1 runs
        return job

    search.driver.submit = submit
    counts = search.run()
    first = search.study.trials()[0]
    assert (first.state, first.reason) == (TrialState.BROKEN, "stopped by me")
    assert counts.complete == 2, "a stopped trial counts as a failure of the search"
    assert search.study.disregarded() == {1}
    assert inbox.names() == []


def test_a_request_to_stop_survives_the_controller(make_loop, tmp_path) -> None:
    """The job has ended by the request, and the controller was killed before it knew."""
    driver = FakeDriver({1: ["stay"]})
    search = make_loop(driver, finished=1)
    running = search.controller.studies[0]
    running.resume()
    running.start_job()
    driver.cancel(list(driver.folders))
    inbox = put(tmp_path, Request(action=Action.STOP, trials=(1,), reason="stopped by me"))
    again = make_loop(FakeDriver(), finished=1)
    again.run()
    first = again.study.trials()[0]
    assert (first.state, first.reason) == (TrialState.BROKEN, "stopped by me")
    assert inbox.names() == []


def test_a_trial_that_ends_first_keeps_its_value(make_loop, tmp_path) -> None:
    driver = FakeDriver({1: ["stay"]})
    search = make_loop(driver, finished=1)
    put(tmp_path, Request(action=Action.STOP, trials=(1,), reason="stopped by me"))
    study = search.controller.studies[0]
    study.resume()
    study.start_job()
    (job,) = driver.folders
    driver.leave(job, {"value": 0.5, "seconds": 1.0})
    search.run()
    assert search.study.trials()[0].value == 0.5


def test_files_that_are_no_requests_are_set_aside(make_loop, tmp_path) -> None:
    search = make_loop(FakeDriver(), finished=1)
    folder = Layout(tmp_path).requests
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{")
    (folder / "2.json").write_text(json.dumps({"id": "2", "action": "rm", "trials": []}))
    put(tmp_path, add(7.0))  # out of bounds: another program wrote it
    whole = {"action": "add", "region": "", "trials": [], "points": [], "repeat": True}
    parts = ({"points": [{"x": None}]}, {"points": [{"x": [1]}]}, {"trials": [float("inf")]}, {})
    for number, part in enumerate(parts, 3):
        text = json.dumps({**whole, "reason": "", "id": str(number), **part})
        (folder / f"{number}.json").write_text(text if part else "[" * 100_000)
    os.mkfifo(folder / "7.json")
    search.run()
    assert sorted(path.name for path in folder.iterdir()) == [f"{n}.invalid" for n in range(1, 8)]
    assert sum("invalid" in line for line in search.observer.lines) == 7
    assert search.study.queued_points() == []
    assert search.study.counts()[TrialState.COMPLETE] == 1


def test_a_request_for_another_region_stays(make_loop, tmp_path) -> None:
    search = make_loop(FakeDriver(), finished=1, regions=("de", "us"))
    inbox = put(tmp_path, add(0.25, region="jp"))
    put(tmp_path, add(0.5, region="us"))
    search.run()
    assert [inbox.read(name).region for name in inbox.names()] == ["jp"]
    assert search.studies[1].trials()[0].params["x"] == (0.5,)
