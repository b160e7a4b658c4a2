"""Trials that pause at rungs, in the model of a chooser."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from spearmint.choosers import make_chooser
from spearmint.choosers.history import history
from spearmint.choosers.rungs import RUNGS, RungValues, is_paused

SPACE = {"x": FloatDistribution(0.0, 1.0)}


def trial(*values: float, x: float = 0.5, paused: bool = True) -> FrozenTrial:
    """Return a trial that passed rungs; without ``paused`` the last value is its result."""
    lower = values if paused else values[:-1]
    return create_trial(
        state=TrialState.RUNNING if paused else TrialState.COMPLETE,
        value=None if paused else values[-1],
        params={"x": x},
        distributions=SPACE,
        user_attrs={RUNGS: {"values": list(lower), "seconds": 1.0, "paused": paused}},
    )


def test_values_of_lower_rungs_are_moved_up_by_a_line() -> None:
    both = [trial(v, 0.5 + 0.25 * v) for v in (1.0, 2.0, 3.0)]
    values = RungValues([*both, trial(9.0)])
    assert values.of(both[1]) == 1.0, "measured"
    assert values.of(trial(9.0)) == pytest.approx(2.75), "estimated"
    assert values.of(create_trial(value=1.0)) is None


def test_all_values_are_at_the_highest_rung_that_three_trials_reached() -> None:
    trials = [trial(1.0, 0.9, 0.8, paused=False), trial(2.0, 1.9), trial(3.0, 2.9), trial(4.0)]
    assert [RungValues(trials).of(t) for t in trials[:3]] == [0.9, 1.9, 2.9], "not 0.8"
    few = [trial(2.0, 1.0), trial(3.0)]
    assert [RungValues(few).of(t) for t in few] == [2.0, 3.0]


def test_a_complete_trial_without_a_curve_counts_at_the_last_rung_only() -> None:
    known = [trial(v, v - 0.5, v - 0.75, paused=False) for v in (1.0, 2.0, 3.0)]
    imported = trial(math.nan, math.nan, 0.125, paused=False)
    values = RungValues([*known, imported, trial(5.0)])
    assert values.of(imported) == 0.125
    assert values.of(trial(5.0)) == pytest.approx(4.25), "the lines ignore what is not known"
    gap = trial(math.nan, 4.0)
    assert values.of(gap) == pytest.approx(3.75)
    few = RungValues([imported, trial(4.0)])
    assert [few.of(imported), few.of(trial(4.0))] == [0.125, 4.0]


def test_values_at_rungs_that_do_not_predict_the_last_one_are_not_used() -> None:
    crossing = [trial(6.0 - v, v, paused=False) for v in (1.0, 2.0, 3.0, 4.0, 5.0)]
    values = RungValues([*crossing, trial(0.5)])
    assert [values.of(each) for each in crossing] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert values.of(trial(0.5)) is None
    study = optuna.create_study()
    past = history(study, [*crossing, trial(0.5, x=0.25)], SPACE)
    assert len(past.points) == 5
    assert not len(past.pending)


@pytest.mark.parametrize(("sign", "direction"), [(1.0, "minimize"), (-1.0, "maximize")])
def test_the_best_trials_decide_which_rungs_predict(sign: float, direction: str) -> None:
    """The first rung orders the good ones in reverse, and only the bad ones rightly."""
    last = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 11.0, 12.0, 13.0, 14.0]
    early = [*last[7::-1], *last[8:]]
    both = [(sign * a, sign * b) for a, b in zip(early, last, strict=True)]
    complete = [trial(*values, x=i / 20, paused=False) for i, values in enumerate(both)]
    study = optuna.create_study(direction=direction)
    past = history(study, [*complete, trial(sign * 0.5, x=0.9)], SPACE)
    assert past.y.tolist() == last, "no estimate from the first rung"


def test_a_paused_trial_is_observed_and_one_without_a_value_is_pending() -> None:
    study = optuna.create_study(direction="maximize")
    new = create_trial(state=TrialState.RUNNING, params={"x": 0.1}, distributions=SPACE)
    failed = trial(5.0, x=0.9)
    failed.state = TrialState.FAIL
    diverged = trial(math.inf, x=0.7)
    past = history(study, [trial(1.0, x=0.3), trial(2.0, x=0.4), new, failed, diverged], SPACE)
    assert past.pending.tolist() == [[0.1]]
    assert dict(zip(past.points[:, 0], past.y, strict=True)) == {
        0.3: -1.0,
        0.4: -2.0,
        0.9: -1.0,
        0.7: -1.0,
    }, "failed and diverged trials have the worst value"


def test_only_running_trials_with_the_mark_are_paused() -> None:
    assert is_paused(trial(1.0))
    assert not is_paused(trial(1.0, 2.0, paused=False))
    assert not is_paused(create_trial(state=TrialState.RUNNING))


@pytest.mark.parametrize(
    "name", ["GPEIOptChooser", "GPEIperSecChooser", "RandomForestEIChooser", "CMAChooser"]
)
def test_models_use_paused_trials_before_any_is_complete(name: str) -> None:
    study = optuna.create_study(sampler=make_chooser(name, {}, seed=1))
    for x in np.linspace(0, 1, 12):
        study.add_trial(trial((x - 0.3) ** 2, x=float(x)))
    proposed = [study.ask(SPACE).params["x"] for _ in range(4)]
    assert all(0.0 <= x <= 1.0 for x in proposed)
    if name.startswith("GPEIOpt"):
        assert abs(proposed[0] - 0.3) < 0.1
