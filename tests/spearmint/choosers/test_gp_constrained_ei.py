from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import TrialState, create_trial

from spearmint.choosers import GPConstrainedEIChooser, GPEIOptChooser
from spearmint.choosers.history import history, trials_of
from tests.spearmint.choosers.claims import X, feasible_after_first, regret_in_a_quarter


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


@pytest.mark.parametrize("seed", [0, 1])
def test_a_constraint_is_learned(seed: int) -> None:
    constrained, plain = (
        regret_in_a_quarter(kind(seed=seed), 15)
        for kind in (GPConstrainedEIChooser, GPEIOptChooser)
    )
    assert constrained < 0.5 * plain


def test_without_a_constraint_it_is_expected_improvement() -> None:
    def proposal(chooser: type[GPEIOptChooser]) -> dict[str, float]:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        study.optimize(lambda t: sum(t.suggest_float(k, 0.0, 1.0) ** 2 for k in X), n_trials=8)
        study.sampler = chooser(seed=4)
        return study.ask(X).params

    assert proposal(GPConstrainedEIChooser) == proposal(GPEIOptChooser)


def test_a_small_feasible_region_is_used() -> None:
    """A region of 2 % of the square is feasible, and one feasible point is known."""
    inside = feasible_after_first(GPConstrainedEIChooser(seed=0), 15, (0.82, 0.2))
    assert np.mean(inside) > 10.0 * 0.02


def test_infeasible_points_are_not_tried_again() -> None:
    space: dict[str, BaseDistribution] = {"a": CategoricalDistribution(list(range(12)))}
    study = optuna.create_study(sampler=GPConstrainedEIChooser(seed=0))
    for _ in range(12):
        asked = study.ask(space)
        study.tell(asked, math.inf if asked.params["a"] % 3 else float(asked.params["a"]))
    assert len({t.params["a"] for t in study.trials}) == 12
