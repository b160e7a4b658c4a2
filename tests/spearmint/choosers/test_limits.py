"""Constraints with measured values: several Gaussian processes, and the best feasible trial."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from spearmint.choosers import CMAChooser, GPEIChooser, GPEIOptChooser, GPEIperSecChooser
from spearmint.choosers.history import history, trials_of
from spearmint.choosers.limits import bilog, limits_of
from tests.spearmint.choosers.claims import X

Gaps = dict[str, float]


def at(x0: float, value: float | None = None, gaps: Gaps | None = None, **given):
    params = {"x0": x0, "x1": 0.5}
    return create_trial(params=params, distributions=X, value=value, constraints=gaps, **given)


def search(
    chooser: optuna.samplers.BaseSampler,
    measure: Callable[[float, float], tuple[float, Gaps]],
    trials: int,
) -> list[optuna.trial.FrozenTrial]:
    study = optuna.create_study(sampler=chooser)
    for _ in range(trials):
        trial = study.ask(X)
        value, gaps = measure(trial.params["x0"], trial.params["x1"])
        for name, gap in gaps.items():
            trial.set_constraint(name, gap)
        trial.set_user_attr("seconds", 1.0)  # not by the clock: a proposal must not depend on it
        study.tell(trial, value)
    return study.get_trials()


def test_trials_with_unknown_values_keep_their_gaps() -> None:
    study = optuna.create_study()
    study.add_trials(
        [
            at(0.1, 2.0, {"a": -1.0, "b": -4.0}),
            at(0.2, 1.0, {"a": 2.0, "b": -2.0}),
            at(0.3, math.inf, {"a": 4.0, "b": math.inf}),
            at(0.4, state=TrialState.FAIL),
            at(0.5, 5.0),
        ]
    )
    past = history(study, trials_of(study, -1), X, limits=True)
    np.testing.assert_allclose(past.y, [2.0, 1.0, 5.0, 5.0])
    np.testing.assert_allclose(past.infeasible[:, 0], [0.3])
    limits = limits_of(past)
    assert limits is not None
    np.testing.assert_allclose(limits.points[:, 0], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(limits.gaps, [[-1.0, -4.0], [2.0, -2.0], [4.0, 1.0]])
    np.testing.assert_allclose(limits.excess, [0.0, 0.5, math.inf, math.inf])
    without = history(study, trials_of(study, -1), X)
    np.testing.assert_allclose(without.y, [2.0, 5.0, 5.0, 5.0, 5.0])


def test_all_values_unknown_still_leave_the_gaps() -> None:
    study = optuna.create_study()
    study.add_trials([at(x, math.inf, {"a": x}) for x in (0.1, 0.2, 0.3)])
    past = history(study, trials_of(study, -1), X, limits=True)
    assert (len(past.y), len(past.infeasible)) == (3, 0)


def test_the_optimum_at_two_limits_is_found() -> None:
    """Minimise x0 + x1 where x0 >= 0.3 and x1 >= 0.6: the optimum is at the corner of both."""
    chooser = GPEIOptChooser(seed=0, noiseless=True)
    trials = search(chooser, lambda x, y: (x + y, {"a": 0.3 - x, "b": 0.6 - y}), 16)
    kept = [t.value for t in trials if all(gap <= 0.0 for gap in t.constraints.values())]
    assert min(kept) < 0.9 + 0.02


@pytest.mark.parametrize("known", [True, False], ids=["values", "infinite"])
def test_a_small_feasible_region_is_found_by_the_values(known: bool) -> None:
    """A disc of 0.3 % of the square; the values say how far it is, a sign would not."""

    def measure(x: float, y: float) -> tuple[float, Gaps]:
        gap = math.hypot(x - 0.83, y - 0.37) - 0.03
        return (x if known or gap <= 0.0 else math.inf), {"far": gap}

    trials = search(GPEIOptChooser(seed=1), measure, 16)
    assert any(t.constraints["far"] <= 0.0 for t in trials)


def test_concurrent_trials_are_apart_while_none_is_feasible() -> None:
    study = optuna.create_study(sampler=GPEIOptChooser(seed=0))
    study.add_trials([at(x, 1.0, {"a": 2.0 - x}) for x in (0.1, 0.3, 0.5, 0.8)])
    found = [study.ask(X).params for _ in range(4)]
    many = study.sampler.ask_many(study, X)
    found += [next(many) for _ in range(4)]
    points = np.array([[p["x0"], p["x1"]] for p in found])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2) + np.eye(8)
    assert gaps.min() > 0.01


@pytest.mark.parametrize("chooser", [GPEIOptChooser, GPEIChooser, GPEIperSecChooser])
def test_infeasible_points_are_left(chooser: type[GPEIOptChooser]) -> None:
    trials = search(chooser(seed=0), lambda x, y: (x, {"a": 0.5 - x, "b": y - 0.9}), 14)
    late = [all(gap <= 0.05 for gap in t.constraints.values()) for t in trials[-6:]]
    assert sum(late) >= 4


def test_without_a_model_of_constraints_a_violation_is_the_worst() -> None:
    study = optuna.create_study(sampler=CMAChooser(seed=0))
    study.add_trials([at(0.1, 3.0, {"a": -1.0}), at(0.2, 1.0, {"a": 1.0})])
    past = history(study, trials_of(study, -1), X)
    np.testing.assert_allclose(past.y, [3.0, 3.0])


def test_no_constraints_change_nothing() -> None:
    study = optuna.create_study()
    study.add_trials([at(0.1, 3.0), at(0.2, 1.0)])
    assert limits_of(history(study, trials_of(study, -1), X, limits=True)) is None


def test_more_than_a_thousand_trials_keep_the_feasible_ones() -> None:
    rng = np.random.default_rng(0)
    study = optuna.create_study(sampler=GPEIOptChooser(seed=0, mcmc_iters=3))
    for x0, x1 in rng.random((1010, 2)):
        study.add_trial(
            create_trial(
                params={"x0": x0, "x1": x1},
                distributions=X,
                value=x0,
                constraints={"a": 0.5 - x0, "b": 0.9 - x1},
            )
        )
    asked = study.ask(X).params
    assert asked["x0"] > 0.4
    assert asked["x1"] > 0.85


def test_bilog_keeps_the_sign_and_shrinks_large_gaps() -> None:
    gaps = np.array([-1e9, -1.0, 0.0, 1.0, 1e9])
    labels = bilog(gaps)
    np.testing.assert_array_equal(np.sign(labels), np.sign(gaps))
    assert labels[4] < 30.0
    np.testing.assert_array_equal(bilog(np.zeros(3)), np.zeros(3))
