"""Choosers that learn from earlier searches."""

from __future__ import annotations

from itertools import islice

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from spearmint.choosers import Chooser, make_chooser
from spearmint.transfer import EarlierSearch, EarlierTrial

SPACE = {
    "x": FloatDistribution(1e-4, 1.0, log=True),
    "y": FloatDistribution(0.0, 1.0),
    "n": IntDistribution(1, 100),
    "c": CategoricalDistribution(["a", "b"]),
}
GP = ["GPEIOptChooser", "GPEIChooser", "GPEIperSecChooser", "GPConstrainedEIChooser"]
FAST = {"mcmc_iters": "3", "burnin": "2"}
Point = dict[str, float | str]


def loss(point: Point) -> float:
    x, y, n = (float(point[name]) for name in "xyn")
    return float((np.log10(x) + 2) ** 2 + 4 * (y - 0.8) ** 2 + (n / 50 - 1) ** 2)


def some(count: int, seed: int) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [
        {
            "x": float(10 ** rng.uniform(-4, 0)),
            "y": float(rng.random()),
            "n": int(rng.integers(1, 101)),
            "c": "ab"[rng.integers(2)],
        }
        for _ in range(count)
    ]


def earlier(*, sign: float = 1.0, maximize: bool = False) -> EarlierSearch:
    trials = tuple(EarlierTrial(p, sign * loss(p)) for p in some(60, 1))
    return EarlierSearch(name="old", maximize=maximize, trials=trials, n_complete=60)


def study_of(
    name: str, learned: list[EarlierSearch], count: int = 6, **given: object
) -> tuple[optuna.Study, Chooser]:
    """Return a study with ``count`` random trials."""
    sampler = make_chooser(name, FAST, seed=1)
    assert isinstance(sampler, Chooser)
    sampler.earlier = learned
    study = optuna.create_study(sampler=sampler)
    for point in some(count, 5):
        trial = optuna.create_trial(
            params=point, distributions=SPACE, value=loss(point) + 30, **given
        )
        study.add_trial(trial)
    return study, sampler


def proposals(name: str, learned: list[EarlierSearch], count: int = 6) -> list[Point]:
    study, sampler = study_of(name, learned, count)
    return list(islice(sampler.ask_many(study, SPACE), 3))


@pytest.mark.parametrize("name", GP)
def test_proposals_are_as_good_as_the_earlier_search_knows(name: str) -> None:
    learned = np.mean([loss(p) for p in proposals(name, [earlier()])])
    plain = np.mean([loss(p) for p in proposals(name, [])])
    assert learned < 0.5 * plain


@pytest.mark.parametrize("name", GP)
def test_a_search_of_the_other_direction_and_scale_teaches_the_same(name: str) -> None:
    found = proposals(name, [earlier(sign=-1e6, maximize=True)])
    assert np.mean([loss(p) for p in found]) < 0.5


@pytest.mark.parametrize("name", GP)
def test_a_misleading_search_changes_no_proposal(name: str) -> None:
    assert proposals(name, [earlier(sign=-1.0)]) == proposals(name, [])


def test_the_model_starts_as_soon_as_an_earlier_search_is_proven() -> None:
    """Four trials are fewer than the first points of a search of four variables."""
    plain, learned = proposals("GPEIOptChooser", [], 4), proposals("GPEIOptChooser", [earlier()], 4)
    assert np.mean([loss(p) for p in learned]) < 0.5 * np.mean([loss(p) for p in plain])
    assert proposals("GPEIOptChooser", [earlier(sign=-1.0)], 4) == plain
    assert proposals("GPEIOptChooser", [earlier()], 0) == proposals("GPEIOptChooser", [], 0)


def test_a_chooser_without_a_model_of_earlier_searches_ignores_them() -> None:
    for name in ("RandomForestEIChooser", "SequentialChooser"):
        sampler = make_chooser(name, {}, seed=1)
        assert isinstance(sampler, Chooser)
        assert not sampler.learns


def test_the_same_in_another_process_and_one_fit_of_each_earlier_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from spearmint.transfer import ensemble

    fits = []
    original = ensemble.EarlierModel.__init__

    def counted(self: ensemble.EarlierModel, *given: object) -> None:
        fits.append(given)
        original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(ensemble.EarlierModel, "__init__", counted)
    study, sampler = study_of("GPEIOptChooser", [earlier()])
    first = study.ask(SPACE).params
    study.ask(SPACE)
    assert len(fits) == 1
    study, sampler = study_of("GPEIOptChooser", [earlier()])
    assert next(sampler.ask_many(study, SPACE)) == first


def test_measured_constraints_and_guesses_count_as_well() -> None:
    study, sampler = study_of("GPEIOptChooser", [earlier()], constraints={"memory": -1.0})
    point = {"x": 0.01, "y": 0.8, "n": 50, "c": "a"}
    study.add_trial(
        optuna.create_trial(
            params=point, distributions=SPACE, value=30.0, constraints={"memory": 5.0}
        )
    )
    sampler.guesses = {"y": (0.8, 0.05)}
    found = study.ask(SPACE).params
    assert abs(found["y"] - 0.8) < 0.3
    assert loss(found) < 2.0
