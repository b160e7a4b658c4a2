from __future__ import annotations

import math
import statistics

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from spearmint.choosers import GPConstrainedEIChooser, GPEIOptChooser
from spearmint.choosers.history import history, trials_of

X: dict[str, BaseDistribution] = {
    "x0": FloatDistribution(0.0, 1.0),
    "x1": FloatDistribution(0.0, 1.0),
}


def at(x0: float, **given) -> optuna.trial.FrozenTrial:
    return create_trial(params={"x0": x0, "x1": 0.5}, distributions=X, **given)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_what_counts_as_infeasible(direction: str) -> None:
    study = optuna.create_study(direction=direction)
    over = {"constraints": (-1.0, 0.5)}
    study.add_trials(
        [
            at(0.1, value=2.0),
            at(0.2, value=math.inf),
            at(0.3, value=-math.inf),
            at(0.4, state=TrialState.FAIL),
            at(0.5, value=-9.0, user_attrs={"infeasible": True}),
            at(0.6, value=3.0, user_attrs={"infeasible": False}),
            at(0.7, value=-9.0, system_attrs=over),
            at(0.8, value=4.0, system_attrs={"constraints": (-1.0, 0.0)}),
            at(0.9, state=TrialState.PRUNED, intermediate_values={3: 5.0}),
            at(1.0, state=TrialState.FAIL, user_attrs={"abandoned": True}),
        ]
    )
    past = history(study, trials_of(study, -1), X, constrained=True)
    np.testing.assert_allclose(past.points[:, 0], [0.1, 0.6, 0.8, 0.9])
    sign = 1.0 if direction == "minimize" else -1.0
    np.testing.assert_allclose(sign * past.y, [2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(past.infeasible[:, 0], [0.2, 0.3, 0.4, 0.5, 0.7])
    assert len(past.tried) == 9
    everything = history(study, trials_of(study, -1), X)
    assert (len(everything.points), len(everything.infeasible)) == (9, 0)


def bowl_behind_an_edge(x0: float, x1: float) -> float:
    """Minimum 0.125, on the edge of what is feasible."""
    return (x0 - 0.8) ** 2 + (x1 - 0.7) ** 2 if x0 + x1 <= 1.0 else math.inf


def regrets(chooser: type[GPEIOptChooser]) -> list[float]:
    best = []
    for seed in range(5):
        study = optuna.create_study(sampler=chooser(seed=seed))
        for _ in range(18):
            asked = study.ask(X)
            study.tell(asked, bowl_behind_an_edge(**asked.params))
        values = [t.value for t in study.trials if t.value is not None]
        best.append(min(values) - 0.125)
    return best


@pytest.mark.slow
def test_a_constraint_is_learned() -> None:
    plain, constrained = regrets(GPEIOptChooser), regrets(GPConstrainedEIChooser)
    assert statistics.median(constrained) < 0.8 * statistics.median(plain)
    assert max(constrained) < max(plain)


def test_without_a_constraint_it_is_expected_improvement() -> None:
    def proposal(chooser: type[GPEIOptChooser]) -> dict[str, float]:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        study.optimize(lambda t: sum(t.suggest_float(k, 0.0, 1.0) ** 2 for k in X), n_trials=8)
        study.sampler = chooser(seed=4)
        return study.ask(X).params

    assert proposal(GPConstrainedEIChooser) == proposal(GPEIOptChooser)


@pytest.mark.slow
def test_a_small_feasible_region_is_found() -> None:
    """2 % of the square; nothing feasible among the first points."""
    study = optuna.create_study(sampler=GPConstrainedEIChooser(seed=0))
    study.add_trials([at(x, value=math.inf) for x in (0.1, 0.3, 0.5, 0.7)])
    found = []
    for _ in range(60):
        asked = study.ask(X)
        x = np.array(list(asked.params.values()))
        inside = np.sum((x - [0.8, 0.2]) ** 2) < 0.02 / math.pi
        study.tell(asked, float(x.sum()) if inside else math.inf)
        found.append(bool(inside))
    assert any(found)
    # Once found it is used, much more often than by chance.
    assert np.mean(found[found.index(True) + 1 :]) > 0.08


def test_infeasible_points_are_not_tried_again() -> None:
    space: dict[str, BaseDistribution] = {"a": CategoricalDistribution(list(range(12)))}
    study = optuna.create_study(sampler=GPConstrainedEIChooser(seed=0))
    for _ in range(12):
        asked = study.ask(space)
        study.tell(asked, math.inf if asked.params["a"] % 3 else float(asked.params["a"]))
    assert len({t.params["a"] for t in study.trials}) == 12
