"""Guesses of the user in the choosers with a Gaussian process."""

from __future__ import annotations

from itertools import islice

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from spearmint.choosers.registry import make_chooser

SPACE = {
    "x": FloatDistribution(1e-4, 1.0, log=True),
    "n": IntDistribution(1, 100),
    "c": CategoricalDistribution(["a", "b"]),
}
GP = ["GPEIOptChooser", "GPEIChooser", "GPEIperSecChooser", "GPConstrainedEIChooser"]


def study_of(name: str, guesses: dict[str, tuple[float, float]], count: int) -> optuna.Study:
    """Return a study with ``count`` random trials without a minimum."""
    sampler = make_chooser(name, {}, seed=1)
    sampler.guesses = guesses
    study = optuna.create_study(sampler=sampler)
    rng = np.random.default_rng(5)
    for _ in range(count):
        known = {"x": 10 ** rng.uniform(-4, 0), "n": int(rng.integers(1, 101)), "c": "a"}
        trial = optuna.create_trial(
            params=known, distributions=SPACE, value=float(rng.standard_normal())
        )
        study.add_trial(trial)
    return study


@pytest.mark.parametrize("name", GP)
def test_the_first_proposals_of_the_model_are_near_the_guess(name: str) -> None:
    study = study_of(name, {"x": (0.01, 0.05), "n": (20, 0.05)}, 5)
    points = list(islice(study.sampler.ask_many(study, SPACE), 3))
    for point in points:
        assert abs(np.log10(point["x"]) + 2) < 1.0
        assert abs(point["n"] - 20) < 25


def test_a_guess_is_a_hint_in_a_search_of_several_objectives_too() -> None:
    sampler = make_chooser("GPEIOptChooser", {}, seed=1)
    sampler.guesses = {"x": (0.01, 0.05)}
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    rng = np.random.default_rng(5)
    for _ in range(5):
        known = {"x": 10 ** rng.uniform(-4, 0), "n": int(rng.integers(1, 101)), "c": "a"}
        values = [float(v) for v in rng.standard_normal(2)]
        study.add_trial(optuna.create_trial(params=known, distributions=SPACE, values=values))
    assert abs(np.log10(study.ask(SPACE).params["x"]) + 2) < 1.0


def test_a_wrong_guess_is_forgotten() -> None:
    """The minimum is at the other end of the range."""
    space = {"x": FloatDistribution(0.0, 1.0)}
    sampler = make_chooser("GPEIOptChooser", {}, seed=1)
    sampler.guesses = {"x": (0.95, 0.1)}
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"x": 0.95})
    for _ in range(16):
        trial = study.ask(space)
        study.tell(trial, (trial.params["x"] - 0.1) ** 2)
    assert study.best_value < 1e-4
