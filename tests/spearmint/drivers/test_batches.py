"""Jobs of several trials, as real jobs of the local driver, of Grid Engine and of pilots."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from spearmint.controller import study_run, submission
from spearmint.drivers import Driver
from spearmint.fidelity import Fidelity
from spearmint.model import TrialState
from spearmint.store.study import Study
from spearmint.trial.attempts import read_attempts
from tests.spearmint.drivers.real_jobs import Killed, make_driver

__all__ = ["make_driver"]  # a fixture

HALVES = Fidelity(name="epochs", low=1, high=2, reduction=2)
CODE = """
def main_batch(trials):
    for trial in trials:
        checkpoint = trial.files / "epoch.txt"
        done = int(checkpoint.read_text()) if checkpoint.exists() else 0
        for epoch in trial.steps(2, after=done):
            with open("epochs.txt", "a") as file:
                file.write(f"{trial.id}.{epoch} ")
            checkpoint.write_text(str(epoch))
            trial.report(epoch, trial.id + 1 / epoch)
        if trial.id == 2:
            trial.fail("diverged")
        else:
            trial.tell(trial.id + 1 / epoch)
"""


def kill_after(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
    original = getattr(owner, name)

    def killed(*arguments: object, **named: object) -> object:
        original(*arguments, **named)
        raise Killed

    monkeypatch.setattr(owner, name, killed)


def epochs(root: Path) -> Counter[str]:
    return Counter((root / "epochs.txt").read_text().split())


def test_each_trial_runs_once_through_kills_of_the_controller(
    make_driver: Callable[[], Driver], make_loop, tmp_path: Path, monkeypatch
) -> None:
    places = [
        (study_run, "prepare_job"),
        (submission, "_prepare_trial"),
        (Study, "complete"),
        (Study, "break_"),
        (study_run.StudyRun, "_add_running"),
    ]
    for owner, name in places:
        with monkeypatch.context() as patched, contextlib.suppress(Killed):
            kill_after(patched, owner, name)
            make_loop(make_driver(), batch=3, finished=8).run()
    search = make_loop(make_driver(), batch=3, finished=8)
    figures = search.run()
    assert (figures.complete, figures.broken, figures.running) == (8, 1, 0)
    trials = search.study.trials()
    assert [trial.reason for trial in trials if trial.state is TrialState.BROKEN] == ["diverged"]
    assert epochs(tmp_path) == Counter(f"{t.id}.{n}" for t in trials for n in (1, 2))
    for trial in trials:
        assert len(read_attempts(search.layout.folder(trial.id))) >= 1
        assert trial.lost == 0


def test_a_resumed_trial_trains_on_in_another_job(
    make_driver: Callable[[], Driver], make_loop, tmp_path: Path, monkeypatch
) -> None:
    for name in ("pause", "resume_paused", "complete"):
        with monkeypatch.context() as patched, contextlib.suppress(Killed):
            kill_after(patched, Study, name)
            make_loop(make_driver(), batch=3, fidelity=HALVES, finished=5, concurrent=2).run()
    search = make_loop(make_driver(), batch=3, fidelity=HALVES, finished=5, concurrent=2)
    figures = search.run()
    assert (figures.paused + figures.complete, figures.broken) == (5, 1)
    complete = [trial.id for trial in search.study.trials() if trial.value is not None]
    assert len(complete) >= 2
    first = [f"{trial.id}.1" for trial in search.study.trials()]
    assert epochs(tmp_path) == Counter([*first, *(f"{n}.2" for n in complete)])
