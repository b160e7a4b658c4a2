from __future__ import annotations

import math

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from spearmint.choosers.history import common_space, history, trials_of

SPACE = {
    "a": FloatDistribution(0.0, 10.0),
    "b": CategoricalDistribution(["x", "y"]),
}


def study_of(*trials: optuna.trial.FrozenTrial, direction: str = "minimize") -> optuna.Study:
    study = optuna.create_study(direction=direction)
    study.add_trials(trials)
    return study


def trial(a: float, b: str = "x", **given) -> optuna.trial.FrozenTrial:
    return create_trial(params={"a": a, "b": b}, distributions=SPACE, **given)


def test_each_state_counts_as_documented() -> None:
    study = study_of(
        trial(1.0, value=5.0),
        trial(2.0, "y", value=-3.0),
        trial(3.0, value=math.inf),
        trial(4.0, value=-math.inf),
        trial(5.0, state=TrialState.FAIL),
        trial(6.0, state=TrialState.FAIL, user_attrs={"abandoned": True}),
        trial(7.0, state=TrialState.PRUNED, intermediate_values={1: 9.0, 5: 4.0}),
        trial(8.0, state=TrialState.PRUNED),
    )
    running = study.ask(SPACE)
    asked = study.ask(SPACE)
    past = history(study, trials_of(study, asked.number), SPACE)
    np.testing.assert_allclose(past.points[:, 0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8])
    assert past.points[:, 1].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    # inf, -inf, FAIL and pruned without a report get the worst finite value.
    assert past.y.tolist() == [5.0, -3.0, 5.0, 5.0, 5.0, 4.0, 5.0]
    np.testing.assert_allclose(past.pending[:, 0], [running.params["a"] / 10.0])


def test_maximising_negates_and_broken_stays_worst() -> None:
    study = study_of(
        trial(1.0, value=5.0),
        trial(2.0, value=-3.0),
        trial(3.0, state=TrialState.FAIL),
        direction="maximize",
    )
    past = history(study, trials_of(study, -1), SPACE)
    assert past.y.tolist() == [-5.0, 3.0, 3.0]


def test_values_outside_of_the_space_are_left_out() -> None:
    study = study_of(trial(1.0, value=1.0), trial(9.0, value=2.0))
    narrow = {"a": FloatDistribution(0.0, 2.0), "b": SPACE["b"]}
    past = history(study, trials_of(study, -1), narrow)
    assert past.points[:, 0].tolist() == [0.5]


def test_common_space_is_what_finished_trials_share_in_its_latest_form() -> None:
    more = SPACE | {"c": IntDistribution(0, 3), "fixed": IntDistribution(2, 2)}
    wider = {"a": FloatDistribution(0.0, 20.0), "fixed": IntDistribution(2, 2)}
    study = study_of(
        create_trial(
            params={"a": 1.0, "b": "x", "c": 1, "fixed": 2}, distributions=more, value=1.0
        ),
        create_trial(params={"a": 1.0, "fixed": 2}, distributions=wider, value=1.0),
    )
    assert common_space(trials_of(study, -1)) == {"a": wider["a"]}


def test_a_trial_pruned_before_it_had_all_parameters_takes_none_from_the_others() -> None:
    study = study_of(trial(1.0, value=5.0))
    refused = study.ask()
    refused.suggest_float("a", 0.0, 10.0)
    study.tell(refused, state=TrialState.PRUNED)
    assert common_space(trials_of(study, -1)) == SPACE


def test_common_space_before_any_trial_finished() -> None:
    study = optuna.create_study()
    assert common_space(trials_of(study, -1)) == {}
    study.ask(SPACE)
    study.ask().suggest_float("a", 0.0, 10.0)
    assert common_space(trials_of(study, -1)) == SPACE
