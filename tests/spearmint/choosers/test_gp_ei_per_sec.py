from __future__ import annotations

import math
import statistics
from datetime import datetime, timedelta

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from spearmint.choosers import GPEIOptChooser, GPEIperSecChooser
from spearmint.choosers.gp_ei_per_sec import duration_s

X: dict[str, BaseDistribution] = {
    "x0": FloatDistribution(0.0, 1.0),
    "x1": FloatDistribution(0.0, 1.0),
}
START = datetime(2026, 1, 1)


def trial(state: TrialState = TrialState.COMPLETE, **given) -> FrozenTrial:
    shared = {"number": 0, "trial_id": 0, "params": {}, "distributions": {}, "system_attrs": {}}
    shared |= {"user_attrs": {}, "intermediate_values": {}, "datetime_start": START}
    shared |= {"value": 1.0, "datetime_complete": START + timedelta(seconds=7)}
    return FrozenTrial(state=state, **(shared | given))


def test_what_a_trial_says_goes_before_the_clock() -> None:
    assert duration_s(trial()) == 7.0
    assert duration_s(trial(user_attrs={"seconds": 2.5})) == 2.5
    assert duration_s(trial(user_attrs={"seconds": 3})) == 3.0
    assert duration_s(trial(datetime_start=None)) is None


def test_a_trial_that_was_added_took_no_known_time() -> None:
    study = optuna.create_study()
    study.add_trial(create_trial(value=1.0))
    study.add_trial(create_trial(value=1.0, user_attrs={"seconds": 0.0}))
    assert [duration_s(trial) for trial in study.trials] == [None, 0.0]


@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan, "long"])
def test_a_duration_that_is_none(seconds) -> None:
    assert duration_s(trial(user_attrs={"seconds": seconds})) is None


@pytest.mark.parametrize("state", [TrialState.FAIL, TrialState.PRUNED])
def test_only_complete_trials_have_a_duration(state: TrialState) -> None:
    assert duration_s(trial(state, value=None, user_attrs={"seconds": 2.5})) is None


def branin(x0: float, x1: float) -> float:
    """Three equal minima, 0.3979, at x0 = 0.12, 0.54 and 0.96."""
    a, b = 15.0 * x0 - 5.0, 15.0 * x1
    bowl = (b - 5.1 / (4.0 * math.pi**2) * a * a + 5.0 / math.pi * a - 6.0) ** 2
    return bowl + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(a) + 10.0


def seconds_to_solve(chooser: type[GPEIOptChooser], seed: int, *, told: bool = True) -> float:
    """Return the seconds of all trials until a value below 0.42; a trial takes 1 to 100."""
    study, total = optuna.create_study(sampler=chooser(seed=seed)), 0.0
    for _ in range(50):
        asked = study.ask(X)
        seconds = 100.0 ** asked.params["x0"]
        if told:
            asked.set_user_attr("seconds", seconds)
        value = branin(**asked.params)
        study.tell(asked, value)
        total += seconds
        if value < 0.42:
            return total
    return math.inf


@pytest.mark.slow
def test_the_same_value_for_less_time() -> None:
    of_plain, of_seconds = (
        [seconds_to_solve(chooser, seed) for seed in range(5)]
        for chooser in (GPEIOptChooser, GPEIperSecChooser)
    )
    assert statistics.median(of_seconds) < 0.5 * statistics.median(of_plain)


def proposal(chooser: type[GPEIOptChooser], *, seconds: float | None) -> list[float]:
    """Return a proposal after trials that all took ``seconds``."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(8):
        asked = study.ask(X)
        asked.set_user_attr("seconds", seconds if seconds is not None else "unknown")
        study.tell(asked, branin(**asked.params))
    study.sampler = chooser(seed=4)
    return list(study.ask(X).params.values())


@pytest.mark.parametrize("seconds", [5.0, None])
def test_without_a_difference_it_is_expected_improvement(seconds: float | None) -> None:
    expected = proposal(GPEIOptChooser, seconds=seconds)
    np.testing.assert_array_equal(proposal(GPEIperSecChooser, seconds=seconds), expected)
