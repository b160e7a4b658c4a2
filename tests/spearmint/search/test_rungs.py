"""Ask and tell, and minimize, in a search whose trials pause at rungs."""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint.controller.signals import StopRequest
from spearmint.errors import InputError, StudyMismatch
from spearmint.model import TrialState
from spearmint.search import minimize
from tests.spearmint.conftest import ONE_FLOAT

SPACE = {"x": (0.0, 1.0)}
RUNGS = {"name": "epochs", "min": 1, "max": 9, "reduction_factor": 3}


def opened(directory: Path, **options: Any) -> spearmint.Search:
    given = {"fidelity": RUNGS, "method": "RandomChooser", **options}
    return spearmint.Search(SPACE, directory=directory, **given)


def states(search: spearmint.Search) -> list[str]:
    return [trial.state.value for trial in search.trials]


def test_a_good_trial_is_asked_for_once_more_with_its_folder(tmp_path: Path) -> None:
    with opened(tmp_path) as search:
        first = search.ask()
        assert list(first.steps) == [1]
        (first.folder / "model.txt").write_text("1")
        search.tell(first, 0.25)
        assert search.best is None
        for value in (0.5, 0.75):
            search.tell(search.ask(), value)
        assert states(search) == ["paused"] * 3
        again = search.ask()
        assert (again.id, again.params, again.folder) == (first.id, first.params, first.folder)
        assert list(again.steps) == [2, 3]
        assert (again.folder / "model.txt").read_text() == "1"
        assert "steps=range(2, 4)" in repr(again)
        search.tell(again, 0.125)
        assert search.ask().id == 4, "a third of one is none"


def test_the_part_after_the_last_rung_completes_the_trial(tmp_path: Path) -> None:
    with opened(tmp_path) as search:
        while search.best is None:
            trial = search.ask()
            search.tell(trial, trial.params["x"] + 1 / trial.steps[-1])
        best = search.best
        assert len(best.rungs) == 2
        assert best.value == pytest.approx(best.params["x"] + 1 / 9)
        assert states(search).count("complete") == 1
        assert states(search).count("paused") >= 3


def test_a_part_whose_worker_died_is_pending_with_its_steps(tmp_path: Path) -> None:
    with opened(tmp_path) as search:
        for value in (0.25, 0.5, 0.75):
            search.tell(search.ask(), value)
        lost = search.ask()
    with opened(tmp_path) as search:
        (pending,) = search.pending
        assert (pending.id, pending.steps, pending.folder) == (lost.id, lost.steps, lost.folder)
        assert search.ask().id == 4, "it is not resumed twice"
        search.tell(pending, 0.125)
        assert search.trials[0].rungs == (0.25, 0.125)


def test_a_late_answer_is_not_taken_for_that_of_a_later_part(tmp_path: Path) -> None:
    with opened(tmp_path) as search:
        late = search.ask()
        search.tell(late.id, 0.25)
        with pytest.raises(InputError, match="not pending"):
            search.tell(late, 0.25)
        for value in (0.5, 0.75):
            search.tell(search.ask(), value)
        again = search.ask()
        for tell in (search.tell, lambda trial, value: search.report(trial, 1, value)):
            with pytest.raises(InputError, match="steps 1 to 1"):
                tell(late, 0.25)
        search.tell(again, None)
        assert states(search)[0] == "broken"
        assert search.ask().id == 4


def test_paused_trials_are_the_first_of_many(tmp_path: Path) -> None:
    with opened(tmp_path, method="GPEIOptChooser") as search:
        for trial in search.ask_many(6):
            search.tell(trial, trial.id)
        found = search.ask_many(4)
        assert [(trial.id, trial.steps[-1]) for trial in found] == [(1, 3), (2, 3), (7, 1), (8, 1)]


def test_maximised_values(tmp_path: Path) -> None:
    with opened(tmp_path, direction="maximize") as search:
        for value in (0.25, 0.5, 0.75):
            search.tell(search.ask(), value)
        assert search.ask().id == 3


def test_rungs_of_a_config(tmp_path: Path) -> None:
    config = tmp_path / "config.pb"
    config.write_text(ONE_FLOAT + "fidelity { max: 4 reduction_factor: 2 }\n")
    with spearmint.Search(config, method="RandomChooser") as search:
        trial = search.ask()
        assert list(trial.steps) == [1]
        search.tell(trial, 0.5)
        assert states(search) == ["paused"]
    with pytest.raises(InputError, match="pruner"):
        spearmint.Search(config, pruner="median")


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        (0, "whole number above 0"),
        (-3, "whole number above 0"),
        (True, "True"),
        ({"min": 3}, "'min'"),
        ({"max": 9, "eta": 3}, "unknown 'eta', expected name, min, max, reduction_factor"),
        ({"max": 2.5}, "2.5"),
        ({"max": 9, "reduction_factor": 1}, "reduction_factor 1"),
        ({"max": 9, "name": ""}, "''"),
        ({"min": 9, "max": 9}, "one rung"),
        ("9", "'9'"),
    ],
)
def test_invalid_rungs_are_refused(tmp_path: Path, given: Any, fact: str) -> None:
    with pytest.raises(InputError) as caught:
        opened(tmp_path, fidelity=given)
    assert fact in str(caught.value)
    assert not (tmp_path / "config.pb").exists()


@pytest.mark.parametrize(
    "other",
    [{"pruner": "median"}, {"objectives": {"error": "minimize"}}, {"constraints": {"mb": (0, 9)}}],
    ids=lambda other: next(iter(other)),
)
def test_what_excludes_rungs_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        opened(tmp_path, **other)
    assert next(iter(other)) in str(caught.value)
    assert "fidelity" in str(caught.value)


def test_other_rungs_do_not_continue_a_search(tmp_path: Path) -> None:
    with opened(tmp_path) as search:
        search.tell(search.ask(), 0.5)
    with pytest.raises(StudyMismatch) as caught:
        opened(tmp_path, fidelity=27)
    assert "rungs at 1, 3, 9 epochs" in str(caught.value)
    with opened(tmp_path) as search:
        assert states(search) == ["paused"]


def in_parts(x: float) -> float:
    checkpoint = Path(os.environ["SPEARMINT_TRIAL_DIR"], "epoch.txt")
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    for epoch in spearmint.steps(4, after=done):
        with Path("epochs.txt").open("a") as file:
            file.write(f"{x} {epoch}\n")
        checkpoint.write_text(str(epoch))
    return x + 1 / epoch


def test_a_function_trains_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rungs = {"max": 4, "reduction_factor": 2}
    for _ in range(2):  # the second call has nothing left to do
        with opened(tmp_path / "out", fidelity=rungs) as search:
            best = search.minimize(in_parts, trials=4, progress=False)
            assert best is not None
            assert best.state is TrialState.COMPLETE
            assert len(best.rungs) == 2
            assert len(search.trials) == 4
    trained = (tmp_path / "epochs.txt").read_text().splitlines()
    assert len(trained) == len(set(trained)) > 4, "no epoch is trained twice"


def test_a_stop_before_paused_trials_are_resumed_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(tmp_path / "out", fidelity={"max": 4, "reduction_factor": 2}) as search:
        for trial in search.ask_many(4):
            search.tell(trial, trial.params["x"] + 1)
        stop = StopRequest(requested=True, number=signal.SIGINT)
        with monkeypatch.context() as patch:
            patch.setattr(minimize, "stop_on_signals", lambda: nullcontext(stop))
            with pytest.raises(KeyboardInterrupt):
                search.minimize(in_parts, trials=4, progress=False)
        assert states(search) == ["paused"] * 4
        assert search.minimize(in_parts, trials=4, progress=False) is not None
