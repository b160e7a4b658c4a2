"""The recommended trial of a noisy study."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from spearmint.choosers.recommendation import recommend

SPACE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
NOISE = 0.3


def bowl(params: dict) -> float:
    return 10.0 * ((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2)


def searched(seed: int, noise: float, *, sign: float = 1.0, n: int = 60) -> optuna.Study:
    """Return a study of a bowl: half of the trials everywhere, half near its minimum."""
    rng = np.random.default_rng(seed)
    study = optuna.create_study(direction="maximize" if sign < 0 else "minimize")
    for i in range(n):
        near = np.clip(rng.normal([0.3, 0.6], 0.15), 0.0, 1.0)
        x, y = rng.random(2) if i % 2 else near
        params = {"x": float(x), "y": float(y)}
        value = sign * (bowl(params) + noise * rng.standard_normal())
        study.add_trial(create_trial(params=params, distributions=SPACE, value=value))
    return study


def test_the_luckiest_trial_is_not_the_recommended_one() -> None:
    lucky, model = [], []
    for seed in range(8):
        study = searched(seed, NOISE)
        found = recommend(study)
        assert found is not None
        recommended, luckiest = found
        assert luckiest.number == study.best_trial.number
        assert recommended.expected <= luckiest.expected
        lucky.append(bowl(study.trials[luckiest.number].params))
        model.append(bowl(study.trials[recommended.number].params))
    assert np.mean(model) < 0.7 * np.mean(lucky)


def test_the_interval_has_the_true_value_and_the_noise() -> None:
    z = []
    for seed in range(8):
        study = searched(seed, NOISE)
        recommended, _ = recommend(study) or pytest.fail("no noise found")
        z.append(recommended.expected - bowl(study.trials[recommended.number].params))
        z[-1] /= recommended.sd
        assert NOISE / 2 < recommended.noise_sd < NOISE * 2
        assert recommended.sd < recommended.noise_sd
    assert np.max(np.abs(z)) < 4.0


def test_a_maximum_is_the_minimum_of_the_negative() -> None:
    least, most = recommend(searched(1, NOISE)), recommend(searched(1, NOISE, sign=-1.0))
    assert least is not None
    assert most is not None
    assert most[0].number == least[0].number
    assert most[0].expected == pytest.approx(-least[0].expected)
    assert most[0].sd == pytest.approx(least[0].sd)


def test_no_recommendation_without_noise_or_with_few_values() -> None:
    assert recommend(searched(0, 0.0)) is None
    assert recommend(searched(0, NOISE, n=7)) is None
    assert recommend(optuna.create_study()) is None


def test_trials_without_a_value_do_not_count() -> None:
    study = searched(2, NOISE)
    before = recommend(study)
    point = {"x": 0.3, "y": 0.6}
    odd = [
        create_trial(state=TrialState.FAIL, params=point, distributions=SPACE),
        create_trial(params=point, distributions=SPACE, value=-math.inf),
        create_trial(
            state=TrialState.PRUNED,
            params=point,
            distributions=SPACE,
            intermediate_values={1: -9.0},
        ),
        create_trial(state=TrialState.RUNNING, params=point, distributions=SPACE),
    ]
    study.add_trials(odd)
    assert recommend(study) == before


def test_replicates_and_a_constant_parameter_are_no_obstacle() -> None:
    rng = np.random.default_rng(0)
    space = {"c": CategoricalDistribution(("a", "b")), "one": CategoricalDistribution(("only",))}
    study = optuna.create_study()
    for i in range(40):
        choice = "ab"[i % 2]
        value = (choice == "a") + rng.standard_normal()
        params = {"c": choice, "one": "only"}
        study.add_trial(create_trial(params=params, distributions=space, value=value))
    found = recommend(study)
    assert found is not None
    assert study.trials[found[0].number].params["c"] == "b"
    assert found[0].sd < 0.5 < found[0].noise_sd


def test_a_point_with_the_same_value_twice_shows_that_there_is_no_noise() -> None:
    study = searched(3, NOISE)
    assert recommend(study) is not None
    first = study.trials[0]
    study.add_trial(create_trial(params=first.params, distributions=SPACE, value=first.value))
    assert recommend(study) is None
    study.add_trial(create_trial(params=first.params, distributions=SPACE, value=first.value + 0.1))
    assert recommend(study) is not None


def test_few_values_are_enough_if_a_repeated_point_gave_another_one() -> None:
    """The error rate of few examples has few values, and the luckiest trial often has 0."""

    def study(repeated: bool) -> optuna.Study:
        rng = np.random.default_rng(0)
        found = optuna.create_study()
        space = {"x": FloatDistribution(0.0, 1.0)}
        for i in range(40):
            x = (i % 8) / 8 if repeated else i / 40
            errors = rng.binomial(5, min(0.9, 0.1 + (x - 0.5) ** 2 * 4))
            found.add_trial(
                create_trial(params={"x": x}, distributions=space, value=float(errors) / 5)
            )
        return found

    assert recommend(study(repeated=False)) is None
    (recommended, _) = recommend(study(repeated=True)) or pytest.fail("nothing recommended")
    x = study(repeated=True).trials[recommended.number].params["x"]
    assert 0.25 < x < 0.75
    values = [t.value for t in study(repeated=True).trials if t.params["x"] == x]
    assert (recommended.trials, recommended.mean) == (5, pytest.approx(np.mean(values)))
