"""Several objectives: the Pareto front grows, also with constraints and concurrent trials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from spearmint.choosers import CMAChooser, GPConstrainedEIChooser, GPEIOptChooser
from spearmint.choosers.history import history, trials_of
from spearmint.errors import InputError
from spearmint.gp.fit import fit
from tests.spearmint.choosers.claims import X


def two(params: dict[str, float]) -> tuple[float, float]:
    """The front is x1 = 0.3, from the square of x0 to that of its distance from 1."""
    away = (params["x1"] - 0.3) ** 2
    return params["x0"] ** 2 + away, (params["x0"] - 1.0) ** 2 + away


def study_of(chooser: optuna.samplers.BaseSampler, count: int = 2) -> optuna.Study:
    return optuna.create_study(sampler=chooser, directions=["minimize"] * count)


def test_the_front_is_found_and_covered() -> None:
    study = study_of(GPEIOptChooser(seed=0))
    for _ in range(18):
        trial = study.ask(X)
        study.tell(trial, two(trial.params))
    good = [t.params for t in study.best_trials if abs(t.params["x1"] - 0.3) < 0.1]
    places = sorted(params["x0"] for params in good)
    assert len(places) >= 7
    assert places[0] < 0.15
    assert places[-1] > 0.85
    assert max(np.diff(places)) < 0.4


def test_three_objectives() -> None:
    study = study_of(GPEIOptChooser(seed=0, mcmc_iters=3), 3)
    for _ in range(14):
        trial = study.ask(X)
        study.tell(trial, (*two(trial.params), abs(trial.params["x1"] - 0.3)))
    late = [trial.params["x1"] for trial in study.trials[-5:]]
    assert np.median(np.abs(np.array(late) - 0.3)) < 0.15


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_volume_of_three_and_more_objectives_is_that_of_their_values(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A warp would enlarge the ends of the front, where the other objectives are poor."""
    warped: list[bool] = []

    def fitted(*args: Any) -> Any:
        warped.append(args[4].warp)
        return fit(*args)

    study = study_of(GPEIOptChooser(seed=0, mcmc_iters=2), count)
    for _ in range(5):
        trial = study.ask(X)
        study.tell(trial, [abs(trial.params["x1"] - k / count) for k in range(count)])
    monkeypatch.setattr("spearmint.gp.fit.fit", fitted)
    study.ask(X)
    assert warped == [count == 2] * count


@pytest.mark.parametrize("count", [2, 3])
def test_trials_are_where_all_objectives_are_better_than_the_reference(count: int) -> None:
    """0.4 in both: x0 from 0.37 to 0.63. Without a reference, half of the late ones are outside."""

    def late(references: tuple[float, ...]) -> list[float]:
        chooser = GPEIOptChooser(seed=0, mcmc_iters=3)
        chooser.references = references
        study = study_of(chooser, count)
        for _ in range(18):
            trial = study.ask(X)
            study.tell(trial, (*two(trial.params), 1.0)[:count])
        return [trial.params["x0"] for trial in study.trials[-8:]]

    inside = [
        sum(0.33 < x < 0.67 for x in late(each)) for each in ((), (0.4, 0.4, math.nan)[:count])
    ]
    assert inside[0] <= 5
    assert inside[1] >= 7


@pytest.mark.parametrize("count", [2, 4])
def test_a_reference_that_nothing_reaches_is_approached(count: int) -> None:
    chooser = GPEIOptChooser(seed=0, mcmc_iters=2)
    chooser.references = (-1.0, -1.0, *[math.nan] * (count - 2))
    study = study_of(chooser, count)
    for _ in range(12):
        trial = study.ask(X)
        study.tell(trial, (*two(trial.params), 1.0, 2.0)[:count])
    assert all(0.0 <= trial.params["x0"] <= 1.0 for trial in study.trials)
    assert np.median([abs(trial.params["x1"] - 0.3) for trial in study.trials[-5:]]) < 0.2


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("worst", "unit", "count"), [(1e30, 1.0, 3), (1e308, 1.0, 2), (1e300, 1e300, 2)]
)
def test_a_reference_that_all_trials_reach_by_far_leaves_a_search(
    worst: float, unit: float, count: int
) -> None:
    chooser = GPEIOptChooser(seed=0, mcmc_iters=2)
    chooser.references = (worst,) * count
    study = study_of(chooser, count)
    for _ in range(16):
        trial = study.ask(X)
        away = 3.0 * abs(trial.params["x1"] - 0.3)
        study.tell(trial, [unit * (trial.params["x0"] ** k + away) for k in range(count)])
    late = [abs(trial.params["x1"] - 0.3) for trial in study.trials[-6:]]
    assert np.median(late) < 0.1


def test_maximising_is_minimising_the_negative() -> None:
    def proposals(directions: list[str], sign: float) -> list[dict[str, float]]:
        study = optuna.create_study(sampler=GPEIOptChooser(seed=3), directions=directions)
        found = []
        for _ in range(6):
            trial = study.ask(X)
            first, second = two(trial.params)
            study.tell(trial, (first, sign * second))
            found.append(trial.params)
        return found

    assert proposals(["minimize", "minimize"], 1.0) == proposals(["minimize", "maximize"], -1.0)


def test_infeasible_trials_are_not_on_the_front() -> None:
    study = study_of(GPEIOptChooser(seed=0))
    for _ in range(14):
        trial = study.ask(X)
        trial.set_constraint("x0", trial.params["x0"] - 0.5)
        study.tell(trial, two(trial.params))
    late = [trial.params["x0"] for trial in study.trials[-6:]]
    assert sum(x0 <= 0.55 for x0 in late) >= 4


def test_while_none_is_feasible_the_search_looks_for_one() -> None:
    study = study_of(GPEIOptChooser(seed=0))
    for _ in range(14):
        trial = study.ask(X)
        gap = math.hypot(trial.params["x0"] - 0.83, trial.params["x1"] - 0.37) - 0.04
        trial.set_constraint("far", gap)
        study.tell(trial, two(trial.params) if gap <= 0.0 else (math.inf, math.inf))
    assert any(trial.constraints["far"] <= 0.0 for trial in study.trials)


def test_concurrent_trials_and_batches_differ() -> None:
    study = study_of(GPEIOptChooser(seed=0))
    for x0, x1 in np.random.default_rng(0).random((8, 2)):
        params = {"x0": x0, "x1": x1}
        study.add_trial(create_trial(params=params, distributions=X, values=two(params)))
    found = [study.ask(X).params for _ in range(3)]
    many = study.sampler.ask_many(study, X)
    found += [next(many) for _ in range(4)]
    points = np.array([[p["x0"], p["x1"]] for p in found])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2) + np.eye(7)
    assert gaps.min() > 1e-3


def test_failed_and_infinite_trials_are_the_worst() -> None:
    study = study_of(GPEIOptChooser(seed=0))
    at = {"distributions": X}
    study.add_trials(
        [
            create_trial(params={"x0": 0.1, "x1": 0.1}, values=[1.0, 5.0], **at),
            create_trial(params={"x0": 0.2, "x1": 0.1}, values=[2.0, 4.0], **at),
            create_trial(params={"x0": 0.3, "x1": 0.1}, values=[math.inf, 0.0], **at),
            create_trial(params={"x0": 0.4, "x1": 0.1}, state=TrialState.FAIL, **at),
        ]
    )
    past = history(study, trials_of(study, -1), X)
    np.testing.assert_allclose(past.losses, [[1.0, 5.0], [2.0, 4.0], [2.0, 5.0], [2.0, 5.0]])
    assert study.ask(X).params


def test_equal_values_and_single_points_are_no_obstacle() -> None:
    study = study_of(GPEIOptChooser(seed=0))
    for _ in range(6):
        trial = study.ask(X)
        study.tell(trial, (1.0, 1.0))
    assert study.ask(X).params


@pytest.mark.parametrize("chooser", [CMAChooser, GPConstrainedEIChooser])
def test_other_choosers_refuse_several_objectives(chooser: type) -> None:
    study = study_of(chooser(seed=0))
    with pytest.raises(InputError, match="GPEIOptChooser"):
        study.ask(X)


def test_more_than_a_thousand_trials() -> None:
    rng = np.random.default_rng(0)
    study = study_of(GPEIOptChooser(seed=0, mcmc_iters=3))
    for x0, x1 in rng.random((1010, 2)):
        params = {"x0": x0, "x1": x1}
        study.add_trial(create_trial(params=params, distributions=X, values=two(params)))
    assert abs(study.ask(X).params["x1"] - 0.3) < 0.15
