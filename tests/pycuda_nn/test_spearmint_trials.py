from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pycuda_nn as nn
import spearmint
from pycuda_nn.errors import ConfigError
from pycuda_nn.spearmint_trials import run_trials, together, train_trials
from spearmint.model import TrialState
from spearmint.search.proposal import Proposal

Parts = tuple[nn.Dataset, nn.Dataset, nn.Dataset]
SPACE = {"lr": (1e-3, 1e-1, "log")}


def config(params: dict[str, float]) -> nn.TrainConfig:
    return nn.TrainConfig(hidden=(8,), epochs=4, lr=params["lr"])


def open_search(folder: Path, **more: str) -> spearmint.Search:
    return spearmint.Search(SPACE, directory=folder / "out", method="random", **more)


def test_each_trial_has_the_value_of_its_own_training(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    with open_search(tmp_path) as search:
        run_trials(search, config, train, valid, trials=5, batch=3, monitor="loss", backend="numpy")
        trials = search.trials
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 5
    for trial in trials:
        alone = nn.train(config(trial.params), train, valid, backend="numpy")
        assert trial.value == min(report.valid_loss for report in alone.history)
        assert len(trial.reports) == 4


def test_one_that_diverges_or_has_wrong_settings_breaks_alone(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    made: list[int] = []

    def odd(params: dict[str, float]) -> nn.TrainConfig:
        made.append(1)
        if len(made) == 2:
            return nn.TrainConfig(hidden=(8,), optimizer="sgd", lr=1e30)
        return nn.TrainConfig(hidden=(8,), epochs=0 if len(made) == 3 else 2, lr=params["lr"])

    with open_search(tmp_path) as search:
        run_trials(search, odd, train, valid, trials=4, batch=4, backend="numpy")
        good, wild, wrong, last = search.trials
    assert (good.state, last.state) == (TrialState.COMPLETE, TrialState.COMPLETE)
    assert (wild.state, wrong.state) == (TrialState.BROKEN, TrialState.BROKEN)
    assert "epochs = 0" in wrong.reason
    assert "lr" in wild.reason


def test_a_minibatch_of_more_rows_than_there_are_breaks_alone(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    times = iter([1000, 2])

    def scaled(params: dict[str, float]) -> nn.TrainConfig:
        return nn.TrainConfig(hidden=(8,), epochs=1, batch_size=8, scale_batch=next(times))

    with open_search(tmp_path) as search:
        run_trials(search, scaled, train, valid, trials=2, batch=2, backend="numpy")
        large, good = search.trials
    assert (large.state, good.state) == (TrialState.BROKEN, TrialState.COMPLETE)
    assert "scale_batch = 1000" in large.reason


def test_a_pruner_stops_single_networks(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, valid, _ = parts
    with open_search(tmp_path, pruner="median") as search:
        report = search.report

        def prune_two(trial: Proposal, step: int, value: float) -> bool:
            return report(trial, step, value) or (trial.id == 2 and step == 2) or step == 4

        monkeypatch.setattr(search, "report", prune_two)
        run_trials(search, config, train, valid, trials=3, batch=3, backend="numpy")
        first, second, third = search.trials
    assert second.state is TrialState.PRUNED
    assert len(second.reports) == 2
    assert first.state is third.state is TrialState.COMPLETE  # they were at their end


def test_a_stopped_batch_continues_at_its_checkpoints(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, valid, _ = parts
    folder = tmp_path / "networks"
    arguments = {"trials": 2, "batch": 2, "monitor": "loss", "folder": folder, "backend": "numpy"}
    with open_search(tmp_path) as search:
        report = search.report

        def stop(trial: object, step: int, value: float) -> bool:
            if step == 3:
                raise KeyboardInterrupt
            return report(trial, step, value)

        monkeypatch.setattr(search, "report", stop)
        with pytest.raises(KeyboardInterrupt):
            run_trials(search, config, train, valid, **arguments)
    assert len(list(folder.iterdir())) == 2
    with open_search(tmp_path) as search:
        steps: list[int] = []
        again = search.report
        monkeypatch.setattr(search, "report", lambda *a: steps.append(a[1]) or again(*a))
        run_trials(search, config, train, valid, **arguments)
        trials = search.trials
    assert min(steps) > 2
    assert not list(folder.iterdir())
    for trial in trials:
        alone = nn.train(config(trial.params), train, valid, backend="numpy")
        assert trial.value == min(report.valid_loss for report in alone.history)


class Counting(spearmint.Search):
    """Notes the trials that each transaction tells; ``spearmint.Search`` does the rest."""

    told: list[list[int]]

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        self.told.append([])
        with super().one_transaction():
            yield

    def tell(self, trial: Any, *values: Any, **more: Any) -> None:
        super().tell(trial, *values, **more)
        self.told[-1].append(trial.id)


@pytest.mark.parametrize(("gap", "told"), [(0.0, [[1, 2, 3]]), (1.0, [[1], [2], [3]])])
def test_networks_that_end_together_are_stored_together(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gap: float, told: list[list[int]]
) -> None:
    """A GPU ends an epoch of all networks at once; on a CPU, one follows the other."""
    times = itertools.count(step=gap)
    monkeypatch.setattr(together.time, "monotonic", lambda: next(times))
    train, valid, _ = parts
    with Counting(SPACE, directory=tmp_path, method="random") as search:
        search.told = []
        run_trials(search, config, train, valid, trials=3, batch=3, backend="numpy")
        assert [group for group in search.told if group] == told
        assert [trial.state for trial in search.trials] == [TrialState.COMPLETE] * 3


def test_an_interruption_loses_no_network_that_has_ended(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together.time, "monotonic", lambda: 0.0)  # all at the same time
    train, valid, _ = parts
    with Counting(SPACE, directory=tmp_path, method="random") as search:
        search.told = []
        epochs = itertools.count(2)

        def longer(params: dict[str, float]) -> nn.TrainConfig:
            return nn.TrainConfig(hidden=(8,), epochs=next(epochs), lr=params["lr"])

        seen = together.Together._report

        def stop(self: Any, number: int, report: Any) -> bool:
            if (number, report.epoch) == (2, 2):
                raise KeyboardInterrupt
            return seen(self, number, report)

        monkeypatch.setattr(together.Together, "_report", stop)
        with pytest.raises(KeyboardInterrupt):
            run_trials(search, longer, train, valid, trials=3, batch=3, backend="numpy")
        assert search.told == [[1]]
        assert [trial.id for trial in search.pending] == [2, 3]


def test_an_interruption_while_results_are_told_loses_one_at_most(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together.time, "monotonic", lambda: 0.0)  # all at the same time
    train, valid, _ = parts
    told: list[int] = []

    class Interrupted(spearmint.Search):
        def tell(self, trial: Any, *values: Any, **more: Any) -> None:
            told.append(trial.id)
            if len(told) == 2:
                raise KeyboardInterrupt
            super().tell(trial, *values, **more)

    with Interrupted(SPACE, directory=tmp_path / "out", method="random") as search:
        with pytest.raises(KeyboardInterrupt):
            run_trials(search, config, train, valid, trials=4, batch=4, backend="numpy")
        assert told == [1, 2, 3, 4]
        assert [trial.id for trial in search.pending] == [2]


def test_wrong_arguments_are_errors(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    with open_search(tmp_path) as search:
        for wrong in ({"batch": 0}, {"batch": True}, {"batch": 1.5}, {"monitor": "speed"}):
            with pytest.raises(ConfigError, match="invalid batch"):
                run_trials(search, config, train, valid, trials=1, **wrong)
        for count in (True, 1.5, "1"):
            with pytest.raises(ConfigError, match="invalid trials"):
                run_trials(search, config, train, valid, trials=count)
        assert not search.trials


def test_values_that_stop_no_trial_are_stored_together(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    stored: list[list[int]] = []

    class Noting(spearmint.Search):
        """Notes each store; the report of one step is a report of many."""

        def report_many(self, trial: Any, values: Any) -> bool:
            stored.append(sorted(values))
            return super().report_many(trial, values)

        def tell(self, trial: Any, value: Any, *, reports: Any = None, **more: Any) -> None:
            if reports:
                stored.append(sorted(reports))
            super().tell(trial, value, reports=reports, **more)

    for more, folder, wanted in (
        ({}, None, [[1, 2, 3, 4]] * 2),
        ({}, tmp_path / "networks", [[1], [1], [2], [2], [3], [3], [4], [4]]),
        ({"pruner": "median"}, None, [[1], [1], [2], [2], [3], [3], [4], [4]]),
    ):
        stored.clear()
        place = tmp_path / f"{len(more)}{folder is None}"
        with Noting(SPACE, directory=place, method="random", **more) as search:
            run_trials(
                search, config, train, valid,
                trials=2, batch=2, folder=folder, monitor="loss", backend="numpy",
            )  # fmt: skip
            assert [sorted(trial.reports) for trial in search.trials] == [[1, 2, 3, 4]] * 2
        assert stored == wanted


def test_a_long_curve_is_stored_in_some_of_its_steps(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    with open_search(tmp_path) as search:
        run_trials(
            search, lambda params: nn.TrainConfig(hidden=(), epochs=17, lr=params["lr"]),
            train, valid, trials=2, batch=2, backend="numpy",
        )  # fmt: skip
        for trial in search.trials:
            assert sorted(trial.reports) == [2, 5, 8, 11, 14, 17]


class JobTrial:
    """A trial of a job, in memory: stopped at ``stop``, with a rung at ``until``."""

    def __init__(
        self, id: int, files: Path, lr: float, *, stop: int = 0, until: int | None = None
    ) -> None:
        self.id, self.files, self.params = id, files, {"lr": [lr]}
        self.stop, self.until = stop, until
        self.reports: dict[int, float] = {}
        self.told: list[object] = []
        self.failed: list[str] = []

    @property
    def has_ended(self) -> bool:
        return bool(self.told or self.failed) or self.stop in self.reports

    def steps(self, last: int, after: int = 0) -> range:
        return range(after + 1, (last if self.until is None else min(last, self.until)) + 1)

    def report(self, step: int, value: float) -> bool:
        self.reports[step] = value
        return self.has_ended

    def tell(self, value: object) -> None:
        self.told.append(value)

    def fail(self, reason: str | BaseException) -> None:
        self.failed.append(str(reason))


def in_job(params: dict[str, list[float]]) -> nn.TrainConfig:
    optimizer = "sgd" if params["lr"][0] > 1 else "adam"
    return nn.TrainConfig(hidden=(8,), epochs=4, lr=params["lr"][0], optimizer=optimizer)


def test_the_trials_of_a_job_get_their_results_as_alone(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    trials = [
        JobTrial(1, tmp_path, 1e-2),
        JobTrial(2, tmp_path, 1e30),
        JobTrial(3, tmp_path, 1e-2, stop=2),
        JobTrial(4, tmp_path, 1e-3),
    ]
    train_trials(trials, in_job, train, valid, monitor="loss", backend="numpy")
    good, wild, stopped, last = trials
    for trial in (good, last):
        alone = nn.train(in_job(trial.params), train, valid, backend="numpy")
        assert trial.told == [min(report.valid_loss for report in alone.history)]
        assert list(trial.reports) == [1, 2, 3, 4]
    assert not wild.told
    assert "lr" in wild.failed[0]
    assert stopped.told == stopped.failed == []
    assert list(stopped.reports) == [1, 2]
    assert not list(tmp_path.iterdir()), "no checkpoints"


def test_a_trial_without_settings_fails_alone(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    trials = [JobTrial(1, tmp_path, 1e-2), JobTrial(2, tmp_path, 1e-3)]

    def forgets(params: dict[str, list[float]]) -> Any:
        return in_job(params) if params["lr"][0] < 5e-3 else None

    train_trials(trials, forgets, train, valid, backend="numpy")
    assert "of type NoneType, not TrainConfig" in trials[0].failed[0]
    assert len(trials[1].told) == 1


def test_a_trial_can_be_told_the_values_of_constraints(parts: Parts, tmp_path: Path) -> None:
    def value(result: nn.TrainResult) -> dict[str, float]:
        return {"objective": result.best.valid_loss, "weights": result.model.params.size}

    train, valid, _ = parts
    trial = JobTrial(1, tmp_path, 1e-2)
    train_trials([trial], in_job, train, valid, value=value, backend="numpy")
    alone = nn.train(in_job(trial.params), train, valid, backend="numpy")
    assert trial.told == [value(alone)]
    with spearmint.Search(
        {"lr": (1e-3, 1e-1, "log")},
        directory=tmp_path / "search",
        constraints={"weights": (None, 10)},
    ) as search:
        run_trials(search, config, train, valid, trials=2, batch=2, value=value)
        assert all(not trial.is_feasible for trial in search.trials)
        assert all(trial.constraints["weights"] > 10 for trial in search.trials)


def test_a_trial_of_a_job_continues_at_its_rung(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts
    alone = nn.train(in_job({"lr": [1e-2]}), train, valid, backend="numpy")
    for until, known in ((1, 1), (3, 3), (4, 4)):
        trial = JobTrial(1, tmp_path, 1e-2, until=until)
        train_trials([trial], in_job, train, valid, monitor="loss", backend="numpy")
        assert trial.told == [min(report.valid_loss for report in alone.history[:known])]
    assert list(trial.reports) == [4], "it trained only what was left"
    assert not list(tmp_path.iterdir()), "the checkpoint is deleted at the end"


def test_a_trial_of_a_killed_job_resumes_if_asked(parts: Parts, tmp_path: Path) -> None:
    train, valid, _ = parts

    class Killed(JobTrial):
        def report(self, step: int, value: float) -> bool:
            if step == 3:
                raise KeyboardInterrupt
            return super().report(step, value)

    more: dict[str, Any] = {"resume": True, "monitor": "loss", "backend": "numpy"}
    with pytest.raises(KeyboardInterrupt):
        train_trials([Killed(1, tmp_path, 1e-2)], in_job, train, valid, **more)
    trial = JobTrial(1, tmp_path, 1e-2)
    train_trials([trial], in_job, train, valid, **more)
    assert list(trial.reports) == [4]
    alone = nn.train(in_job(trial.params), train, valid, backend="numpy")
    assert trial.told == [min(report.valid_loss for report in alone.history)]
