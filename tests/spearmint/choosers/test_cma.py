from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import create_trial

from spearmint.choosers import CMAChooser, make_chooser
from spearmint.choosers.history import history, trials_of
from spearmint.errors import InputError

X: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(-2.0, 2.0) for i in range(4)}


def solved(space: dict[str, BaseDistribution], n_trials: int, **given) -> optuna.Study:
    study = optuna.create_study(sampler=CMAChooser(seed=0, **given))
    for _ in range(n_trials):
        trial = study.ask(space)
        numbers = [v for v in trial.params.values() if not isinstance(v, str)]
        study.tell(trial, float(np.sum((np.array(numbers) - 0.7) ** 2)))
    return study


def test_a_bowl_is_solved() -> None:
    assert solved(X, 240).best_value < 1e-3


def test_one_number() -> None:
    assert solved({"x": FloatDistribution(-2.0, 2.0)}, 80).best_value < 1e-6


def test_categories_beside_few_whole_numbers() -> None:
    space: dict[str, BaseDistribution] = {
        "n": IntDistribution(1, 30),
        "c": CategoricalDistribution(["a", "b", "c"]),
    }
    study = solved(space, 60)
    late = study.trials[40:]
    # The numbers have converged although all points near 1 were tried; the categories have not.
    assert np.mean([t.params["n"] <= 4 for t in late]) > 0.7
    assert {t.params["c"] for t in late} == {"a", "b", "c"}


def test_trials_of_any_origin_move_the_distribution() -> None:
    def proposal(top: float) -> np.ndarray:
        study = optuna.create_study(sampler=CMAChooser(seed=3))
        rng = np.random.default_rng(0)
        for _ in range(48):
            params = dict(zip(X, rng.normal(top, 0.3, 4).clip(-2.0, 2.0), strict=True))
            value = sum((v - top) ** 2 for v in params.values())
            study.add_trial(create_trial(params=params, distributions=X, value=value))
        return np.array([list(study.ask(X).params.values()) for _ in range(10)])

    assert proposal(1.0).mean() > 0.5
    assert proposal(-1.0).mean() < -0.5


def test_a_converged_run_is_followed_by_a_wider_one_elsewhere() -> None:
    study = optuna.create_study(sampler=CMAChooser(seed=0))
    params = dict.fromkeys(X, 0.5)
    for i in range(1200):
        study.add_trial(create_trial(params=params, distributions=X, value=float(i % 7)))
    chooser = study.sampler
    assert isinstance(chooser, CMAChooser)
    past = history(study, trials_of(study, -1), X)

    def after(n: int) -> Any:
        return chooser._replay(replace(past, points=past.points[:n], losses=past.losses[:n]))

    size = after(0).population_size
    end = next(n for n in range(0, 1200, size) if after(n).population_size > size)
    last, restarted = after(end - size), after(end)
    np.testing.assert_allclose(last.mean, past.points[0], atol=1e-3)
    assert restarted.population_size == 2 * size
    assert last._sigma < 0.01 < restarted._sigma
    assert np.abs(restarted.mean - past.points[0]).max() > 0.05


def test_a_missing_library_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cmaes", None)
    with pytest.raises(InputError, match="cmaes") as error:
        make_chooser("cma", {}, seed=0)
    assert "cmaes>=" in error.value.fix


@pytest.mark.parametrize("wrong", [{"sigma0": 0.0}, {"sigma0": 11.0}, {"population_size": 2}])
def test_wrong_arguments(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        CMAChooser(**wrong)
