"""Many free places get proposals from one fit; proposals ahead of need are only in memory."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spearmint.acquisition import next_point as search
from spearmint.choosers import make_chooser
from spearmint.config.reader import load_experiment
from spearmint.controller.proposals import Proposals
from spearmint.controller.signals import ProposalStopped, stop_on_signals
from spearmint.drivers import Job, JobRequest
from spearmint.model import Result
from spearmint.store.opening import open_study
from spearmint.store.study import Study
from tests.spearmint.fakes import FakeDriver

CONFIG = 'language: PYTHON name: "mine" variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 }'


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "config.pb").write_text(CONFIG)
    study = open_study(load_experiment(tmp_path / "config.pb"), f"sqlite:///{tmp_path}/trials.db")
    study.use(make_chooser("GPEIOptChooser", {}, seed=1))
    for trial in study.ask_many(8):
        study.complete(trial, Result(value=sum(trial.params["X"])))
    return study


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    fits, real = [], search.fit
    monkeypatch.setattr(search, "fit", lambda *a: fits.append(1) or real(*a))
    return fits


def test_many_free_places_share_a_fit_and_few_do_not(study: Study, fits: list[int]) -> None:
    proposals = Proposals(study)
    trials = [proposals.ask(n_free) for n_free in range(6, 0, -1)]
    assert len(fits) == 1
    trials += [proposals.ask(n_free) for n_free in (2, 1)]
    assert len(fits) == 3
    assert [trial.id for trial in trials] == list(range(9, 17))
    assert len({repr(trial.params) for trial in trials}) == 8


def test_points_ahead_of_need_are_not_stored_until_they_start(
    study: Study, fits: list[int]
) -> None:
    proposals = Proposals(study)
    while proposals.prepare(5):
        assert len(fits) == 1
    assert not study.running()
    trials = [proposals.ask(1) for _ in range(5)]
    assert len(fits) == 1
    assert study.running() == trials
    assert Proposals(study).prepare(0) is False


def test_a_queued_point_comes_before_those_ahead(study: Study, fits: list[int]) -> None:
    proposals = Proposals(study)
    while proposals.prepare(2):
        pass
    study.enqueue({"X[0]": 0.125, "X[1]": 0.5})
    assert proposals.ask(1).params["X"] == (0.125, 0.5)
    assert proposals.ask(1).params["X"] != (0.125, 0.5)


def test_a_sampler_of_optuna_proposes_nothing_ahead(study: Study) -> None:
    study.use(make_chooser("TPESampler", {}, seed=1))
    proposals = Proposals(study)
    assert not proposals.prepare(3)
    assert [proposals.ask(9).id for _ in range(3)] == [9, 10, 11]


def test_ctrl_c_ends_a_proposal_that_takes_long(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless() -> Iterator[dict[str, float]]:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            time.sleep(0.01)
        yield {}

    monkeypatch.setattr(study, "propose", lambda ahead: endless())
    with stop_on_signals() as stop:
        proposals = Proposals(study, stop)
        with pytest.raises(ProposalStopped):
            proposals.ask(8)
        assert stop.requested
        assert not stop.now
        assert not study.running()
        os.kill(os.getpid(), signal.SIGINT)  # raises nothing
        assert stop.now


def test_ctrl_c_during_a_proposal_ends_the_search(make_loop, monkeypatch) -> None:
    loop = make_loop(FakeDriver(), finished=100, concurrent=8)

    def endless() -> Iterator[dict[str, float]]:
        yield {"x": 0.5}
        signal.raise_signal(signal.SIGINT)
        yield {"x": 0.25}

    monkeypatch.setattr(loop.study, "propose", lambda ahead: endless())
    with stop_on_signals() as stop:
        loop.controller.stop = stop
        for run in loop.controller.studies:
            run.obey(stop)
        assert loop.run().complete == 1


def test_ctrl_c_while_trials_start_does_not_wait_for_a_poll(make_loop) -> None:
    class Queue(FakeDriver):
        detaches = True

        def submit(self, request: JobRequest) -> Job:
            loop.stop.requested = len(self.folders) == 29
            return super().submit(request)

        def wait(self, jobs: object, timeout_s: float) -> None:
            pytest.fail("it waits")

    loop = make_loop(Queue(), finished=100, concurrent=50, polling_s=600.0)
    assert loop.run().queued == 30
    (line,) = (line for line in loop.observer.lines if "continue in the queue" in line)
    assert "30 trials" in line
    assert ", 20 and 10 more." in line


def test_a_signal_in_a_destructor_prints_nothing_and_counts(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Dying:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    class Broken:
        def __del__(self) -> None:
            raise ValueError("shown")

    before = sys.unraisablehook
    ended = []
    with stop_on_signals() as stop:
        with pytest.raises(ProposalStopped), stop.ends_proposal():  # noqa: PT012
            Dying()
            ended.append(True)
        assert ended
        assert stop.requested
        assert not stop.now
        with stop.ends_proposal():  # raises for one signal once
            pass
    assert capfd.readouterr().err == ""
    assert sys.unraisablehook is before
    shown: list[object] = []
    sys.unraisablehook = lambda unraisable: shown.append(unraisable.exc_type)
    try:
        with stop_on_signals() as stop, stop.ends_proposal():
            Broken()
    finally:
        sys.unraisablehook = before
    assert shown == [ValueError]
