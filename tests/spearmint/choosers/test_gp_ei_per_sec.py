from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from spearmint.choosers import GPEIOptChooser, GPEIperSecChooser
from spearmint.choosers.gp_ei_per_sec import duration_s
from tests.spearmint.choosers.claims import X, branin, seconds_to_solve

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


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_value_for_less_time(seed: int) -> None:
    of_plain, of_seconds = (
        seconds_to_solve(kind(seed=seed)) for kind in (GPEIOptChooser, GPEIperSecChooser)
    )
    assert of_seconds < 0.5 * of_plain


def proposal(chooser: type[GPEIOptChooser], *, seconds: float | None) -> list[float]:
    """Return a proposal after trials that all have the duration ``seconds``."""
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
