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


ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
SCALE = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
CENTRE = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann_in_a_ball(x: np.ndarray) -> float:
    """Minimum -3.3224; feasible is 8 % of the cube (Letham et al. 2019)."""
    value = float(-ALPHA @ np.exp(-np.sum(SCALE * (x - CENTRE) ** 2, axis=1)))
    return value if x @ x <= 1.0 else math.inf


def median_regret(chooser: type[GPEIOptChooser]) -> float:
    space: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(6)}
    regrets = []
    for seed in range(3):
        study, best = optuna.create_study(sampler=chooser(seed=seed)), math.inf
        for _ in range(50):
            asked = study.ask(space)
            value = hartmann_in_a_ball(np.array(list(asked.params.values())))
            study.tell(asked, value)
            best = min(best, value)
        regrets.append(best + 3.32237)
    return statistics.median(regrets)


@pytest.mark.slow
def test_a_constraint_is_learned() -> None:
    assert median_regret(GPConstrainedEIChooser) < 0.5 * median_regret(GPEIOptChooser)


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
    after = []
    for seed in range(4):
        study = optuna.create_study(sampler=GPConstrainedEIChooser(seed=seed))
        study.add_trials([at(x, value=math.inf) for x in (0.1, 0.3, 0.5, 0.7)])
        found = []
        for _ in range(40):
            asked = study.ask(X)
            x = np.array(list(asked.params.values()))
            inside = np.sum((x - [0.8, 0.2]) ** 2) < 0.02 / math.pi
            study.tell(asked, float(x.sum()) if inside else math.inf)
            found.append(bool(inside))
        if any(found):
            after += found[found.index(True) + 1 :]
    # 40 points of a Sobol sequence find it in every second search; then it is used.
    assert len(after) > 40
    assert np.mean(after) > 3.0 * 0.02


def test_infeasible_points_are_not_tried_again() -> None:
    space: dict[str, BaseDistribution] = {"a": CategoricalDistribution(list(range(12)))}
    study = optuna.create_study(sampler=GPConstrainedEIChooser(seed=0))
    for _ in range(12):
        asked = study.ask(space)
        study.tell(asked, math.inf if asked.params["a"] % 3 else float(asked.params["a"]))
    assert len({t.params["a"] for t in study.trials}) == 12
